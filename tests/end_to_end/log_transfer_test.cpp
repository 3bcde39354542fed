// A cluster moves from a directory into etcd and back with `orrery store copy`, and goes on after
// etcd has lost its newest batches with `orrery store adopt`; a controller starts on each log.
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <nlohmann/json.hpp>

#include "store/etcd/etcd_server_test.hpp"
#include "tests/end_to_end/cli.hpp"

namespace orrery {

std::string program() { return ORRERY_PROGRAM; }

namespace {

namespace fs = std::filesystem;

/// A controller as a process, from its first answer on. It ends with the object, as on SIGTERM.
class RunningController {
 public:
  RunningController(const std::string& directory, const std::string& options)
      : log_(directory + "/orreryd.log") {
    const std::string pid = directory + "/orreryd.pid";
    fs::remove(pid);
    const std::string command =
        fmt::format("exec {} --dir {} {} 2>>{}", ORRERY_DAEMON, directory, options, log_);
    std::vector<std::string> words{"sh", "-c", command};
    std::array<char*, 4> arguments{words[0].data(), words[1].data(), words[2].data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, "/bin/sh", nullptr, nullptr, arguments.data(), environ), 0);
    for (int tries = 0; tries < kTriesMax && !fs::exists(pid) && !ended(); ++tries) pause();
    EXPECT_TRUE(fs::exists(pid)) << slurp(log_);
  }
  RunningController(const RunningController&) = delete;
  RunningController& operator=(const RunningController&) = delete;
  ~RunningController() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }

  static constexpr int kTriesMax = 1'500;
  static void pause() { ::poll(nullptr, 0, 20); }

 private:
  [[nodiscard]] bool ended() {
    if (::waitpid(pid_, nullptr, WNOHANG) != pid_) return false;
    pid_ = 0;
    return true;
  }

  std::string log_;
  pid_t pid_ = 0;
};

class LogTransfer : public Cli {
 protected:
  void SetUp() override {
    if (!etcd_installed()) GTEST_SKIP() << "SKIPPED: " << kEtcdProgram << " is not installed";
    Cli::SetUp();
    etcd_ = std::make_unique<EtcdServer>();
    url_ = etcd_->location().url();
    fs::create_directories(path("a"));
    fs::copy_file(ORRERY_SOURCE_DIR "/examples/fleets/laptop.yaml", path("a") + "/fleet.yaml");
  }
  /// A directory in which a controller of a shared log can start.
  void make(const std::string& name) const {
    fs::create_directories(path(name));
    fs::copy_file(path("a") + "/fleet.yaml", path(name) + "/fleet.yaml");
    make_key(name);
  }
  void make_key(const std::string& name) const {
    std::ofstream(path(name) + "/cluster.key") << std::string(64, 'a') << "\n";
    fs::permissions(path(name) + "/cluster.key", fs::perms::owner_read | fs::perms::owner_write);
  }
  [[nodiscard]] std::string shared(int index) const {
    return fmt::format("--store '{}' --listen 127.0.0.1:{}", url_, ports_.first() + index);
  }
  /// Submits a job, and returns its number.
  [[nodiscard]] std::string submit(const std::string& name) const {
    const CliRun run = orrery("submit --dir " + path(name) + " -o json -- true");
    EXPECT_EQ(run.code, 0) << run.err;
    return run.code == 0 ? nlohmann::json::parse(run.out).at("id").get<std::string>() : "";
  }
  [[nodiscard]] nlohmann::json answer(const std::string& arguments) const {
    const CliRun run = orrery("store " + arguments + " -o json");
    EXPECT_EQ(run.code, 0) << run.err;
    return run.code == 0 ? nlohmann::json::parse(run.out) : nlohmann::json();
  }
  /// Removes the newest batches, as a backup lacks them.
  void lose_batches(std::uint64_t from) const {
    const auto client = *EtcdClient::make(etcd_->location());
    const EtcdKeys keys(etcd_->location().prefix());
    EtcdTxn txn;
    txn.erase({keys.batch(from).head, keys_under(keys.log()).end});
    ASSERT_TRUE(client->txn(txn.request()));
  }
  /// Starts a controller that is refused, and returns its exit status.
  [[nodiscard]] int refused(const std::string& options) const {
    const std::string start =
        fmt::format("{} --dir {} {} >{} 2>&1", ORRERY_DAEMON, path("a"), options, path("refusal"));
    return WEXITSTATUS(std::system(start.c_str()));
  }
  [[nodiscard]] const std::string& url() const { return url_; }

 private:
  PortBlock ports_;
  std::unique_ptr<EtcdServer> etcd_;
  std::string url_;
};

TEST_F(LogTransfer, AClusterMovesIntoEtcdAndBackAndAControllerStartsOnEach) {
  {
    const RunningController first(path("a"), "");
    EXPECT_EQ(submit("a"), "0");
  }
  const std::string move =
      fmt::format("copy {}/store '{}' --state {}", path("a"), url(), path("a"));
  EXPECT_FALSE(fs::exists(path("a") + "/store/archive"));
  const nlohmann::json there = answer(move);
  EXPECT_TRUE(fs::exists(path("a") + "/store/archive")) << "expected beside the log of --state";
  EXPECT_EQ(there["history_hash"], there["from_history_hash"]);
  EXPECT_EQ(refused(""), 1) << "two logs of one cluster would go on";
  make_key("a");
  make("b");
  {
    const RunningController leader(path("a"), shared(0));
    EXPECT_EQ(submit("a"), "1");
    // Without the cluster's files a standby could not open its door to agents.
    const RunningController standby(path("b"), shared(1));
    EXPECT_EQ(slurp(path("b") + "/tls/ca.pem"), slurp(path("a") + "/tls/ca.pem"));
    EXPECT_EQ(slurp(path("b") + "/tokens"), slurp(path("a") + "/tokens"));
    const CliRun running =
        orrery("store copy '" + url() + "' " + path("c") + " --state " + path("a"));
    EXPECT_EQ(running.code, 1);
    EXPECT_NE(running.err.find("stop every controller of this log first"), std::string::npos)
        << running.err;
  }
  make("c");
  const nlohmann::json back =
      answer(fmt::format("copy '{}' {}/store --state {}", url(), path("c"), path("a")));
  EXPECT_EQ(back["history_hash"], back["from_history_hash"]);
  EXPECT_EQ(answer("verify '" + url() + "'")["history_hash"], back["history_hash"]);
  for (const char* file : {"steps.key", "tokens", "token", "tls"}) {
    fs::copy(path("a") + "/" + file, path("c") + "/" + file, fs::copy_options::recursive);
  }
  const RunningController last(path("c"), "");
  EXPECT_EQ(submit("c"), "2");
}

TEST_F(LogTransfer, AfterALossOneCommandGoesOnWithoutUsingNumbersAgain) {
  std::uint64_t kept = 0;
  make_key("a");
  {
    const RunningController first(path("a"), shared(0));
    EXPECT_EQ(submit("a"), "0");
    kept = answer("verify '" + url() + "'")["newest_batch"];
    EXPECT_EQ(submit("a"), "1");
    EXPECT_EQ(submit("a"), "2");
  }
  lose_batches(kept + 1);
  const std::string adopt = "store adopt '" + url() + "' --state " + path("a");
  EXPECT_EQ(refused(shared(0)), 1);
  EXPECT_NE(slurp(path("refusal")).find("orrery " + adopt), std::string::npos)
      << slurp(path("refusal"));
  const CliRun adopted = orrery(adopt);
  EXPECT_EQ(adopted.code, 0) << adopted.err;
  EXPECT_NE(adopted.out.find("lost: jobs 1 to 2;"), std::string::npos) << adopted.out;
  EXPECT_EQ(orrery(adopt).code, 1) << "there is nothing more to adopt";
  const RunningController again(path("a"), shared(0));
  EXPECT_EQ(submit("a"), "3");
}

}  // namespace
}  // namespace orrery
