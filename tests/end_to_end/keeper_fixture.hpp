// tests/end_to_end/keeper_fixture.hpp - the real keeper with real ranks, started by a test that is
// its agent.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>

#include "base/system/real_env.hpp"
#include "node/keeper/keeper_launch.hpp"
#include "node/keeper/keeper_wire.hpp"
#include "node/log_files.hpp"

namespace orrery {

inline constexpr Duration kPatience = Duration::seconds(60);
inline constexpr int kPatienceMs = 60'000;

inline std::string slurp(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream text;  // unlike an iterator, it does not throw where a process has just ended
  text << file.rdbuf();
  return std::move(text).str();
}

/// Path of the keeper program in the build.
std::string keeper_program();

/// Observes the end of a process that need not be a child.
class Witness {
 public:
  explicit Witness(pid_t pid) : fd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}
  [[nodiscard]] bool alive() const { return fd_.valid() && wait(0) == 0; }
  [[nodiscard]] bool ends() const { return !fd_.valid() || wait(kPatienceMs) == 1; }

 private:
  [[nodiscard]] int wait(int milliseconds) const {
    pollfd poll{fd_.get(), POLLIN, 0};
    return ::poll(&poll, 1, milliseconds);
  }
  FileDescriptor fd_;
};

/// One agent: records the messages of a keeper.
class TestAgent final : public ConnectionEvents {
 public:
  explicit TestAgent(RealEnv& real) : real_(real) {}

  void connect(const KeeperFiles& files) {
    connection_ = real_.env().transport.connect(files.socket(), *this).value();
  }
  template <class What>
  void order(const What& what) {
    send(AgentOrder{{{1, ++sequence_}, what}, {}});
  }
  void send(const KeeperInput& input) {
    ASSERT_EQ(real_.env().transport.send(connection_, encode(input)), SendOutcome::kQueued);
  }
  void disconnect() { real_.env().transport.close(connection_); }

  void on_frame(ConnectionId, std::string_view frame) override {
    Result<KeeperOutput> said = decode_keeper_output(frame);
    ASSERT_TRUE(said) << said.error().text();
    if (auto* now = std::get_if<KeeperStatus>(&*said)) {
      status = *now;
      ++statuses;
    } else if (auto* ranks = std::get_if<RankPaces>(&*said)) {
      paces = ranks->paces;
    } else if (const auto* output = std::get_if<ExecOutput>(&*said)) {
      exec_output += output->output;
      exec_errors += output->errors;
      exec_taken += output->taken;
    } else if (auto* end = std::get_if<ExecEnd>(&*said)) {
      exec_end = *end;
    } else if (const auto* able = std::get_if<KeeperAbilities>(&*said)) {
      abilities = *able;
    } else {
      tail = std::get<LogTail>(*said);
    }
  }
  void on_close(ConnectionId, const Closed&) override { closed = true; }

  std::optional<KeeperStatus> status;
  std::optional<LogTail> tail;
  std::vector<RankPace> paces;
  KeeperAbilities abilities;
  std::string exec_output;
  std::string exec_errors;
  std::uint64_t exec_taken = 0;
  std::optional<ExecEnd> exec_end;
  int statuses = 0;
  bool closed = false;

 private:
  RealEnv& real_;
  ConnectionId connection_ = ConnectionId::kNone;
  std::uint64_t sequence_ = 1;
};

class KeeperTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_keep_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    files_ = {name};
    auto made = RealEnv::create();
    ASSERT_TRUE(made);
    real_ = *std::move(made);
    agent_ = std::make_unique<TestAgent>(*real_);
  }
  void TearDown() override {
    // All that the keeper holds ends with it.
    if (keeper_ > 0) (void)finish(SIGTERM);
    agent_.reset();
    real_.reset();
    std::filesystem::remove_all(files_.directory);
  }

  /// A shell runs `script` as each of `ranks` ranks, with the rank variables of PyTorch.
  [[nodiscard]] KeeperLaunch launch(const std::string& script, std::uint32_t ranks = 1) const {
    KeeperLaunch launch;
    launch.stamp = {1, 1};
    launch.ranks.token = {{JobId(3), 1}, 1};
    RankShare share{.gang = 0, .devices = (std::uint64_t{1} << ranks) - 1, .ranks = {}};
    for (std::uint32_t rank = 0; rank < ranks; ++rank) share.ranks.push_back(rank);
    launch.gangs = {{.gang = 0, .nodes = {{"127.0.0.1", share.ranks}}, .master_port = 29500}};
    launch.ranks.shares = {share};
    launch.ranks.grace = Duration::seconds(30);
    launch.ranks.heard = RealClock().now_boot();
    launch.facts.job = "j";
    launch.facts.attempt = launch.ranks.token.id;
    launch.facts.style = LaunchStyle::kTorch;
    launch.facts.command = {"sh", "-c", script};
    launch.work_steps = 10;
    return launch;
  }

  /// Starts the program. Returns true once it reports that it is ready.
  bool spawn() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const std::string errors = files_.directory + "/errors";
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    ::posix_spawn_file_actions_addopen(&actions, 2, errors.c_str(), O_CREAT | O_WRONLY, 0600);
    std::string program = keeper_program();
    char* arguments[] = {program.data(), files_.directory.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&keeper_, program.c_str(), &actions, nullptr, arguments, environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    char word[6];
    const ssize_t got = ::read(ends[0], word, sizeof word);
    ::close(ends[0]);
    return got == 6;
  }
  void start(const KeeperLaunch& launch) {
    ASSERT_TRUE(write_keeper_launch(real_->env().storage, files_, launch));
    ASSERT_TRUE(spawn()) << slurp(files_.directory + "/errors");
    agent_->connect(files_);
    agent_->order(AdoptKeeper{});
  }
  /// Sends `signal`, if any, and returns the exit status of the program.
  int finish(int signal = 0) {
    if (signal != 0) (void)::kill(keeper_, signal);
    int status = 0;
    EXPECT_EQ(::waitpid(keeper_, &status, 0), keeper_);
    keeper_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  void release() {
    agent_->order(ReleaseKeeper{});
    EXPECT_EQ(finish(), 0);
  }

  void await(const std::function<bool()>& condition) {
    bool late = false;
    const TimerId timer = real_->env().timers.call_after(kPatience, [&] { late = true; });
    real_->run_until([&] { return late || condition(); });
    real_->env().timers.cancel(timer);
    ASSERT_FALSE(late) << "in stage "
                       << (agent_->status ? static_cast<int>(agent_->status->report.stage) : -1);
  }
  void await_stage(RankStage stage) {
    await([&] { return agent_->status && agent_->status->report.stage == stage; });
  }
  void await_step(std::uint64_t step) {
    await([&] { return agent_->status && agent_->status->progress.step == step; });
  }
  /// All output of a rank.
  std::string output(std::uint32_t rank = 0) {
    agent_->tail.reset();
    agent_->send(LogQuestion{.gang = 0, .rank = rank});
    await([&] { return agent_->tail.has_value(); });
    EXPECT_TRUE(agent_->tail && agent_->tail->found);
    return agent_->tail ? agent_->tail->part.bytes : "";
  }
  /// The process ids that rank 0 has printed before step 1.
  std::vector<pid_t> processes() {
    await_step(1);
    std::istringstream text(output());
    std::vector<pid_t> pids;
    for (pid_t pid = 0; text >> pid;) pids.push_back(pid);
    return pids;
  }
  [[nodiscard]] const AttemptReport& report() const { return agent_->status->report; }

  KeeperFiles files_;
  std::unique_ptr<RealEnv> real_;
  std::unique_ptr<TestAgent> agent_;
  pid_t keeper_ = 0;
};

}  // namespace orrery
