// kill -9 of the controller that leads, again and again, and of the leader of etcd in the same
// instant every second time, while clients submit, cancel and read: a standby decides within 3 s,
// what was acknowledged exists, once, and one order of single steps explains all answers.
//
// ORRERY_TAKEOVERS (20) is the number of kills; `scripts/soak failover` runs it with more.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "api/cluster_directory.hpp"
#include "base/format/document.hpp"
#include "base/system/real_storage.hpp"
#include "executor/lab_test.hpp"
#include "store/etcd/etcd_server_test.hpp"
#include "store/history.hpp"
#include "tests/end_to_end/cluster_clients.hpp"
#include "tests/end_to_end/test_seed.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr int kControllers = 3;
constexpr Duration kPatience = Duration::seconds(30);

/// One of the controllers, as a process.
class ControllerProcess {
 public:
  ControllerProcess(std::vector<std::string> arguments, std::string state)
      : arguments_(std::move(arguments)), state_(std::move(state)) {}
  ~ControllerProcess() { kill(); }
  ControllerProcess(const ControllerProcess&) = delete;
  ControllerProcess& operator=(const ControllerProcess&) = delete;

  void start() {
    std::vector<char*> arguments;
    arguments.reserve(arguments_.size() + 1);
    for (std::string& each : arguments_) arguments.push_back(each.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    const std::string log = state_ + "/orreryd.log";
    ::posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_CREAT | O_WRONLY | O_APPEND,
                                       0600);
    ASSERT_EQ(::posix_spawn(&pid_, ORRERY_DAEMON, &actions, nullptr, arguments.data(), environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
  }
  void kill() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << state_ << ": ended with status " << status << "\n" << log();
  }
  /// Whether it serves or stands by.
  [[nodiscard]] bool ready() const {
    const Result<std::string> text = read_file(state_ + "/orreryd.pid", 64);
    return text && *text == std::to_string(pid_) + "\n";
  }
  [[nodiscard]] std::string log() const {
    return read_file(state_ + "/orreryd.log", std::size_t{64} << 20).value_or("");
  }

 private:
  std::vector<std::string> arguments_;
  std::string state_;
  pid_t pid_ = 0;
};

class FailoverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!etcd_installed()) GTEST_SKIP() << "etcd is not installed: apt-get install etcd-server";
    etcd_ = std::make_unique<EtcdServer>(kControllers);
    std::ofstream(directory_.path("fleet.yaml")) << kLabFleet;
    std::ofstream(directory_.path("cluster.key")) << std::string(64, 'a') << "\n";
    ::chmod(directory_.path("cluster.key").c_str(), 0600);
    // Makes the controllers also compact their log between kills.
    std::ofstream(directory_.path("controller.yaml"))
        << "apiVersion: orrery/v1\nkind: Controller\nsnapshot_every: 64 KiB\n";
    const std::string store =
        fmt::format("etcd://{}/test", fmt::join(etcd_->location().members, ","));
    controllers_.reserve(kControllers);
    for (int i = 0; i < kControllers; ++i) {
      const std::string state = directory_.path(fmt::format("{}", i));
      fs::create_directory(state);
      std::vector<std::string> arguments{ORRERY_DAEMON, "--dir",    directory_.path(""),
                                         "--state",     state,      "--store",
                                         store,         "--listen", address(i)};
      for (int peer = 0; peer < kControllers; ++peer) {
        if (peer != i) arguments.insert(arguments.end(), {"--peer", address(peer)});
      }
      controllers_.push_back(std::make_unique<ControllerProcess>(std::move(arguments), state));
      controllers_.back()->start();
    }
    for (const auto& each : controllers_) await([&] { return each->ready(); });
    fs::copy_file(directory_.path("0/token"), directory_.path("token"));
  }
  void TearDown() override {
    if (!HasFailure()) return;
    for (const auto& each : controllers_) {
      const std::string log = each->log();
      std::fputs(log.substr(log.size() - std::min<std::size_t>(log.size(), 4'000)).c_str(), stderr);
    }
  }

  [[nodiscard]] std::string address(int index) const {
    return fmt::format("127.0.0.1:{}", ports_.first() + index);
  }
  void await(const std::function<bool()>& condition) const {
    const RealClock clock;
    const Instant until = clock.now_monotonic() + kPatience;
    while (!condition() && clock.now_monotonic() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_TRUE(condition());
  }
  [[nodiscard]] Client client() const {
    RealStorage storage;
    ClientOptions options =
        client_options(read_cluster_address(storage, directory_.path("")).value());
    options.retry = options.patience = Duration::minutes(1);
    return Client(std::move(options));
  }
  /// The controller that cluster.json names.
  [[nodiscard]] ControllerProcess& leader() const {
    RealStorage storage;
    const std::string at = read_cluster_address(storage, directory_.path("")).value().address;
    for (int i = 0; i < kControllers; ++i) {
      if (at == address(i)) return *controllers_[static_cast<std::size_t>(i)];
    }
    ADD_FAILURE() << "nobody serves at " << at;
    return *controllers_.front();
  }

  /// The member of etcd that leads.
  [[nodiscard]] int etcd_leader() const {
    for (int i = 0; i < kControllers; ++i) {
      const std::string ask = fmt::format(
          "ETCDCTL_API=3 etcdctl --endpoints {} endpoint status -w simple", etcd_->address(i));
      std::unique_ptr<FILE, int (*)(FILE*)> answer(::popen(ask.c_str(), "r"), &::pclose);
      std::array<char, 512> line{};
      // "ADDRESS, ID, VERSION, SIZE, whether it leads, .."
      if (std::fgets(line.data(), line.size(), answer.get()) == nullptr) continue;
      if (std::string_view(line.data()).find("B, true") != std::string_view::npos) return i;
    }
    ADD_FAILURE() << "no member of etcd leads";
    return 0;
  }

  TestDirectory directory_;
  PortBlock ports_;
  std::unique_ptr<EtcdServer> etcd_;
  std::vector<std::unique_ptr<ControllerProcess>> controllers_;
};

TEST_F(FailoverTest, AStandbyDecidesWithin3SecondsAndLosesAndDoublesNothing) {
  const char* asked = std::getenv("ORRERY_TAKEOVERS");
  const int takeovers = asked != nullptr ? std::atoi(asked) : 20;
  ClusterClients clients([this] { return client(); });
  Client own = client();
  Submitter prober(own, ClusterClients::kClients);
  std::vector<double> seconds;
  seconds.reserve(static_cast<std::size_t>(takeovers));
  Rng rng = Rng::stream(test_seed(), "takeovers");
  const RealClock clock;
  for (int i = 0; i < takeovers && !clients.failed() && !HasFailure(); ++i) {
    clients.wait_for(ClusterClients::kClients);
    std::this_thread::sleep_for(std::chrono::microseconds(rng.below(500'000)));
    ControllerProcess& former = leader();
    const int member = i % 2 == 0 ? -1 : etcd_leader();
    const Instant killed = clock.now_monotonic();
    if (member >= 0) etcd_->member(member).signal(SIGKILL);
    former.kill();
    prober.step();
    seconds.push_back((prober.answered - killed).count_seconds());
    if (asked != nullptr) std::printf("takeover: %.3f s\n", seconds.back());
    if (member >= 0) {
      etcd_->member(member).end();
      etcd_->member(member).start();
      EXPECT_TRUE(etcd_->answers(member));
    }
    former.start();
    await([&] { return former.ready(); });
  }
  std::vector<Told> told = clients.end();
  told.push_back(prober.told);
  const std::size_t jobs = compare(told, own);
  const auto store = EtcdStore::open_to_read(etcd_->location());
  ASSERT_TRUE(store) << store.error().text();
  const HistoryResult<VerifiedHistory> verified = verify_history(**store);
  EXPECT_TRUE(verified) << verified.error().text();
  if (seconds.empty()) return;
  std::ranges::sort(seconds);
  const double slowest = seconds[(seconds.size() * 99 - 1) / 100];
  std::printf(
      "%zu takeovers, %zu jobs, kill to first decision: median %.2f s, 99 %% %.2f s, most %.2f s\n",
      seconds.size(), jobs, seconds[seconds.size() / 2], slowest, seconds.back());
  // The machine may do other work beside the test; the bench has the target of 3 s.
  EXPECT_LE(slowest, 10.0);
}

}  // namespace
}  // namespace orrery
