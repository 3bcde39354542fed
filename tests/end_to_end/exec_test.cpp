// Commands beside ranks, shells on devices held for them, and output that goes to files, on a
// cluster whose agents are root, as users of two tenants.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/stat.h>
#include <termios.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "base/system/file_descriptor.hpp"
#include "tests/end_to_end/cli.hpp"
#include "tests/end_to_end/throwaway_users.hpp"

namespace orrery {

std::string program() { return ORRERY_PROGRAM; }

namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The words of a process with blanks between them; empty: it has ended meanwhile.
std::string command_line(const fs::path& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string line(4096, '\0');
  const ssize_t got = ::read(file.get(), line.data(), line.size());
  line.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  std::replace(line.begin(), line.end(), '\0', ' ');
  return line;
}

/// A program on a terminal of its own.
class AtTerminal {
  static constexpr int kPatienceMs = 60'000;

 public:
  explicit AtTerminal(const std::string& command) {
    winsize size{};
    size.ws_col = 91;
    size.ws_row = 37;
    int master = -1;
    pid_ = ::forkpty(&master, nullptr, nullptr, &size);
    if (pid_ == 0) {
      ::execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), nullptr);
      ::_exit(127);
    }
    master_ = FileDescriptor(master);
  }
  AtTerminal(const AtTerminal&) = delete;
  AtTerminal& operator=(const AtTerminal&) = delete;
  ~AtTerminal() {
    if (pid_ > 0) (void)::kill(pid_, SIGKILL);
    (void)end();
  }

  void type(const std::string& keys) const {
    EXPECT_EQ(::write(master_.get(), keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  void resize(unsigned short columns, unsigned short rows) const {
    winsize size{};
    size.ws_col = columns;
    size.ws_row = rows;
    EXPECT_EQ(::ioctl(master_.get(), TIOCSWINSZ, &size), 0);
  }
  /// Waits until it has shown these words, and returns all that it has shown.
  std::string await(const std::string& words) {
    while (!holds(shown_, words)) {
      pollfd poll{master_.get(), POLLIN, 0};
      if (::poll(&poll, 1, kPatienceMs) != 1 || !read()) break;
    }
    EXPECT_TRUE(holds(shown_, words)) << words << " is missing in\n" << shown_;
    return shown_;
  }
  /// Waits until it has ended and returns its exit status; it is killed after a minute.
  int end() {
    if (pid_ <= 0) return status_;
    pollfd poll{master_.get(), POLLIN, 0};
    while (true) {
      const bool silent = ::poll(&poll, 1, kPatienceMs) != 1;
      EXPECT_FALSE(silent) << "the program has not ended; it has shown\n" << shown_;
      if (silent) (void)::kill(pid_, SIGKILL);
      if (!read()) break;
    }
    int status = 0;
    (void)::waitpid(std::exchange(pid_, 0), &status, 0);
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return status_;
  }
  [[nodiscard]] bool echoes() const {
    termios now{};
    EXPECT_EQ(::tcgetattr(master_.get(), &now), 0);
    return (now.c_lflag & ECHO) != 0;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const std::string& shown() const { return shown_; }

 private:
  bool read() {
    char bytes[4096];
    const ssize_t got = ::read(master_.get(), bytes, sizeof bytes);
    if (got <= 0) return false;
    shown_.append(bytes, static_cast<std::size_t>(got));
    return true;
  }

  pid_t pid_ = 0;
  FileDescriptor master_;
  std::string shown_;
  int status_ = -1;
};

/// Two nodes of two accelerators; jobs of tenants a and b run as two users.
class ExecTest : public Cli {
 protected:
  void SetUp() override {
    ASSERT_EQ(::geteuid(), 0U) << "this suite makes users and starts agents that become them: run "
                                  "it as root";
    Cli::SetUp();
    fs::permissions(path(""), fs::perms(0711));
    a_.emplace('a');
    b_.emplace('b');
    for (const char* node : {"node-0", "node-1"}) {
      fs::create_directories(path("c/nodes/") + node);
      (void)write(std::string("c/nodes/") + node + "/agent.yaml",
                  "apiVersion: orrery/v1\nkind: Agent\nallow_agent_user: false\n");
    }
    (void)write("c/tenants.yaml",
                fmt::format("apiVersion: orrery/v1\nkind: Tenants\nname: t\ntenants:\n"
                            "- {{name: a, run_as: {}}}\n- {{name: b, run_as: {}}}\n",
                            a_->name(), b_->name()));
    const CliRun up = live("up --nodes 2 --accelerators 2");
    ASSERT_EQ(up.code, 0) << up.err;
    work_ = path("work");
    fs::create_directories(work_);
    ASSERT_EQ(::chown(work_.c_str(), a_->uid(), static_cast<gid_t>(-1)), 0);
  }
  void TearDown() override {
    if (::geteuid() != 0) return;
    if (HasFailure()) {
      std::cerr << slurp(path("c/orreryd.log")) << slurp(path("c/nodes/node-0/agent.log"));
    }
    EXPECT_EQ(live("down").code, 0);
    Cli::TearDown();
  }

  [[nodiscard]] CliRun live(const std::string& arguments) const {
    return orrery("--dir " + path("c") + " " + arguments);
  }
  /// Creates a user of that name and returns its directory.
  [[nodiscard]] std::string directory_of(const std::string& name, const std::string& tenant) const {
    return directory_for(name, "--role user --tenant " + tenant);
  }
  [[nodiscard]] std::string directory_for(const std::string& name,
                                          const std::string& rights) const {
    const std::string place = path("of-" + name);
    fs::create_directories(place + "/tls");
    fs::copy_file(path("c/cluster.json"), place + "/cluster.json");
    fs::copy_file(path("c/tls/ca.pem"), place + "/tls/ca.pem");
    const CliRun added =
        live("user add " + name + " " + rights + " --token-file " + place + "/token");
    EXPECT_EQ(added.code, 0) << added.err;
    return place;
  }
  [[nodiscard]] std::string submitted(const std::string& arguments) const {
    const CliRun run = live("-o json submit --tenant a --directory " + work_ + " " + arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.code == 0 ? Json::parse(run.out)["id"] : "";
  }
  /// Submits a job that runs on after these commands.
  [[nodiscard]] std::string running(const std::string& first,
                                    const std::string& options = "") const {
    const std::string id = submitted(options + " -- sh -c '" + first + "; exec sleep 1000'");
    await([&] { return phase(id) == "running"; });
    return id;
  }
  [[nodiscard]] std::string phase(const std::string& id) const {
    return Json::parse(live("-o json job " + id).out)["phase"];
  }
  static void await(const std::function<bool()>& condition) {
    for (int tries = 0; tries < 1200; ++tries) {
      if (condition()) return;
      (void)::poll(nullptr, 0, 50);
    }
    FAIL() << "it did not come within a minute";
  }
  /// Processes with this word in their command line, except clients, whose requests are in theirs.
  [[nodiscard]] static std::vector<pid_t> processes_with(const std::string& word) {
    std::vector<pid_t> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != name.npos) continue;
      const std::string line = command_line(entry.path() / "cmdline");
      if (holds(line, word) && !holds(line, "/orrery ")) found.push_back(std::stoi(name));
    }
    return found;
  }

  std::optional<ThrowawayUser> a_;
  std::optional<ThrowawayUser> b_;
  std::string work_;
};

TEST_F(ExecTest, ACommandIsAsItsRankIsAndItsStatusIsThatOfTheVerb) {
  const std::string id =
      running("cat /proc/self/cgroup >group", "-n 2 --env COLOUR=blue --name beside");
  const std::string script = write("look.sh", R"(id -un
echo "$ORRERY_RANK $COLOUR $ORRERY_JOB_ID"
pwd
cmp /proc/self/cgroup group && echo same group
grep NoNewPrivs /proc/self/status
echo trouble >&2
exit 7
)");
  const CliRun run = live("exec " + id + " --rank 1 -- sh " + script);
  EXPECT_EQ(run.code, 7) << run.err;
  EXPECT_EQ(run.out,
            fmt::format("{}\n1 blue {}\n{}\nsame group\nNoNewPrivs:\t1\n", a_->name(), id, work_));
  EXPECT_EQ(run.err, "trouble\n");
  EXPECT_EQ(live("exec " + id + " -- sh -c 'kill -TERM $$'").code, 128 + SIGTERM);
  const CliRun missing = live("exec " + id + " -- no-such-program");
  EXPECT_EQ(missing.code, 1);
  EXPECT_TRUE(holds(missing.err, "cannot run no-such-program: No such file")) << missing.err;
}

TEST_F(ExecTest, OfOneProcessANodeEachHasItsLogAndItsCommands) {
  const std::string id = running("echo I am $ORRERY_RANK", "-n 4 --per node");
  const auto logs = [&] { return live("logs " + id).out; };
  await([&] { return holds(logs(), "0: I am 0\n") && holds(logs(), "1: I am 1\n"); });
  EXPECT_EQ(live("logs " + id + " --rank 1").out, "I am 1\n");
  EXPECT_EQ(live("exec " + id + " --rank 1 -- sh -c 'echo $ORRERY_RANK $ORRERY_NODE'").out,
            "1 node-1\n");
  EXPECT_TRUE(holds(live("exec " + id + " --rank 2 -- true").err, "it has ranks 0 to 1"));
}

TEST_F(ExecTest, StreamsAreWholeInBothDirectionsAndASlowReaderHoldsTheCommandUp) {
  const std::string id = running("true");
  const std::string orrery = program() + " --dir " + path("c");
  const auto shell = [](const std::string& command) {
    return WEXITSTATUS(std::system(("bash -o pipefail -c '" + command + "'").c_str()));
  };
  EXPECT_EQ(shell("head -c 5000000 /dev/urandom >" + path("in")), 0);
  EXPECT_EQ(shell(orrery + " exec " + id + " -- cat <" + path("in") + " | cmp - " + path("in")), 0);
  // The reader begins at a time when the writer would have ended, had nothing blocked it.
  EXPECT_EQ(
      shell(orrery + " exec " + id +
            " -- sh -c \"head -c 50000000 /dev/zero; echo over >over\" | (sleep 3; ls " + work_ +
            "/over >" + path("early") + " 2>/dev/null; wc -c >" + path("count") + ")"),
      0);
  EXPECT_EQ(slurp(path("early")), "");
  EXPECT_EQ(slurp(path("count")), "50000000\n");
  EXPECT_EQ(slurp(work_ + "/over"), "over\n");
}

TEST_F(ExecTest, OnlyTheSubmitterAndAdminsMayAndOthersAreToldAsLittleAsEver) {
  const std::string ada = directory_of("ada", "a");
  const std::string ben = directory_of("ben", "a");
  const std::string eve = directory_of("eve", "b");
  const CliRun submitted =
      orrery("--dir " + ada + " -o json submit --tenant a --directory " + work_ + " -- sleep 1000");
  ASSERT_EQ(submitted.code, 0) << submitted.err;
  const std::string id = Json::parse(submitted.out)["id"];
  await([&] { return phase(id) == "running"; });
  EXPECT_EQ(orrery("--dir " + ada + " exec " + id + " -- id -un").out, a_->name() + "\n");
  EXPECT_EQ(live("exec " + id + " -- id -un").out, a_->name() + "\n");
  const CliRun same = orrery("--dir " + ben + " exec " + id + " -- true");
  EXPECT_EQ(same.code, 1);
  EXPECT_TRUE(holds(same.err, "is of \"ada\": expected its submitter, an admin")) << same.err;
  // An operator may not act as a tenant's POSIX user, unless that is its own.
  const std::string stranger = directory_for("stranger", "--role operator");
  EXPECT_EQ(orrery("--dir " + stranger + " exec " + id + " -- true").code, 1);
  const std::string same_user = directory_for("same", "--role operator --run-as " + a_->name());
  EXPECT_EQ(orrery("--dir " + same_user + " exec " + id + " -- true").code, 0);
  const CliRun other = orrery("--dir " + eve + " exec " + id + " -- true");
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(holds(other.err, "no job " + id)) << other.err;
  const CliRun rank = live("exec " + id + " --rank 4 -- true");
  EXPECT_TRUE(holds(rank.err, "has no rank 4; it has rank 0")) << rank.err;
  const CliRun twice = live("exec " + id + " -- sh -c 'echo $SECRET' secret-argument");
  EXPECT_EQ(twice.code, 0) << twice.err;
  const std::string audit = slurp(path("c/audit.log"));
  EXPECT_TRUE(holds(audit, "\"command\":\"id\"")) << audit;
  EXPECT_TRUE(holds(audit, "\"message\":\"begun\"")) << audit;
  EXPECT_FALSE(holds(audit, "secret-argument")) << audit;
  // Removing a token ends its command.
  AtTerminal removed(program() + " --dir " + ada + " exec " + id + " -- sleep 7007");
  await([] { return !processes_with("sleep 7007").empty(); });
  EXPECT_EQ(live("user remove ada").code, 0);
  EXPECT_EQ(removed.end(), 1);
  await([] { return processes_with("sleep 7007").empty(); });
}

TEST_F(ExecTest, JobsThatDoNotRunAreRefusedWithTheirState) {
  const std::string id = running("true", "-n 2 --per node");
  const std::string waits = submitted("-n 4 -- true");
  const CliRun early = live("exec " + waits + " -- true");
  EXPECT_EQ(early.code, 1);
  EXPECT_TRUE(holds(early.err, "is queued: its ranks do not run yet")) << early.err;
  EXPECT_EQ(live("cancel " + id + " " + waits).code, 0);
  await([&] { return phase(id) == "cancelled"; });
  const CliRun late = live("exec " + id + " -- true");
  EXPECT_TRUE(holds(late.err, "is cancelled: its ranks do not run any more")) << late.err;
  EXPECT_EQ(live("exec " + id + " --").code, 2);
}

TEST_F(ExecTest, ACommandEndsWithItsJobItsClientTheAgentAndTheController) {
  const std::string id = running("true");
  const std::string client = program() + " --dir " + path("c") + " exec " + id + " -- ";
  const auto has_begun = [](const std::string& word) {
    await([&] { return !processes_with(word).empty(); });
  };
  const auto is_gone = [](const std::string& word) {
    await([&] { return processes_with(word).empty(); });
  };
  {
    AtTerminal killed(client + "sleep 7001");
    has_begun("sleep 7001");
    (void)::kill(killed.pid(), SIGKILL);
    is_gone("sleep 7001");
  }
  {
    // A command that ignores the signal is killed.
    AtTerminal stubborn(client + "sh -c \"trap : HUP; echo begun; while :; do sleep 7002; done\"");
    (void)stubborn.await("begun");
    (void)::kill(stubborn.pid(), SIGTERM);
    EXPECT_EQ(stubborn.end(), 128 + SIGTERM);
    is_gone("sleep 7002");
  }
  {
    AtTerminal told(client + "sleep 7003");
    has_begun("sleep 7003");
    for (const pid_t process : processes_with(path("c/nodes/node-"))) {
      std::error_code ended;
      const fs::path program = fs::read_symlink(fmt::format("/proc/{}/exe", process), ended);
      if (program.filename() == "orrery-agent") (void)::kill(process, SIGTERM);
    }
    EXPECT_EQ(told.end(), 1);
    EXPECT_TRUE(holds(told.shown(), "was lost, and the command with it")) << told.shown();
    is_gone("sleep 7003");
  }
  EXPECT_EQ(live("up").code, 0);
  await([&] { return live("exec " + id + " -- true").code == 0; });
  {
    AtTerminal cut(client + "sleep 7006");
    has_begun("sleep 7006");
    EXPECT_EQ(::kill(std::stoi(slurp(path("c/orreryd.pid"))), SIGKILL), 0);
    EXPECT_EQ(cut.end(), 1);
    is_gone("sleep 7006");
  }
  EXPECT_EQ(live("up").code, 0);
  await([&] { return live("exec " + id + " -- true").code == 0; });
  AtTerminal ended(client + "sh -c \"echo begun; sleep 7004\"");
  (void)ended.await("begun");
  EXPECT_EQ(live("cancel " + id).code, 0);
  EXPECT_NE(ended.end(), 0);
  is_gone("sleep 7004");
}

TEST_F(ExecTest, OneJobLeavesRoomForTheCommandsOfOthers) {
  const std::string greedy = running("true", "--accelerators 1");
  const std::string other = running("true", "--accelerators 1");
  const std::string place = Json::parse(live("-o json job " + greedy).out)["nodes"].dump();
  ASSERT_EQ(Json::parse(live("-o json job " + other).out)["nodes"].dump(), place)
      << "both are meant to be on one node";
  constexpr std::size_t kTaken = 16;
  AtTerminal clients(fmt::format(
      "sh -c 'for each in $(seq {}); do {} --dir {} exec {} -- sleep 7005 & done; wait'", kTaken,
      program(), path("c"), greedy));
  await([] { return processes_with("sleep 7005").size() == kTaken; });
  const CliRun more = live("exec " + greedy + " -- true");
  EXPECT_EQ(more.code, 1);
  EXPECT_TRUE(holds(more.err, "16 commands run beside ranks of job " + greedy)) << more.err;
  EXPECT_EQ(live("exec " + other + " -- true").code, 0);
}

TEST_F(ExecTest, ATerminalIsRawHasTheSizeOfTheUsersAndIsGivenBack) {
  const std::string id = running("true");
  AtTerminal user(program() + " --dir " + path("c") + " exec " + id +
                  " -t -- sh -c \"stty size; echo \\$TERM; read line; stty size; echo got \\$line; "
                  "sleep 7009\"");
  (void)user.await("37 91");
  EXPECT_FALSE(user.echoes()) << "the far terminal echoes";
  user.resize(100, 40);
  (void)::poll(nullptr, 0, 500);
  user.type("hello\r");
  const std::string shown = user.await("got hello");
  EXPECT_TRUE(holds(shown, "40 100")) << shown;
  // dash ignores a ^C that comes while it starts a program.
  await([] {
    return std::ranges::any_of(processes_with("sleep 7009"), [](pid_t each) {
      return command_line(fmt::format("/proc/{}/cmdline", each)) == "sleep 7009 ";
    });
  });
  user.type("\x03");
  EXPECT_EQ(user.end(), 128 + SIGINT);
  EXPECT_TRUE(user.echoes()) << "the terminal is as it was";
  AtTerminal killed(program() + " --dir " + path("c") + " exec " + id +
                    " -t -- sh -c \"echo begun; "
                    "sleep 7008\"");
  (void)killed.await("begun");
  EXPECT_FALSE(killed.echoes());
  (void)::kill(killed.pid(), SIGTERM);
  EXPECT_EQ(killed.end(), 128 + SIGTERM);
  EXPECT_TRUE(killed.echoes());
  // The client is awake from the resizing when the signal arrives.
  constexpr int kSignals = 10;
  for (int each = 0; each < kSignals; ++each) {
    AtTerminal busy(program() + " --dir " + path("c") + " exec " + id +
                    " -t -- sh -c \"echo begun; sleep 7008\"");
    (void)busy.await("begun");
    for (int size = 0; size <= each; ++size) {
      busy.resize(static_cast<unsigned short>(100 + size), 40);
    }
    (void)::kill(busy.pid(), SIGTERM);
    EXPECT_EQ(busy.end(), 128 + SIGTERM);
  }
  const CliRun none = live("exec " + id + " -t -- true");
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(holds(none.err, "not a terminal")) << none.err;
}

TEST_F(ExecTest, AShellHoldsItsDevicesForAsLongAsItLasts) {
  const std::string shell = program() + " --dir " + path("c") + " shell --tenant a --directory " +
                            work_ + " -n 2 --memory \"1 GiB\" ";
  const auto job_of = [](const std::string& shown) {
    const std::size_t at = shown.find("job ") + 4;
    return shown.substr(at, shown.find(' ', at) - at);
  };
  AtTerminal user(shell);
  (void)user.await("$ ");
  user.type("echo I am $(id -un) of $ORRERY_JOB; exit 3\r");
  EXPECT_EQ(user.end(), 3);
  EXPECT_TRUE(holds(user.shown(), "I am " + a_->name() + " of shell")) << user.shown();
  await([&] { return phase(job_of(user.shown())) == "cancelled"; });
  AtTerminal lost(shell + "-- sh -c \"echo begun; sleep 7006\"");
  const std::string id = job_of(lost.await("begun"));
  EXPECT_EQ(phase(id), "running");
  (void)::kill(lost.pid(), SIGKILL);
  (void)lost.end();
  await([&] { return phase(id) != "running"; });
  // A waiting command reports that it waits, and ^C withdraws it.
  const std::string all = running("true", "-n 2 --per node --name first") + " " +
                          running("true", "-n 2 --per node --name second");
  AtTerminal waits(shell);
  const std::string waiting = job_of(waits.await("^C cancels it"));
  waits.type("\x03");
  EXPECT_EQ(waits.end(), 128 + SIGINT);
  EXPECT_EQ(phase(waiting), "cancelled");
  EXPECT_EQ(live("cancel " + all).code, 0);
}

TEST_F(ExecTest, AttachShowsWhatRanksWriteAndEndsNothing) {
  const std::string id = running("echo begun");
  AtTerminal user(program() + " --dir " + path("c") + " attach " + id);
  const std::string shown = user.await("begun");
  EXPECT_TRUE(holds(shown, "ranks read no input; `orrery exec " + id + "`")) << shown;
  user.type("\x03");
  (void)user.end();
  EXPECT_EQ(phase(id), "running");
}

TEST_F(ExecTest, OutputGoesToFilesOfTheJobsUserAsWell) {
  const std::string script = write("a.sbatch", R"(#!/bin/sh
#SBATCH --account=a --array=3,5 --output=%x-%A_%a.out --error=%2j.%a.err --job-name=sweep
echo out $SLURM_ARRAY_TASK_ID
echo err >&2
)");
  const CliRun run = live("-o json submit --wait --directory " + work_ + " " + script);
  EXPECT_EQ(run.code, 0) << run.err;
  const std::string first = Json::parse(run.out)[0]["id"];
  EXPECT_EQ(slurp(work_ + "/sweep-" + first + "_5.out"), "out 5\n");
  const int second = std::stoi(first) + 1;
  const std::string errors = fmt::format("{}/{:02}.5.err", work_, second);
  EXPECT_EQ(slurp(errors), "err\n");
  struct stat found{};
  ASSERT_EQ(::stat(errors.c_str(), &found), 0);
  EXPECT_EQ(found.st_uid, a_->uid());
  const std::string log = live(fmt::format("logs {}", second)).out;
  EXPECT_TRUE(holds(log, "out 5\n") && holds(log, "err\n")) << log;
  // Each rank has its own file, with all of its output.
  const std::string id =
      submitted("-n 2 --output-file out.%t -- sh -c 'head -c 3000000 /dev/zero'");
  EXPECT_EQ(live("wait " + id).code, 0);
  EXPECT_EQ(fs::file_size(work_ + "/out.0"), 3'000'000U);
  EXPECT_EQ(fs::file_size(work_ + "/out.1"), 3'000'000U);
  const std::string refused =
      submitted("--restarts 0 --output-file " + path("of-root") + " -- true");
  EXPECT_EQ(live("wait " + refused).code, 1);
  const Json job = Json::parse(live("-o json job " + refused).out);
  EXPECT_TRUE(holds(job["blame"], fmt::format("rank 0: cannot write the output to {} as "
                                              "user {}: Permission denied",
                                              path("of-root"), a_->uid())))
      << job;
  EXPECT_FALSE(fs::exists(path("of-root")));
  const CliRun wrong = live("submit --dry-run --output-file a%q -- true");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(holds(wrong.err, "\"%q\" is no pattern")) << wrong.err;
}

}  // namespace
}  // namespace orrery
