// store/etcd/etcd_server_test.hpp - real etcd processes for a test: one member or three, in a
// directory and on ports of their own. They end with the test, however it ends.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/system/port_block_test.hpp"
#include "store/backend_test.hpp"
#include "store/etcd/etcd_store.hpp"
#include "store/etcd_api/etcd_client.hpp"

namespace orrery {

inline constexpr const char* kEtcdProgram = "/usr/bin/etcd";

inline bool etcd_installed() { return ::access(kEtcdProgram, X_OK) == 0; }

/// One process of etcd.
class EtcdMember {
 public:
  EtcdMember(std::vector<std::string> arguments, std::string log)
      : arguments_(std::move(arguments)), log_(std::move(log)) {
    start();
  }
  ~EtcdMember() { end(); }
  EtcdMember(const EtcdMember&) = delete;
  EtcdMember& operator=(const EtcdMember&) = delete;

  void start() {
    std::vector<char*> arguments;
    arguments.reserve(arguments_.size() + 1);
    for (std::string& each : arguments_) arguments.push_back(each.data());
    arguments.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int log = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (log < 0) ::_exit(126);
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
    ::execv(kEtcdProgram, arguments.data());
    ::_exit(127);
  }
  void signal(int number) const { ::kill(pid_, number); }
  /// Kills it; nothing of the process is left on return.
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }

 private:
  std::vector<std::string> arguments_;
  std::string log_;
  pid_t pid_ = 0;
};

class EtcdServer {
 public:
  /// Starts the members, and waits until they answer. `more`: further arguments of each.
  explicit EtcdServer(int members = 1, const std::vector<std::string>& more = {}) {
    std::vector<std::string> peers;
    peers.reserve(static_cast<std::size_t>(members));
    for (int i = 0; i < members; ++i) peers.push_back(fmt::format("m{}={}", i, peer(i)));
    const std::string together = fmt::format("{}", fmt::join(peers, ","));
    // The time in which a member that is alone elects itself is a part of each test's time.
    const auto [heartbeat, election] = members == 1 ? std::pair(5, 50) : std::pair(30, 300);
    members_.reserve(static_cast<std::size_t>(members));
    for (int i = 0; i < members; ++i) {
      std::vector<std::string> arguments{
          kEtcdProgram,
          fmt::format("--name=m{}", i),
          fmt::format("--data-dir={}", data(i)),
          fmt::format("--listen-client-urls=http://{}", address(i)),
          fmt::format("--advertise-client-urls=http://{}", address(i)),
          fmt::format("--listen-peer-urls={}", peer(i)),
          fmt::format("--initial-advertise-peer-urls={}", peer(i)),
          fmt::format("--initial-cluster={}", together),
          fmt::format("--initial-cluster-token={}", ports_.first()),
          fmt::format("--heartbeat-interval={}", heartbeat),
          fmt::format("--election-timeout={}", election)};
      arguments.insert(arguments.end(), more.begin(), more.end());
      members_.push_back(std::make_unique<EtcdMember>(std::move(arguments),
                                                      directory_.path(fmt::format("log{}", i))));
    }
    for (int i = 0; i < members; ++i) EXPECT_TRUE(answers(i)) << address(i);
  }

  [[nodiscard]] EtcdMember& member(int index) { return *members_[static_cast<std::size_t>(index)]; }
  [[nodiscard]] std::string address(int index) const {
    return fmt::format("127.0.0.1:{}", ports_.first() + 2 * index);
  }
  [[nodiscard]] EtcdLocation location(const std::string& cluster = "test") const {
    EtcdLocation location{.cluster = cluster};
    location.members.reserve(members_.size());
    for (int i = 0; i < static_cast<int>(members_.size()); ++i) {
      location.members.push_back(address(i));
    }
    return location;
  }
  /// Returns the directory of a member's data.
  [[nodiscard]] std::string data(int index) const {
    return directory_.path(fmt::format("m{}", index));
  }
  /// A location of one member.
  [[nodiscard]] EtcdLocation location_of(int index) const {
    return {.members = {address(index)}, .cluster = "test"};
  }
  /// Waits until a member answers.
  [[nodiscard]] bool answers(int index) const {
    constexpr int kTriesMax = 600;
    constexpr int kPauseMs = 20;
    const auto client = EtcdClient::make(location_of(index));
    for (int tries = 0; tries < kTriesMax; ++tries) {
      if ((*client)->range(range_request({"any"}))) return true;
      ::poll(nullptr, 0, kPauseMs);
    }
    return false;
  }

 private:
  [[nodiscard]] std::string peer(int index) const {
    return fmt::format("http://127.0.0.1:{}", ports_.first() + 2 * index + 1);
  }

  PortBlock ports_;
  TestDirectory directory_;
  std::vector<std::unique_ptr<EtcdMember>> members_;
};

/// Repeats a call as long as etcd gives no answer.
template <class Call>
auto again(Call&& call) {
  constexpr int kTriesMax = 200;
  auto result = call();
  for (int tries = 1; tries < kTriesMax && !result; ++tries) {
    if (result.error().failure != StorageFailure::kUnavailable) break;
    result = call();
  }
  return result;
}

/// A store in an etcd of its own, for tests that apply to each backend.
class EtcdBackend final : public TestBackend {
 public:
  std::unique_ptr<Store> open() override {
    auto store = EtcdStore::open(server_.location(), local_.path("local"));
    EXPECT_TRUE(store) << (store ? "" : store.error().text());
    return store ? *std::move(store) : nullptr;
  }

 private:
  EtcdServer server_;
  TestDirectory local_;
};

}  // namespace orrery
