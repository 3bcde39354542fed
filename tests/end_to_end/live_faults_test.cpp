// A cluster on this machine under a hostile operator: agents, nodes, ranks, network and disk fail
// while jobs run, and programs that cannot run or do not want to end are submitted.
//
// ORRERY_AWAY (3) is for how many seconds the controller is away.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/end_to_end/cli.hpp"

namespace orrery {

std::string program() { return ORRERY_PROGRAM; }

namespace {

using Json = nlohmann::json;

class LiveFaults : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    // Whatever the cluster leaves behind becomes ours, and is seen at the end.
    ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    // Beats, a line each, until a file ends it.
    (void)write("beat.sh", R"sh(cd "$(dirname "$0")"
name=$1-${RANK:-0}
was=
[ ! -e $name.pid ] || was=$(tr -d '\0' </proc/$(cat $name.pid)/cmdline)
if [ -n "$was" ]; then echo overlap >>$name; fi
echo $$ >$name.pid
echo begun $ORRERY_ATTEMPT >>$name
until [ -e $1.go ]; do
  echo beat >>$name
  sleep 0.1
done
)sh");
  }
  void TearDown() override {
    if (up_) {
      if (HasFailure()) {
        std::cerr << live("jobs --all").out << slurp(path("c/orreryd.log"))
                  << slurp(path("c/nodes/node-0/agent.log"));
      }
      const CliRun down = live("down");
      EXPECT_EQ(down.code, 0) << down.err;
    }
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a process was left behind";
    (void)::umount2(path("c").c_str(), MNT_DETACH);
    Cli::TearDown();
  }

  /// `waits`: keys of controller.yaml.
  void start(const std::string& size, const std::string& waits = "") {
    std::filesystem::create_directories(path("c"));
    (void)write("c/controller.yaml", "apiVersion: orrery/v1\nkind: Controller\n" + waits);
    const CliRun up = live("up " + size);
    ASSERT_EQ(up.code, 0) << up.err;
    up_ = true;
  }
  [[nodiscard]] CliRun live(const std::string& arguments) const {
    return orrery("--dir " + path("c") + " " + arguments);
  }
  [[nodiscard]] std::string submitted(const std::string& arguments) const {
    const bool command = arguments.find("-- ") != std::string::npos;  // else a spec's file
    const CliRun run =
        live(std::string("-o json submit ") + (command ? "--framework torch " : "") + arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.code == 0 ? Json::parse(run.out)["id"].get<std::string>() : "";
  }
  /// Submits a job that beats until its NAME.go exists.
  [[nodiscard]] std::string beating(const std::string& name,
                                    const std::string& options = "-n 2") const {
    return submitted(options + " --name " + name + " -- sh " + path("beat.sh") + " " + name);
  }
  [[nodiscard]] Json job(const std::string& id) const {
    const CliRun run = live("-o json job " + id);
    return run.code == 0 ? Json::parse(run.out) : Json::object();
  }
  [[nodiscard]] std::string node_of(const std::string& id) const {
    return job(id)["parts"][0]["node"];
  }
  [[nodiscard]] std::string health(const std::string& node) const {
    const CliRun run = live("-o json node " + node);
    return run.code == 0 ? Json::parse(run.out).value("health", "") : run.err;
  }

  /// Polls until the condition holds.
  void until(const std::string& what, const std::function<bool()>& is) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!is()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "never came: " << what;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  void until_attempt(const std::string& id, int attempt) const {
    until("attempt " + std::to_string(attempt) + " of job " + id, [&] {
      const Json seen = job(id);
      return seen.value("attempt", 0) == attempt && seen.value("phase", "") == "running";
    });
  }
  /// Waits until all these ranks, NAME-RANK, have beaten again.
  void until_beats(const std::vector<std::string>& ranks) const {
    for (const std::string& rank : ranks) {
      const std::size_t before = slurp(path(rank)).size();
      until("beats of " + rank, [&] { return slurp(path(rank)).size() > before; });
    }
  }
  void let_go(const std::string& name) const { (void)write(name + ".go", ""); }
  /// Returns how often a rank has begun; checks that two of it never ran at once.
  [[nodiscard]] int begins(const std::string& rank) const {
    const std::string text = slurp(path(rank));
    EXPECT_EQ(text.find("overlap"), text.npos) << rank << " was there twice at once";
    int count = 0;
    for (std::size_t at = 0; (at = text.find("begun", at)) != text.npos; ++at) ++count;
    return count;
  }
  [[nodiscard]] pid_t pid_in(const std::string& file) const {
    const std::string text = slurp(path(file));
    return text.empty() ? 0 : std::stoi(text);
  }
  [[nodiscard]] pid_t agent(const std::string& node) const {
    return pid_in("c/nodes/" + node + "/agent.pid");
  }
  void send(pid_t pid, int signal) const {
    ASSERT_GT(pid, 1);
    ASSERT_EQ(::kill(pid, signal), 0);
  }
  /// Processes with this text in their command line.
  [[nodiscard]] std::vector<pid_t> processes_with(const std::string& text) const {
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != name.npos) continue;
      if (slurp(entry.path() / "cmdline").find(text) != std::string::npos) {
        found.push_back(std::stoi(name));
      }
    }
    return found;
  }
  void expect_finished(const std::string& id, int attempts) const {
    const CliRun waited = live("wait " + id);
    EXPECT_EQ(waited.code, 0) << waited.err;
    EXPECT_EQ(job(id)["attempt"], attempts);
  }
  void expect_failed(const std::string& id, const std::string& why) const {
    const CliRun waited = live("wait " + id);
    EXPECT_EQ(waited.code, 1);
    EXPECT_NE(waited.err.find(why), std::string::npos) << waited.err;
  }

 private:
  bool up_ = false;
};

TEST_F(LiveFaults, DeadAgentsAreReplacedUnderTheirRanksAndDeadNodesAndRanksBeginAnew) {
  start("--nodes 4 --accelerators 2", "backoff: 500 ms\n");
  const std::string gang = beating("gang", "-n 4");
  const std::string lost = beating("lost");
  const std::string killed = beating("killed", "-n 2 --restarts 1");
  until_beats({"gang-0", "gang-3", "lost-1", "killed-1"});

  // Kills a rank, twice: one failure is forgiven.
  send(pid_in("killed-1.pid"), SIGKILL);
  // Kills an agent under a gang of two nodes.
  send(agent(node_of(gang)), SIGKILL);
  // Kills a node with all that runs on it.
  const std::string node = node_of(lost);
  send(agent(node), SIGKILL);
  for (const pid_t pid : processes_with("/nodes/" + node + "/attempts/")) {
    // Keeper or guard may have ended with the other; the ranks have.
    (void)::kill(pid, SIGKILL);
  }
  const CliRun up = live("up");
  ASSERT_EQ(up.code, 0) << up.err;

  until_attempt(lost, 2);
  EXPECT_NE(job(lost)["blame"].get<std::string>().find(node), std::string::npos)
      << job(lost)["blame"];
  until_beats({"gang-0", "gang-1", "gang-2", "gang-3", "lost-0"});
  until_attempt(killed, 2);
  until("the second begin", [&] { return begins("killed-0") == 2 && begins("killed-1") == 2; });
  send(pid_in("killed-0.pid"), SIGKILL);
  expect_failed(killed, "signal 9 ended rank 0");
  EXPECT_EQ(job(killed)["attempt"], 2);

  let_go("gang");
  let_go("lost");
  expect_finished(gang, 1);
  expect_finished(lost, 2);
  for (const char* rank : {"gang-0", "gang-1", "gang-2", "gang-3"}) EXPECT_EQ(begins(rank), 1);
  EXPECT_EQ(begins("lost-0"), 2);
}

TEST_F(LiveFaults, FrozenAgentsNeverGiveTwoAttemptsWithEffect) {
  start("--nodes 4 --accelerators 2", "grace: 1 s\nnode_grace: 500 ms\n");
  const std::string brief = beating("brief");
  const std::string safe = beating("safe");
  const std::string once =
      submitted(write("once.yaml",
                      "apiVersion: orrery/v1\nkind: Batch\nname: once\n"
                      "roles: [{accelerators: 2}]\nrestart: {policy: at-once}\n"
                      "launch: {command: [sh, " +
                          path("beat.sh") + ", once]}\n"));
  until_beats({"brief-0", "safe-0", "once-0"});
  const std::string brief_node = node_of(brief);
  const std::string safe_node = node_of(safe);
  const std::string once_node = node_of(once);
  const pid_t first = pid_in("safe-0.pid");
  for (const std::string& node : {brief_node, safe_node, once_node}) send(agent(node), SIGSTOP);

  until("a suspect", [&] { return health(brief_node) == "suspect"; });
  send(agent(brief_node), SIGCONT);
  until("lost nodes", [&] { return health(safe_node) == "lost" && health(once_node) == "lost"; });
  // Jobs that may restart at once have done so elsewhere; jobs that may not wait, and their ranks
  // are unaware.
  until_attempt(once, 2);
  EXPECT_NE(node_of(once), once_node);
  EXPECT_EQ(job(safe)["attempt"], 1);
  EXPECT_EQ(pid_in("safe-0.pid"), first);
  until_beats({"safe-0", "once-0", "brief-0"});
  EXPECT_EQ(health(brief_node), "ready");

  for (const std::string& node : {safe_node, once_node}) send(agent(node), SIGCONT);
  until("nodes that are back",
        [&] { return health(safe_node) == "ready" && health(once_node) == "ready"; });
  // The first attempts of jobs that restarted elsewhere have ended where they ran.
  until("the end of the first attempt",
        [&] { return processes_with("/nodes/" + once_node + "/attempts/" + once + "-1").empty(); });
  until_attempt(safe, 2);
  for (const char* name : {"brief", "safe", "once"}) let_go(name);
  expect_finished(brief, 1);
  expect_finished(safe, 2);
  expect_finished(once, 2);
  EXPECT_EQ(begins("safe-0"), 2);
}

TEST_F(LiveFaults, WithoutAControllerRanksRunOnAndTheirEndsAreKnownOnceItIsBack) {
  const char* asked = std::getenv("ORRERY_AWAY");
  start("--nodes 2 --accelerators 2");
  const std::string lasting = beating("lasting");
  const std::string good = beating("ends", "-n 1");
  const std::string bad = submitted("--restarts 0 -- sh -c 'until [ -e " + path("ends.go") +
                                    " ]; do sleep 0.1; done; echo last words; exit 7'");
  until_beats({"lasting-0", "lasting-1", "ends-0"});
  until_attempt(bad, 1);
  const std::string waiting = submitted("-n 4 -- true");
  const pid_t controller = pid_in("c/orreryd.pid");
  send(controller, SIGKILL);
  let_go("ends");
  until("ends that nobody hears of", [&] { return ::kill(pid_in("ends-0.pid"), 0) != 0; });
  std::this_thread::sleep_for(std::chrono::seconds(asked != nullptr ? std::atoi(asked) : 3));
  until_beats({"lasting-0", "lasting-1"});
  const CliRun up = live("up");
  ASSERT_EQ(up.code, 0) << up.err;
  EXPECT_NE(up.out.find("started orreryd; the rest was already running"), std::string::npos)
      << up.out;
  expect_finished(good, 1);
  expect_failed(bad, "exit status 7 of rank 0");
  EXPECT_EQ(live("logs " + bad).out, "last words\n");
  until_beats({"lasting-0", "lasting-1"});
  let_go("lasting");
  expect_finished(lasting, 1);
  EXPECT_EQ(begins("lasting-0"), 1);
  expect_finished(waiting, 1);
}

/// The loopback interface of the network namespace that this is in.
enum class Loopback { kDown, kUp };

bool set_loopback(Loopback to) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  bool done = ::ioctl(fd, SIOCGIFFLAGS, &request) == 0;
  request.ifr_flags = static_cast<short>(to == Loopback::kUp ? request.ifr_flags | IFF_UP
                                                             : request.ifr_flags & ~IFF_UP);
  done = done && ::ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  ::close(fd);
  return done;
}

TEST_F(LiveFaults, ACutNetworkEndsNothingAndWhatEndedBehindItIsKnown) {
  if (::unshare(CLONE_NEWNET) != 0 || !set_loopback(Loopback::kUp)) {
    GTEST_SKIP() << "NOT RUN: no network namespace without root: " << std::strerror(errno);
  }
  start("--nodes 2 --accelerators 2");
  const std::string lasting = beating("lasting", "-n 3");
  const std::string ends = beating("ends", "-n 1");
  until_beats({"lasting-0", "lasting-2", "ends-0"});
  ASSERT_TRUE(set_loopback(Loopback::kDown));
  let_go("ends");
  until("an end behind the cut", [&] { return ::kill(pid_in("ends-0.pid"), 0) != 0; });
  until_beats({"lasting-0", "lasting-2"});
  ASSERT_TRUE(set_loopback(Loopback::kUp));
  expect_finished(ends, 1);
  until_beats({"lasting-0", "lasting-2"});
  let_go("lasting");
  expect_finished(lasting, 1);
  EXPECT_EQ(begins("lasting-2"), 1);
}

TEST_F(LiveFaults, AFullDiskRefusesSubmissionsAndStillRecordsCancelsAndEnds) {
  std::filesystem::create_directories(path("c"));
  if (::mount("none", path("c").c_str(), "tmpfs", 0, "size=200m") != 0) {
    GTEST_SKIP() << "NOT RUN: no small file system without root: " << std::strerror(errno);
  }
  start("--nodes 1 --accelerators 2");
  const std::string ends = beating("ends", "-n 1");
  const std::string cancelled = beating("cancelled", "-n 1");
  const std::string queued = submitted("-- true");
  until_beats({"ends-0", "cancelled-0"});
  {
    const auto fill_up_to = [&](std::uint64_t left) {
      std::ofstream file(path("c/fill"), std::ios::app | std::ios::binary);
      struct statvfs disk{};
      while (file && ::statvfs(path("c").c_str(), &disk) == 0 &&
             disk.f_bavail * disk.f_bsize > left) {
        file << std::string(std::size_t{64} << 10, 'x') << std::flush;
      }
    };
    fill_up_to(std::uint64_t{60} << 20);
    const CliRun refused = live("submit -- true");
    EXPECT_EQ(refused.code, 1);
    EXPECT_NE(refused.err.find("disk is full"), std::string::npos) << refused.err;
    fill_up_to(0);
  }
  EXPECT_EQ(live("submit -- true").code, 1);
  EXPECT_EQ(live("cancel " + queued).code, 0);
  EXPECT_EQ(live("cancel " + cancelled).code, 0);
  let_go("ends");
  expect_finished(ends, 1);
  EXPECT_NE(live("wait " + cancelled).err.find("cancelled"), std::string::npos);
  // The change was durable, not only in memory.
  send(pid_in("c/orreryd.pid"), SIGKILL);
  std::filesystem::remove(path("c/fill"));
  ASSERT_EQ(live("up").code, 0);
  EXPECT_EQ(job(ends)["phase"], "finished");
  EXPECT_EQ(job(cancelled)["phase"], "cancelled");
  EXPECT_EQ(job(queued)["phase"], "cancelled");
  expect_finished(submitted("-- true"), 1);
}

TEST_F(LiveFaults, AnOperatorChangesFilesUnderARunningCluster) {
  start("--nodes 1 --accelerators 1");
  const auto reread = [&](const std::string& said) {
    send(pid_in("c/orreryd.pid"), SIGHUP);
    until(said, [&] { return slurp(path("c/orreryd.log")).find(said) != std::string::npos; });
  };
  const std::string head = "apiVersion: orrery/v1\nkind: Controller\n";
  (void)write("c/controller.yaml", head + "submit_rate: -1\n");
  reread("submit_rate: expected a number");
  ASSERT_EQ(live("submit -- true").code, 0) << "what is wrong changes nothing";
  (void)write("c/tenants.yaml",
              "apiVersion: orrery/v1\nkind: Tenants\nname: lab\n"
              "tenants: [{name: default}, {name: vision}]\n");
  (void)write("c/controller.yaml", head + "submit_rate: 0.001\nsubmit_burst: 1\n");
  reread("file taken over");
  EXPECT_NE(live("tenants").out.find("vision"), std::string::npos);
  ASSERT_EQ(live("submit --tenant vision -- true").code, 0);
  const CliRun refused = live("submit --tenant vision -- true");
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("submissions a second"), std::string::npos) << refused.err;
  // Ended jobs go to the archive and are still shown.
  ASSERT_EQ(live("wait 0").code, 0);
  (void)write("c/controller.yaml", head + "retain: 0 s\n");
  send(pid_in("c/orreryd.pid"), SIGHUP);
  until("the archive", [&] { return live("explain 0").err.find("archive") != std::string::npos; });
  EXPECT_EQ(job("0")["phase"], "finished");
  EXPECT_EQ(live("wait 0").code, 0);
  EXPECT_NE(live("jobs --all").out.find("\n 0  true"), std::string::npos) << live("jobs --all").out;
  EXPECT_NE(live("cancel 0").err.find("has ended"), std::string::npos);
  // The log holds the tenants, so the file may be removed.
  std::filesystem::remove(path("c/tenants.yaml"));
  send(pid_in("c/orreryd.pid"), SIGKILL);
  ASSERT_EQ(live("up").code, 0);
  EXPECT_NE(live("tenants").out.find("vision"), std::string::npos);
  EXPECT_EQ(job("0")["phase"], "finished");
}

TEST_F(LiveFaults, ProgramsThatCannotRunSayWhyAndThoseThatShoutOrAreDeafEnd) {
  start("--nodes 1 --accelerators 8", "grace: 1 s\n");
  const std::string deaf = submitted("--name deaf -- sh -c 'trap \"\" TERM; echo $$ >" +
                                     path("deaf.pid") + "; while :; do sleep 0.1; done'");
  const std::string loud = submitted(
      "--name loud -- sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo line $i; "
      "done'");
  const std::string missing = submitted("--restarts 0 -- /no/such/program");
  const std::string unfit = submitted("--restarts 0 -- " + path("beat.sh"));
  std::filesystem::create_directories(path("away"));
  std::filesystem::remove(path("away"));
  const CliRun refused = live("submit --directory " + path("away") + " -- true");
  EXPECT_EQ(refused.code, 2);
  const std::string homeless =
      submitted(write("homeless.yaml",
                      "apiVersion: orrery/v1\nkind: Batch\nname: homeless\n"
                      "roles: [{accelerators: 1}]\nrestart: {max: 0}\n"
                      "launch: {command: [\"true\"], directory: " +
                          path("away") + "}\n"));
  expect_failed(missing, "cannot run /no/such/program: No such file or directory");
  expect_failed(unfit, "beat.sh: Permission denied");
  expect_failed(homeless, "cannot run true in " + path("away") + ": No such file or directory");
  expect_finished(loud, 1);
  const std::string lines = live("logs " + loud).out;
  EXPECT_TRUE(lines.ends_with("line 20000\n")) << lines.substr(lines.size() / 2);
  until("a deaf program", [&] { return pid_in("deaf.pid") != 0; });
  const pid_t pid = pid_in("deaf.pid");
  EXPECT_EQ(live("cancel " + deaf).code, 0);
  EXPECT_EQ(job(deaf)["phase"], "stopping");
  EXPECT_EQ(::kill(pid, 0), 0) << "it was not asked first";
  EXPECT_NE(live("wait " + deaf).err.find("cancelled"), std::string::npos);
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST_F(LiveFaults, DrainThenDrainNowEvictsAndSaysWhy) {
  start("--nodes 2 --accelerators 2");
  const std::string id = beating("worker");
  until_beats({"worker-0"});
  const std::string node = node_of(id);
  EXPECT_EQ(live("drain " + node + " --why 'new disk'").code, 0);
  EXPECT_EQ(job(id)["phase"], "running");
  EXPECT_NE(live("nodes").out.find("new disk"), std::string::npos);
  EXPECT_EQ(Json::parse(live("-o json node " + node).out)["drain_why"], "new disk");
  EXPECT_EQ(live("drain " + node + " --now").code, 0);
  until_attempt(id, 2);
  EXPECT_NE(node_of(id), node);
  until("the drained node", [&] { return health(node) == "drained"; });

  // Several nodes at once are each reported; an unknown node does not affect the others.
  const CliRun several = live("drain node-0,node-7 node-1");
  EXPECT_EQ(several.code, 2) << "one is not there";
  EXPECT_NE(several.out.find("node-0 is "), std::string::npos) << several.out;
  EXPECT_NE(several.out.find("node-1 is "), std::string::npos) << several.out;
  EXPECT_NE(several.err.find("node-7: "), std::string::npos) << several.err;
  EXPECT_EQ(live("resume node-0 node-1").code, 0);
  EXPECT_EQ(health("node-0"), "ready");

  const CliRun past = live("drain node-0 --from 2020-01-01T00:00:00Z --to 2020-01-02T00:00:00Z");
  EXPECT_EQ(past.code, 1);
  EXPECT_NE(past.err.find("is over already"), std::string::npos) << past.err;
  let_go("worker");
  expect_finished(id, 2);
}

/// Starts an agent beside the one of node-0, from a copy of its disk.
TEST_F(LiveFaults, ASecondAgentOfACopiedDiskIsRefusedAndEnds) {
  start("--nodes 1 --accelerators 2");
  const std::string id = beating("worker");
  until_beats({"worker-0"});
  const pid_t first = agent("node-0");
  std::filesystem::create_directories(path("copy"));
  std::filesystem::copy(path("c/nodes/node-0/tls"), path("copy/tls"));
  const std::string address = Json::parse(slurp(path("c/cluster.json")))["address"];
  const std::string second = std::filesystem::path(program()).parent_path() / "orrery-agent";
  const std::string arguments =
      " --controller " + address + " --node node-0 --emulate h100:2 --allow-agent-user";
  int status = std::system((second + arguments + " --boot 77 --dir " + path("copy") + " 2>" +
                            path("copy.log") + " </dev/null")
                               .c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_NE(slurp(path("copy.log")).find("another agent speaks for \"node-0\""), std::string::npos)
      << slurp(path("copy.log"));
  EXPECT_NE(live("node node-0").out.find("another agent speaks for"), std::string::npos);
  const std::string log = slurp(path("c/orreryd.log"));
  std::size_t refusals = 0;
  for (std::size_t at = 0; (at = log.find("agent refused", at)) != log.npos; ++at) ++refusals;
  EXPECT_GE(refusals, 1u);
  EXPECT_LE(refusals, 3u) << log;

  // An agent that joins with a token of its own takes the node over for good.
  const CliRun token = live("node token node-0");
  ASSERT_EQ(token.code, 0) << token.err;
  EXPECT_NE(token.err.find("note: node-0 already has an agent"), std::string::npos) << token.err;
  EXPECT_NE(token.err.find("orrery-agent --node node-0 --controller " + address), std::string::npos)
      << token.err;
  (void)write("token", token.out);
  const pid_t third = ::fork();
  if (third == 0) {
    const std::string shell = "exec " + second + arguments + " --boot 78 --ca " +
                              path("c/tls/ca.pem") + " --dir " + path("new") + " --join @" +
                              path("token") + " 2>" + path("new.log");
    ::execl("/bin/sh", "sh", "-c", shell.c_str(), nullptr);
    ::_exit(127);
  }
  until("the end of the first agent", [&] {
    int ended = 0;
    return ::waitpid(first, &ended, WNOHANG) == first;
  });
  EXPECT_NE(slurp(path("c/nodes/node-0/agent.log")).find("this agent leaves its node"),
            std::string::npos);
  until_attempt(id, 2);
  let_go("worker");
  expect_finished(id, 2);
  ASSERT_EQ(::kill(third, SIGTERM), 0);
  until("the end of the third agent", [&] { return ::waitpid(third, nullptr, WNOHANG) == third; });
}

/// Limits the harm that two lines of a program can do to a fleet.
TEST_F(LiveFaults, AJobThatAccusesItsNodesLosesItsRestartsAndTheFleetNoNode) {
  for (const char* node : {"c/nodes/node-0", "c/nodes/node-1"}) {
    std::filesystem::create_directories(path(node));
    (void)write(node + std::string("/agent.yaml"),
                "apiVersion: orrery/v1\nkind: Agent\nburn_in: {command: [\"true\"]}\n");
  }
  start("--nodes 2 --accelerators 2", "backoff: 100 ms\n");
  (void)write("lie.sh", "echo begun >>" + path("begun") +
                            "\necho '{\"wrong\": \"x\", \"rank\": 0}' >\"$ORRERY_PROGRESS\"\n"
                            "sleep 0.3\nexit 1\n");
  const std::string id = submitted("-n 2 --restarts 2 --name liar -- sh " + path("lie.sh"));
  std::size_t out = 0;
  until("the end of the job", [&] {
    const Json nodes = Json::parse(live("-o json nodes").out)["nodes"];
    std::size_t now = 0;
    for (const Json& node : nodes) now += node["health"] == "ready" ? 0 : 1;
    out = std::max(out, now);
    return job(id).value("phase", "") == "failed";
  });
  EXPECT_LE(out, 1u);
  // One accusation was believed, the next count as the program's own: the first attempt and two
  // restarts.
  EXPECT_EQ(job(id)["attempt"], 4);
  until("both nodes", [&] { return health("node-0") == "ready" && health("node-1") == "ready"; });
}

TEST_F(LiveFaults, AControllerThatListensEverywhereNamesAnAddressOthersReach) {
  start("--nodes 1 --accelerators 2");
  ASSERT_EQ(live("down").code, 0);
  const std::string daemon = std::filesystem::path(program()).parent_path() / "orreryd";
  const auto announced = [&](const std::string& options) {
    std::filesystem::remove(path("c/orreryd.pid"));
    const pid_t pid = ::fork();
    if (pid == 0) {
      const std::string shell =
          "exec " + daemon + " --dir " + path("c") + " " + options + " 2>" + path("daemon.log");
      ::execl("/bin/sh", "sh", "-c", shell.c_str(), nullptr);
      ::_exit(127);
    }
    until("the controller", [&] { return pid_in("c/orreryd.pid") == pid; });
    EXPECT_EQ(::kill(pid, SIGTERM), 0);
    EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
    return Json::parse(slurp(path("c/cluster.json")));
  };
  const Json named = announced("--listen 0.0.0.0:0 --name ctl.example");
  EXPECT_TRUE(named["address"].get<std::string>().starts_with("ctl.example:")) << named;
  EXPECT_TRUE(named["listen"].get<std::string>().starts_with("0.0.0.0:")) << named;
  // The agent listens again, on the same port and under its own name.
  const Json again = announced("");
  EXPECT_EQ(again["listen"], named["listen"]) << again;
  EXPECT_FALSE(again["address"].get<std::string>().starts_with("0.0.0.0")) << again;
}

TEST_F(LiveFaults, NodesThatTheFileNamesAndTheClusterLacksAreTold) {
  start("--nodes 2 --accelerators 2");
  ASSERT_EQ(live("down").code, 0);
  std::string fleet = slurp(path("c/fleet.yaml"));
  for (const auto& [was, is] : {std::pair<std::string, std::string>("count: 2", "count: 3"),
                                {"node-[0-1]", "node-[0-2]"}}) {
    const std::size_t at = fleet.find(was);
    ASSERT_NE(at, std::string::npos) << fleet;
    fleet.replace(at, was.size(), is);
  }
  (void)write("c/fleet.yaml", fleet);
  const CliRun up = live("up");
  ASSERT_EQ(up.code, 0) << up.err;
  EXPECT_NE(up.out.find("of 2 nodes"), std::string::npos) << up.out;
  EXPECT_NE(up.err.find("fleet.yaml names node-2"), std::string::npos) << up.err;
  const CliRun nodes = live("nodes");
  EXPECT_NE(nodes.err.find("fleet.yaml names node-2"), std::string::npos) << nodes.err;
  EXPECT_NE(slurp(path("c/orreryd.log")).find("fleet.yaml names other nodes"), std::string::npos);
}

}  // namespace
}  // namespace orrery
