// kill -9 of the controller, again and again, while clients submit, cancel and read: what was
// acknowledged exists, once, and one order of single steps explains all answers.
//
// ORRERY_KILLS (20) is the number of kills; `scripts/soak live` runs it with more.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "api/cluster_directory.hpp"
#include "api/grpc/client.hpp"
#include "base/numbers/rng.hpp"
#include "base/system/file_descriptor.hpp"
#include "base/system/real_clock.hpp"
#include "base/system/real_storage.hpp"
#include "executor/lab_test.hpp"
#include "store/history.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "tests/end_to_end/cluster_clients.hpp"
#include "tests/end_to_end/test_seed.hpp"

namespace orrery {
namespace {

class ControllerKillTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_kill_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    std::ofstream(directory_ + "/fleet.yaml") << kLabFleet;
    // Makes the controller also compact its log between kills, and be killed while it does.
    std::ofstream(directory_ + "/controller.yaml")
        << "apiVersion: orrery/v1\nkind: Controller\nsnapshot_every: 64 KiB\n";
    listen();
    start();
    EXPECT_EQ(heard().substr(0, 8), "READY=1\n");
  }
  void TearDown() override {
    kill();
    std::filesystem::remove_all(directory_);
  }

  /// Listens as a service manager does, for the notifications of the first controller.
  void listen() {
    const std::string path = directory_ + "/notify";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    ASSERT_LT(path.size(), sizeof address.sun_path);
    std::ranges::copy(path, address.sun_path);
    manager_ = FileDescriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(manager_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  }
  std::string heard() {
    std::array<char, 256> bytes{};
    const ssize_t got = ::recv(manager_.get(), bytes.data(), bytes.size(), 0);
    ::unsetenv("NOTIFY_SOCKET");  // later notifications have no receiver
    manager_.reset();
    return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
  }

  /// Starts the controller and waits until it serves.
  void start() {
    const std::string file = directory_ + "/cluster.json";
    const bool again = std::filesystem::exists(file);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    const std::string errors = directory_ + "/errors";
    ::posix_spawn_file_actions_addopen(&actions, 2, errors.c_str(), O_CREAT | O_WRONLY | O_APPEND,
                                       0600);
    std::string program = ORRERY_DAEMON;
    std::string option = "--dir";
    char* arguments[] = {program.data(), option.data(), directory_.data(), nullptr};
    ASSERT_EQ(::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
    if (again) return;
    while (!std::filesystem::exists(file)) {
      ASSERT_EQ(::waitpid(pid_, nullptr, WNOHANG), 0) << "the controller has ended";
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  void kill() {
    ASSERT_EQ(::kill(pid_, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(pid_, &status, 0), pid_);
    // The controller has not ended by itself.
    EXPECT_TRUE(WIFSIGNALED(status)) << "the controller ended with status " << status;
  }

  [[nodiscard]] Client client() const {
    RealStorage storage;
    const ClusterAddress at = read_cluster_address(storage, directory_).value();
    ClientOptions options = client_options(at);
    options.retry = options.patience = Duration::minutes(1);
    return Client(std::move(options));
  }

  std::string directory_;
  FileDescriptor manager_;
  pid_t pid_ = 0;
};

/// The store once its log is compacted. A controller that was killed soon after each start may not
/// have compacted it yet, so more jobs are submitted.
StorageResult<std::unique_ptr<StoreReader>> compacted_store(Client& client,
                                                            const std::string& directory) {
  Submitter more(client, ClusterClients::kClients);
  auto store = SqliteStore::open_to_read(directory);
  for (int round = 0; store && (*store)->extent()->oldest == 1 && round < 200; ++round) {
    for (int job = 0; job < 50; ++job) more.step();
    store = SqliteStore::open_to_read(directory);
  }
  return store;
}

TEST_F(ControllerKillTest, LosesAndDoublesNothingThatWasAcknowledged) {
  const char* asked = std::getenv("ORRERY_KILLS");
  const int kills = asked != nullptr ? std::atoi(asked) : 20;
  ClusterClients clients([this] { return client(); });
  Rng rng = Rng::stream(test_seed(), "kills");
  for (int i = 0; i < kills && !clients.failed(); ++i) {
    // Kills it at some moment after it serves again.
    clients.wait_for(ClusterClients::kClients);
    std::this_thread::sleep_for(std::chrono::microseconds(rng.below(50'000)));
    kill();
    start();
  }
  Client own = client();
  const std::size_t jobs = compare(clients.end(), own);
  const auto store = compacted_store(own, directory_ + "/store");
  ASSERT_TRUE(store) << store.error().text();
  EXPECT_GT((*store)->extent()->oldest, 1U) << "the log was never compacted";
  const HistoryResult<VerifiedHistory> verified = verify_history(**store);
  EXPECT_TRUE(verified) << verified.error().text();
  RecordProperty("kills", kills);
  RecordProperty("jobs", static_cast<int>(jobs));
  if (asked != nullptr) std::printf("%d kills, %zu jobs\n", kills, jobs);
}

}  // namespace
}  // namespace orrery
