// tests/end_to_end/agent_fixture.hpp - the real agent with real keepers and ranks, started by a
// test that is its controller.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "node/launch/run_directory.hpp"
#include "tests/end_to_end/agent_controller.hpp"

namespace orrery {

inline constexpr Duration kPatience = Duration::seconds(60);
inline constexpr AttemptId kAttempt{JobId(5), 1};

inline std::string slurp(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream text;  // unlike an iterator, it does not throw where a process has just ended
  text << file.rdbuf();
  return std::move(text).str();
}

/// Path of the agent program in the build.
std::string agent_program();

/// Observes the end of a process that need not be a child.
class Witness {
 public:
  explicit Witness(pid_t pid) : fd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}
  [[nodiscard]] bool alive() const { return fd_.valid() && wait(0) == 0; }
  [[nodiscard]] bool ends() const { return !fd_.valid() || wait(60'000) == 1; }

 private:
  [[nodiscard]] int wait(int milliseconds) const {
    pollfd poll{fd_.get(), POLLIN, 0};
    return ::poll(&poll, 1, milliseconds);
  }
  FileDescriptor fd_;
};

/// Children of a process, of all its threads.
inline std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> found;
  for (const auto& task :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", parent))) {
    std::istringstream text(slurp(task.path().string() + "/children"));
    for (pid_t child = 0; text >> child;) found.push_back(child);
  }
  return found;
}

class AgentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // Keepers whose agent was killed become ours, and are ended with the test.
    ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    std::string name = (std::filesystem::temp_directory_path() / "orrery_agent_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    node_directory_ = name + "/node";
    auto made = RealEnv::create();
    ASSERT_TRUE(made);
    real_ = *std::move(made);
    controller_ = std::make_unique<TestController>(real_->env());
    certify(real_->env().clock.now_wall());
  }
  void TearDown() override {
    if (agent_ > 0) (void)finish(SIGTERM);
    for (const pid_t keeper : children_of(::getpid())) (void)::kill(keeper, SIGTERM);
    while (::waitpid(-1, nullptr, 0) > 0) {
    }
    controller_.reset();
    real_.reset();
    if (HasFailure()) std::fputs(slurp(log()).c_str(), stderr);
    leave_run_directory(node_directory_);
    std::filesystem::remove_all(directory_);
  }

  /// Makes a certificate for the agent, issued at `made`.
  void certify(Instant made) {
    const CertificateRequest request = request_certificate().value();
    const std::string certificate =
        certify_node(controller_->authority, {"n3", request.request}, made).value();
    ASSERT_TRUE(write_agent_tls(real_->env().storage, node_directory_,
                                {{certificate, request.key}, controller_->authority.certificate}));
  }
  void write_spec(const std::string& keys) const {
    std::filesystem::create_directories(node_directory_);
    std::ofstream(node_directory_ + "/agent.yaml") << "apiVersion: orrery/v1\nkind: Agent\n"
                                                   << keys;
  }
  /// Runs the program with these further arguments; returns its process.
  [[nodiscard]] pid_t spawn(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{agent_program(),
                                   "--controller",
                                   fmt::format("127.0.0.1:{}", controller_->port()),
                                   "--node",
                                   "n3",
                                   "--dir",
                                   node_directory_,
                                   "--address",
                                   "127.0.0.1",
                                   "--allow-agent-user"};
    if (libraries_.empty()) words.insert(words.end(), {"--emulate", "h100:4"});
    words.insert(words.end(), more.begin(), more.end());
    return spawn_program(std::move(words), log());
  }
  /// Its standard output and error go to a file.
  [[nodiscard]] pid_t spawn_program(std::vector<std::string> words, const std::string& out) const {
    std::vector<std::string> variables;
    std::string sanitizer = "ASAN_OPTIONS=";
    for (char** variable = environ; *variable != nullptr; ++variable) {
      std::string text = *variable;
      std::swap(text.starts_with("ASAN_OPTIONS=") ? sanitizer : variables.emplace_back(), text);
    }
    variables.push_back(sanitizer + ":" + sanitizer_);
    if (!libraries_.empty()) variables.push_back("LD_LIBRARY_PATH=" + libraries_);
    const auto pointers = [](std::vector<std::string>& texts) {
      std::vector<char*> list;
      list.reserve(texts.size() + 1);
      for (std::string& text : texts) list.push_back(text.data());
      list.push_back(nullptr);
      return list;
    };
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_CREAT | O_WRONLY | O_APPEND,
                                       0600);
    ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t pid = 0;
    EXPECT_EQ(::posix_spawn(&pid, words[0].c_str(), &actions, nullptr, pointers(words).data(),
                            pointers(variables).data()),
              0);
    ::posix_spawn_file_actions_destroy(&actions);
    return pid;
  }
  /// Starts the agent and waits until the controller knows what runs there.
  void start(const std::vector<std::string>& more = {}) {
    const std::size_t before = controller_->told.openings.size();
    agent_ = spawn(more);
    await([&] { return controller_->told.openings.size() > before; });
    reconcile();
  }
  void reconcile() {
    const std::size_t before = controller_->told.hellos.size();
    controller_->order(Reconcile{});
    await([&] { return controller_->told.hellos.size() > before; });
  }
  static int end_of(pid_t pid) {
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  int finish(int signal) {
    (void)::kill(agent_, signal);
    return end_of(std::exchange(agent_, 0));
  }

  /// A shell runs `script` as each of `ranks` ranks.
  void launch(const std::string& script, std::uint32_t ranks = 1, const std::string& user = "") {
    LaunchRanks launch{.token = {kAttempt, 1}, .grace = Duration::seconds(30)};
    RankShare share{.gang = 0, .devices = (std::uint64_t{1} << ranks) - 1, .ranks = {}};
    share.clock = clock_;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) share.ranks.push_back(rank);
    launch.shares = {share};
    launch.heard = RealClock().now_boot();
    NodeProgram program{.job = "train", .tenant = "a/b", .framework = "pytorch"};
    program.command = {"sh", "-c", script};
    program.work_steps = 10;
    program.gangs = {{.gang = 0, .nodes = {{"127.0.0.1", share.ranks}}, .master_port = 29500}};
    program.user = user;
    controller_->order(std::move(launch), std::move(program));
  }
  [[nodiscard]] const AttemptReport* report() const {
    const auto found = controller_->told.attempts.find(kAttempt);
    return found == controller_->told.attempts.end() ? nullptr : &found->second;
  }
  void await_stage(RankStage stage) {
    await([&] { return report() != nullptr && report()->stage == stage; });
  }
  void await_step(std::uint64_t step) {
    await([&] {
      const auto found = controller_->told.notes.find(kAttempt);
      return found != controller_->told.notes.end() && found->second.progress.step == step;
    });
  }
  /// Tells the agent that the end is durable, and waits until it has forgotten the attempt. When a
  /// keeper reports the same end again, with what a rank wrote last, the newest report counts.
  void acknowledge() {
    do {
      controller_->order(Acknowledge{controller_->told.number});
      reconcile();
    } while (!HasFailure() && !controller_->told.hellos.back().attempts.empty());
  }
  AttemptLogPart read_log(std::uint32_t rank, std::uint64_t from) {
    const std::size_t before = controller_->told.logs.size();
    controller_->ask({before + 1, kAttempt, {0, rank, from}});
    await([&] { return controller_->told.logs.size() > before; });
    if (HasFailure()) return {};
    EXPECT_EQ(controller_->told.logs.back().id, before + 1);
    return controller_->told.logs.back();
  }

  void await(const std::function<bool()>& condition) {
    bool late = false;
    const TimerId timer = real_->env().timers.call_after(kPatience, [&] { late = true; });
    real_->run_until([&] { return late || condition(); });
    real_->env().timers.cancel(timer);
    ASSERT_FALSE(late) << "in stage " << (report() != nullptr ? int(report()->stage) : -1);
  }
  [[nodiscard]] std::string log() const { return directory_ + "/agent.log"; }

  std::string directory_;
  std::string node_directory_;
  std::string libraries_;  ///< directory of those of accelerators; empty: they are emulated
  std::string sanitizer_;  ///< options of AddressSanitizer in programs, besides this one's own
  std::unique_ptr<RealEnv> real_;
  std::unique_ptr<TestController> controller_;
  pid_t agent_ = 0;
  double clock_ = 1;  ///< of what is launched
};

inline const std::string kSaysWho =
    "echo $$; echo '{\"step\":1}' >$ORRERY_PROGRESS; exec sleep 1000";

}  // namespace orrery
