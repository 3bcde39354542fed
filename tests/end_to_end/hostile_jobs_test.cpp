// Jobs that mean harm, as unprivileged users on a cluster whose agents are root: what they can
// read, signal and leave behind. The same probes as root see all of it, which shows that they can
// fail.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
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

/// Prints which access it has to each file of the first list and each process of the second.
constexpr const char* kProbe = R"sh(
while IFS= read -r f; do
  [ -r "$f" ] && echo "READ $f"
  [ -w "$f" ] && echo "WRITE $f"
done <"$1"
while read -r p; do
  for what in environ mem maps; do
    (exec 3<"/proc/$p/$what") 2>/dev/null && echo "PROC $p $what"
  done
  ls "/proc/$p/fd" >/dev/null 2>&1 && echo "PROC $p fd"
  kill -0 "$p" 2>/dev/null && echo "SIGNAL $p"
done <"$2"
echo "OWN $(grep -ac ORRERY_JOB_ID= /proc/$$/environ)"
)sh";

/// A process, to check whether it stays alive.
class Watched {
 public:
  explicit Watched(pid_t pid)
      : pid_(pid), fd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool alive() const {
    pollfd poll{fd_.get(), POLLIN, 0};
    return fd_.valid() && ::poll(&poll, 1, 0) == 0;
  }

 private:
  pid_t pid_;
  FileDescriptor fd_;
};

std::optional<uid_t> uid_of(const fs::path& path) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return std::nullopt;
  return found.st_uid;
}

std::vector<pid_t> processes(const std::function<bool(const fs::path&)>& wanted) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != name.npos || !wanted(entry.path())) continue;
    found.push_back(std::stoi(name));
  }
  return found;
}

/// Two nodes. The jobs of tenants a and b run as two users; c names a user that does not exist, and
/// `default` names none.
class HostileJobsTest : public Cli {
 protected:
  void SetUp() override {
    ASSERT_EQ(::geteuid(), 0U) << "this suite makes two users and starts agents that become them: "
                                  "run it as root";
    Cli::SetUp();
    fs::permissions(path(""), fs::perms(0711));
    a_.emplace('a');
    b_.emplace('b');
    (void)write("probe.sh", kProbe);
    fs::create_directories(path("c/nodes"));
    write_private("c/tenants.yaml",
                  fmt::format("apiVersion: orrery/v1\nkind: Tenants\nname: t\ntenants:\n"
                              "- {{name: default}}\n- {{name: a, run_as: {}}}\n"
                              "- {{name: b, run_as: {}}}\n"
                              "- {{name: c, run_as: orrery-no-such-user}}\n",
                              a_->name(), b_->name()));
  }
  void TearDown() override {
    if (::geteuid() != 0) return;
    if (HasFailure()) {
      std::cerr << slurp(path("c/orreryd.log")) << slurp(path("c/nodes/node-0/agent.log"));
    }
    EXPECT_EQ(live("down").code, 0);
    EXPECT_EQ(processes_of(*a_), std::vector<pid_t>());
    EXPECT_EQ(processes_of(*b_), std::vector<pid_t>());
    Cli::TearDown();
  }

  /// Starts the cluster; agents without keys get all permissions from `up`.
  void start(const std::string& agent_keys) {
    for (const char* node : {"node-0", "node-1"}) {
      fs::create_directories(path("c/nodes/") + node);
      write_private(std::string("c/nodes/") + node + "/agent.yaml",
                    "apiVersion: orrery/v1\nkind: Agent\n" + agent_keys);
    }
    const CliRun up = live("up --nodes 2 --accelerators 2");
    ASSERT_EQ(up.code, 0) << up.err;
    said_by_up_ = up.out;
  }
  void write_private(const std::string& name, const std::string& text) const {
    (void)write(name, text);
    fs::permissions(path(name), fs::perms(0600));
  }
  [[nodiscard]] CliRun live(const std::string& arguments) const {
    return orrery("--dir " + path("c") + " " + arguments);
  }
  [[nodiscard]] std::string submitted(const std::string& arguments) const {
    const CliRun run = live("-o json submit " + arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.code == 0 ? Json::parse(run.out)["id"] : "";
  }
  [[nodiscard]] Json job(const std::string& id) const {
    return Json::parse(live("-o json job " + id).out);
  }
  void await_phase(const std::string& id, const std::string& phase) const {
    while (job(id)["phase"] != phase) ASSERT_TRUE(!job(id).contains("ended")) << job(id);
  }
  /// The log of a job that ends well.
  [[nodiscard]] std::string said(const std::string& arguments) const {
    const std::string id = submitted(arguments);
    const CliRun waited = live("wait " + id);
    EXPECT_EQ(waited.code, 0) << waited.err;
    return live("logs " + id).out;
  }

  [[nodiscard]] static std::vector<pid_t> processes_of(const ThrowawayUser& user) {
    return processes([&](const fs::path& process) { return uid_of(process) == user.uid(); });
  }
  /// Controller, agents, keepers and their guards.
  [[nodiscard]] std::vector<pid_t> cluster_processes() const {
    return processes([&](const fs::path& process) {
      const std::string line = slurp(process / "cmdline");
      return line.find("/orrery") != line.npos && line.find(path("c")) != line.npos &&
             uid_of(process) == 0U;
    });
  }
  /// Everything under the cluster's directory and where the agents have their sockets.
  [[nodiscard]] std::vector<std::string> cluster_files() const {
    std::vector<std::string> files;
    std::vector<fs::path> places{path("c")};
    for (const char* node : {"node-0", "node-1"}) {
      const fs::path link = path("c/nodes/") + node + "/run";
      if (fs::is_symlink(link)) places.push_back(fs::read_symlink(link));
    }
    for (const fs::path& place : places) {
      files.push_back(place);
      std::vector<std::string> inside;
      std::error_code gone;
      do {  // what an attempt leaves behind may be removed meanwhile
        inside.clear();
        fs::recursive_directory_iterator at(place, gone);
        for (; !gone && at != fs::recursive_directory_iterator(); at.increment(gone)) {
          inside.push_back(at->path());
        }
      } while (gone);
      files.insert(files.end(), inside.begin(), inside.end());
    }
    return files;
  }
  /// Starts a job of tenant b that runs on and has data to steal; returns its number.
  [[nodiscard]] std::string start_victim() const {
    const std::string spec = write("victim.yaml", R"(apiVersion: orrery/v1
kind: Batch
name: victim
tenant: b
restart: {max: 0}
launch:
  command: [sh, -c, 'echo mine >secret; echo said; exec sleep 1000']
  environment: {API_KEY: sk-123}
roles: [{accelerators: 1}]
)");
    const std::string id = submitted(spec);
    await_phase(id, "running");
    while (live("logs " + id).out.find("said") == std::string::npos) {
    }
    return id;
  }
  /// The output of the probe as a job of a tenant.
  [[nodiscard]] std::vector<std::string> probe(const std::string& tenant) const {
    std::string files;
    for (const std::string& file : cluster_files()) files += file + "\n";
    std::string pids;
    for (const pid_t pid : cluster_processes()) pids += fmt::format("{}\n", pid);
    for (const pid_t pid : processes_of(*b_)) pids += fmt::format("{}\n", pid);
    const std::string command = fmt::format("--tenant {} -- sh {} {} {}", tenant, path("probe.sh"),
                                            write("files", files), write("pids", pids));
    std::istringstream text(said(command));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }

  std::optional<ThrowawayUser> a_;
  std::optional<ThrowawayUser> b_;
  std::string said_by_up_;
};

/// The lines of the probe that show access which the user of tenant a has no right to.
std::vector<std::string> stolen(const std::vector<std::string>& lines, const ThrowawayUser& user) {
  std::vector<std::string> found;
  for (const std::string& line : lines) {
    const std::size_t space = line.find(' ');
    const std::string verb = line.substr(0, space);
    const bool file = verb == "READ" || verb == "WRITE";
    if (file && uid_of(line.substr(space + 1)) == user.uid()) continue;
    if (verb != "OWN") found.push_back(line);
  }
  return found;
}

bool names(const std::vector<std::string>& lines, const std::string& words) {
  return std::ranges::any_of(
      lines, [&](const std::string& line) { return line.find(words) != std::string::npos; });
}

TEST_F(HostileJobsTest, AJobReadsWritesAndSignalsNothingButItsOwn) {
  start("allow_agent_user: false\n");
  EXPECT_EQ(said_by_up_.find("WARNING"), std::string::npos) << said_by_up_;
  const std::string victim = start_victim();
  ASSERT_EQ(processes_of(*b_).size(), 1U);
  const std::vector<std::string> files = cluster_files();
  for (const char* known : {"/token", "/tokens", "/tls/ca.key", "/steps.key", "/store/store.db",
                            "/audit.log", "/secret", "/launch", "/socket", "/progress", ".log"}) {
    EXPECT_TRUE(names(files, known)) << known << " is not among what is probed";
  }
  const std::vector<std::string> lines = probe("a");
  ASSERT_TRUE(names(lines, "OWN 1")) << "the probe did not run to its end: " << Json(lines);
  EXPECT_EQ(stolen(lines, *a_), std::vector<std::string>());
  EXPECT_EQ(job(victim)["phase"], "running");
}

TEST_F(HostileJobsTest, WhereTheOperatorAllowsJobsAsRootTheyReadAll) {
  start("telemetry: 1 s\n");
  EXPECT_NE(said_by_up_.find("WARNING: jobs run as root"), std::string::npos) << said_by_up_;
  (void)start_victim();
  const std::vector<std::string> lines = stolen(probe("default"), *a_);
  for (const char* what :
       {"READ", "WRITE", "/tls/ca.key", "/secret", "environ", "mem", "maps", "fd", "SIGNAL"}) {
    EXPECT_TRUE(names(lines, what)) << what;
  }
  const CliRun doctor = live("doctor --fleet");
  EXPECT_NE(doctor.out.find("allow_agent_user on 2 of 2"), std::string::npos) << doctor.out;
}

TEST_F(HostileJobsTest, SignalsToAllReachNoneButItsUsers) {
  start("allow_agent_user: false\n");
  const std::string victim = start_victim();
  std::vector<Watched> others;
  for (const pid_t pid : cluster_processes()) others.emplace_back(pid);
  for (const pid_t pid : processes_of(*b_)) others.emplace_back(pid);
  ASSERT_GE(others.size(), 6U) << "controller, two agents, a keeper, its guard and a rank";
  const std::string other = submitted("--tenant a --restarts 0 -- sleep 1000");
  await_phase(other, "running");
  std::string kills = "kill -9 -1;";
  for (const Watched& each : others) kills += fmt::format(" kill -9 {};", each.pid());
  const std::string log = said("--tenant a -- sh -c '" + kills + " echo through'");
  EXPECT_NE(log.find("through"), std::string::npos) << log;
  EXPECT_NE(log.find("not permitted"), std::string::npos) << log;
  for (const Watched& each : others) EXPECT_TRUE(each.alive()) << each.pid();
  EXPECT_EQ(job(victim)["phase"], "running");
  EXPECT_EQ(job(victim)["attempt"], 1);
  // Jobs of one user are one principal: kill -1 may end them all.
  EXPECT_EQ(live("wait " + other).code, 1);
}

TEST_F(HostileJobsTest, WhatItForksAndWritesEndsWithIt) {
  start("allow_agent_user: false\n");
  const std::string victim = start_victim();
  const std::string forks = write("forks.sh", R"(
i=0
while [ $i -lt 100 ]; do
  setsid sh -c 'trap "" TERM HUP INT; unset ORRERY_PROGRESS; exec sleep 1000' &
  i=$((i + 1))
done
head -c 100000 /dev/urandom >$ORRERY_PROGRESS
echo '{"rank": 4000000000, "epoch": 4000000000, "step": -1}' >$ORRERY_PROGRESS
echo '{"step": 7}' >$ORRERY_PROGRESS
yes "flood" | head -c 300000000
head -c 10000000 /dev/zero >$ORRERY_SCRATCH/fill
d=$ORRERY_SCRATCH; cd $d; i=0
while [ $i -lt 50 ]; do mkdir deep; cd deep; i=$((i + 1)); done
echo done
)");
  const std::string id = submitted("--tenant a --restarts 0 -- sh " + forks);
  const CliRun waited = live("wait " + id);
  EXPECT_EQ(waited.code, 0) << waited.err;
  EXPECT_EQ(processes_of(*a_), std::vector<pid_t>()) << "daemons are gone before the job has ended";
  std::uintmax_t log_bytes = 0;
  for (const std::string& file : cluster_files()) {
    const bool log = file.find("/" + id + "-1/") != file.npos && file.find(".log") != file.npos;
    if (log) log_bytes += fs::file_size(file);
  }
  constexpr std::uintmax_t kLogBytesMax = std::uintmax_t{4} * (64U << 20U);
  EXPECT_GT(log_bytes, kLogBytesMax / 2);
  EXPECT_LE(log_bytes, kLogBytesMax + (1U << 20U)) << "older files of the log go";
  EXPECT_EQ(job(victim)["phase"], "running");
  EXPECT_EQ(job(victim)["attempt"], 1);
  const Json nodes = Json::parse(live("-o json nodes").out)["nodes"];
  for (const Json& node : nodes) {
    EXPECT_EQ(node["health"], "ready");
  }
}

TEST_F(HostileJobsTest, RanksHaveTheirUsersRightsHomeAndDirectories) {
  start("allow_agent_user: false\n");
  const std::string script = write("who.sh", R"sh(
echo "user $(id -un) groups $(id -G) home $HOME $USER $LOGNAME $SHELL"
grep -E '^(NoNewPrivs|CapInh|CapPrm|CapEff|CapAmb):' /proc/self/status | tr '\t' ' '
echo "umask $(umask) files $(ls /proc/self/fd | tr '\n' ' ')"
echo here >file && echo there >$ORRERY_SCRATCH/file
echo "modes $(stat -c %a . $ORRERY_SCRATCH $ORRERY_PROGRESS | tr '\n' ' ')"
echo out >/dev/stderr
echo "id $ORRERY_JOB_ID node $ORRERY_NODE local $ORRERY_LOCAL_RANK"
)sh");
  const std::string spec = write("who.yaml",
                                 "apiVersion: orrery/v1\nkind: Batch\nname: who\ntenant: a\n"
                                 "roles: [{accelerators: 1}]\nlaunch: {command: [sh, " +
                                     script + "]}\n");
  const std::string log = said(spec);
  const auto expect = [&](const std::string& words) {
    EXPECT_NE(log.find(words), std::string::npos) << words << " is missing in\n" << log;
  };
  expect(fmt::format("user {0} groups {1} home /nonexistent {0} {0} /bin/sh\n", a_->name(),
                     std::to_string(::getpwnam(a_->name().c_str())->pw_gid)));
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"}) {
    expect(std::string(set) + ": 0000000000000000\n");
  }
  expect("NoNewPrivs: 1\n");
  expect("umask 0022 files 0 1 2 3 \n");  // 3 is what ls reads.
  expect("modes 700 700 600 \nout\n");
  expect("id 0 node node-");
  expect("local 0\n");
  const std::string sbatch = write("steps.sbatch", R"(#!/bin/sh
#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=1 --account=a
id -un
srun id -un
stat -c '%U %a' "$ORRERY_STEP_SECRET_FILE" "$0"
)");
  const std::string steps = said(sbatch);
  EXPECT_EQ(steps, fmt::format("{0}\n{0}\n{0}\n{0} 600\n{0} 700\n", a_->name())) << steps;
}

TEST_F(HostileJobsTest, AJobWithoutAUserOrWithAnUnknownOneIsRefusedAndNoNodeIsBlamed) {
  start("allow_agent_user: false\n");
  const CliRun refused = live("submit -- true");
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("run_as of its tenant"), std::string::npos) << refused.err;
  const std::string id = submitted("--tenant c --restarts 3 -- true");
  EXPECT_EQ(live("wait " + id).code, 1);
  const auto expect_refused = [&] {
    const Json found = job(id);
    EXPECT_EQ(found["phase"], "failed");
    EXPECT_EQ(found["attempt"], 1);
    EXPECT_EQ(found["reason"], "refused");
    EXPECT_EQ(found["run_as"], "orrery-no-such-user");
    EXPECT_EQ(found["submitter"], "owner");
    EXPECT_NE(std::string(found["blame"]).find("no user \"orrery-no-such-user\" on this node"),
              std::string::npos)
        << found;
  };
  expect_refused();
  const Json nodes = Json::parse(live("-o json nodes").out)["nodes"];
  for (const Json& node : nodes) {
    EXPECT_EQ(node["health"], "ready");
    EXPECT_EQ(node["faults"], 0);
    EXPECT_EQ(node["job_users"], "mapped");
  }
  ASSERT_EQ(live("down").code, 0);
  ASSERT_EQ(live("up").code, 0);
  expect_refused();
  EXPECT_NE(live("jobs --all --user owner").out.find("owner"), std::string::npos);
  EXPECT_EQ(live("jobs --all --user ada").out, "no jobs\n");
}

}  // namespace
}  // namespace orrery
