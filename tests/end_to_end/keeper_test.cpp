// The keeper as seen by an agent: real processes, a real socket, and every way in which either
// ends.
#include "tests/end_to_end/keeper_fixture.hpp"

namespace orrery {

std::string keeper_program() { return ORRERY_KEEPER; }

namespace {

const std::string kSaysStep1 = "echo '{\"step\":1}' >$ORRERY_PROGRESS; ";
/// Prints its own process id and that of a daemon that no process waits for.
const std::string kWithDaemon = "echo $$; (setsid sleep 1000 & echo $!); " + kSaysStep1;

TEST_F(KeeperTest, RunsRanksKeepsWhatTheySayAndReportsThatTheyAreDone) {
  start(
      launch("echo hello $RANK of $WORLD_SIZE; grep NoNewPrivs /proc/self/status; "
             "echo bad >$ORRERY_PROGRESS; "
             "echo '{\"step\":5,\"loss\":1.5,\"checkpoint\":\"c\"}' >$ORRERY_PROGRESS",
             2));
  await_stage(RankStage::kGone);
  ASSERT_TRUE(report().end);
  EXPECT_EQ(report().end->kind, ExitKind::kDone) << report().end->blame.evidence;
  EXPECT_EQ(report().up_epoch, 1u);
  EXPECT_EQ(report().progress.done, 0.5);
  EXPECT_EQ(agent_->status->progress.loss, 1.5);
  EXPECT_EQ(agent_->status->progress.bad_lines, 2u);
  EXPECT_EQ(output(1), "hello 1 of 2\nNoNewPrivs:\t1\n");
  EXPECT_EQ(slurp(files_.logs + "/gang-0-rank-0.log"), "hello 0 of 2\nNoNewPrivs:\t1\n");
  release();
}

/// A launch of a gang of two nodes, both this machine, with two ranks each.
KeeperLaunch mpi_launch(KeeperLaunch launch, std::uint32_t here) {
  launch.facts.style = LaunchStyle::kMpi;
  launch.gangs[0].nodes = {{"127.0.0.1", {0, 1}}, {"127.0.0.1", {2, 3}}};
  launch.gangs[0].here = here;
  launch.ranks.shares[0].ranks = launch.gangs[0].nodes[here].ranks;
  return launch;
}

TEST_F(KeeperTest, MpirunRunsOnceAndStartsTheWholeGang) {
  const bool real = std::filesystem::exists("/usr/bin/mpirun");
  const std::string each = "'echo I am $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE'";
  const std::string run =
      "mpirun --allow-run-as-root --hostfile $ORRERY_HOSTFILE --rankfile $ORRERY_RANKFILE sh -c ";
  start(mpi_launch(launch(real ? "HOME=$PWD " + run + each + " | sort" : "cat $ORRERY_HOSTFILE", 2),
                   0));
  await_stage(RankStage::kGone);
  EXPECT_EQ(report().end->kind, ExitKind::kDone) << report().end->blame.evidence;
  EXPECT_EQ(output(),
            real ? "I am 0 of 4\nI am 1 of 4\nI am 2 of 4\nI am 3 of 4\n" : "127.0.0.1 slots=4\n");
  release();
  if (!real) GTEST_SKIP() << "NOT RUN: no mpirun here; Debian has it in openmpi-bin";
}

TEST_F(KeeperTest, ANodeOfMpirunsGangThatItDoesNotRunOnHoldsItsDevicesAndIsDone) {
  start(mpi_launch(launch("exit 3", 2), 1));
  await_stage(RankStage::kGone);
  EXPECT_EQ(report().up_epoch, 1u);
  EXPECT_EQ(report().end->kind, ExitKind::kDone);
  EXPECT_FALSE(std::filesystem::exists(files_.logs + "/gang-0-rank-0.log"));
  release();
}

TEST_F(KeeperTest, AJaxProgramIsToldItsPlaceBeforeItBegins) {
  const std::string& home = files_.directory;
  std::filesystem::create_directory(home + "/jax");
  std::ofstream(home + "/jax/__init__.py") << "from . import distributed\n";
  std::ofstream(home + "/jax/distributed.py")
      << "def initialize(coordinator_address, num_processes, process_id):\n"
         "    print('process', process_id + 0, 'of', num_processes + 0, coordinator_address)\n";
  std::ofstream(home + "/beside.py") << "word = 'beside'\n";
  std::ofstream(home + "/program.py")
      << "import sys, beside\nprint(__name__, sys.argv[1:], beside.word)\n";
  KeeperLaunch jax = launch("", 2);
  jax.facts.style = LaunchStyle::kJax;
  jax.facts.command = {"python3", "-m", "orrery_jax", home + "/program.py", "a", "b"};
  jax.facts.environment = {{"PYTHONPATH", home + ":" + ORRERY_PYTHON},
                           {"PYTHONDONTWRITEBYTECODE", "1"}};
  start(jax);
  await_stage(RankStage::kGone);
  EXPECT_EQ(output(1), "process 1 of 2 127.0.0.1:29500\n__main__ ['a', 'b'] beside\n");
  release();
}

TEST_F(KeeperTest, RanksThatHangEndWithTheRankTheStepAndTheirStacks) {
  const std::string& home = files_.directory;
  start(
      launch("echo '{\"quiet\":0.5}' >$ORRERY_PROGRESS; for step in 1 2 3 4; do "
             "echo '{\"step\":'$step',\"rank\":'$RANK'}' >$ORRERY_PROGRESS; "
             "[ $RANK$step = 13 ] && { setsid tail -f /dev/null & exec sleep 1000; }; done; "
             "exec sleep 1000",
             2));
  await_stage(RankStage::kGone);
  EXPECT_EQ(report().end->kind, ExitKind::kProgram);
  const std::string& why = report().end->blame.evidence;
  EXPECT_TRUE(why.starts_with("no progress for ")) << why;
  EXPECT_NE(why.find("rank 1 told step 3 last"), std::string::npos) << why;
  EXPECT_TRUE(why.ends_with("stacks are in " + home + "/stacks")) << why;
  const std::string stacks = slurp(home + "/stacks/gang-0-rank-1.txt");
  EXPECT_NE(stacks.find(": sleep\n"), std::string::npos) << stacks;
  EXPECT_NE(stacks.find(": tail\n"), std::string::npos) << "in a session of its own\n" << stacks;
  EXPECT_NE(stacks.find(" sleep: S (sleeping)"), std::string::npos) << stacks;
  release();
}

TEST_F(KeeperTest, OneRankThatFailsEndsTheOthersAndIsNamed) {
  start(launch("[ $RANK = 1 ] && exit 3; exec sleep 1000", 3));
  await_stage(RankStage::kGone);
  EXPECT_EQ(report().end->kind, ExitKind::kProgram);
  EXPECT_EQ(report().end->blame.evidence, "exit status 3 of rank 1");
}

TEST_F(KeeperTest, WhatAProgramWritesOfABrokenMachineIsItsClaim) {
  start(launch("echo 'save: No space left on device' >&2; exit 1"));
  await_stage(RankStage::kGone);
  EXPECT_EQ(report().end->kind, ExitKind::kClaim);
  EXPECT_EQ(report().end->blame.layer, FaultLayer::kStorage);
  EXPECT_EQ(report().end->blame.evidence, "exit status 1 of rank 0: save: No space left on device");
}

TEST_F(KeeperTest, ARankThatTakesMoreMemoryThanItAskedForEndsAndIsToldWhy) {
  KeeperLaunch greedy = launch("head -c 200m /dev/zero | tail -c 200m >/dev/null");
  greedy.needs = {{.gang = 0, .cpu = 1000, .memory = 48}};
  start(greedy);
  await([&] { return agent_->status && agent_->status->report.stage >= RankStage::kStarting; });
  if (!agent_->status->notes.empty()) {
    GTEST_SKIP() << "NOT RUN HERE: " << agent_->status->notes.front();
  }
  await_stage(RankStage::kGone);
  EXPECT_EQ(report().end->kind, ExitKind::kProgram);
  EXPECT_EQ(
      report().end->blame.evidence,
      "signal 9 ended rank 0: out of memory: the kernel killed 1 of the job's processes here, "
      "which may use 48 MiB together");
}

TEST_F(KeeperTest, AProgramThatIsNotThereIsNamed) {
  KeeperLaunch missing = launch("");
  missing.facts.command = {"no-such-program"};
  start(missing);
  await_stage(RankStage::kGone);
  EXPECT_EQ(report().end->kind, ExitKind::kProgram);
  EXPECT_EQ(report().end->blame.evidence,
            "exit status 127 of rank 0: cannot run no-such-program: No such file or directory");
}

TEST_F(KeeperTest, WhoIgnoresSigtermIsKilledAfterTheGrace) {
  start(launch("trap '' TERM; " + kSaysStep1 + "while :; do sleep 1000; done"));
  await_step(1);
  agent_->order(EndRanks{report().token, Duration::milliseconds(50)});
  await_stage(RankStage::kGone);
  EXPECT_FALSE(report().end);
}

TEST_F(KeeperTest, WhoEndsAtSigtermMayFinishFirst) {
  start(launch("trap 'echo saved; exit 0' TERM; " + kSaysStep1 + "sleep 1000 & wait"));
  await_step(1);
  agent_->order(EndRanks{report().token, Duration::seconds(1000)});
  await_stage(RankStage::kGone);
  EXPECT_EQ(output(), "saved\n");
}

/// The limit on CPU of the group that a process is in, as the kernel says it.
std::string cpu_limit_of(pid_t process) {
  const std::string groups = slurp("/proc/" + std::to_string(process) + "/cgroup");
  const Result<ControlGroupPlace> place = own_control_group({groups, slurp("/proc/self/mounts")});
  if (!place) return place.error().message;
  const bool v2 = place->version == ControlGroupPlace::Version::kV2;
  return slurp(v2 ? place->directory + "/cpu.max" : place->cpu + "/cpu.cfs_quota_us");
}

TEST_F(KeeperTest, ALowerClockOfProcessorsIsALowerQuotaOfRunningRanks) {
  KeeperLaunch whole = launch(kWithDaemon + "exec sleep 1000", 2);
  whole.device_cpu = 1000;
  start(whole);
  const std::vector<pid_t> pids = processes();
  LaunchRanks slower = whole.ranks;
  slower.shares[0].clock = 0.6;
  agent_->order(slower);
  await([&] {
    return report().clocks == std::vector<double>{0.6} || !agent_->status->notes.empty();
  });
  if (!agent_->status->notes.empty()) {
    await([&] { return report().clocks == std::vector<double>{1}; });
    GTEST_SKIP() << "NOT RUN HERE: " << agent_->status->notes.front();
  }
  EXPECT_TRUE(cpu_limit_of(pids.at(0)).starts_with("120000")) << cpu_limit_of(pids[0]);
  EXPECT_TRUE(cpu_limit_of(pids.at(1)).starts_with("120000")) << "a daemon of theirs, too";
  agent_->order(whole.ranks);
  await([&] { return report().clocks == std::vector<double>{1}; });
  EXPECT_FALSE(cpu_limit_of(pids[0]).starts_with("120000"));
}

TEST_F(KeeperTest, AgentsComeAndGoAndTheRanksDoNotNotice) {
  start(launch("echo '{\"rank\":0,\"compute\":0.5}' >$ORRERY_PROGRESS; " + kWithDaemon +
               "exec sleep 1000"));
  const std::vector<pid_t> before = processes();
  agent_->disconnect();
  TestAgent second(*real_);
  second.connect(files_);
  second.order(AdoptKeeper{});
  await([&] { return second.status && !second.paces.empty(); });
  EXPECT_EQ(second.paces, (std::vector<RankPace>{{0, 0.5}}));
  EXPECT_EQ(second.status->report.stage, RankStage::kRunning);
  EXPECT_EQ(second.status->progress.step, 1u);
  // A third agent connects while the second is still there, as after a replacement of a stopped
  // one.
  agent_->status.reset();
  agent_->connect(files_);
  agent_->order(AdoptKeeper{});
  await([&] { return second.closed && agent_->status; });
  EXPECT_EQ(processes(), before);
  EXPECT_TRUE(Witness(before.at(0)).alive());
}

TEST_F(KeeperTest, AKilledKeeperTakesItsRanksAndTheirDaemonsWithIt) {
  start(launch(kWithDaemon + "exec sleep 1000"));
  const std::vector<pid_t> pids = processes();
  ASSERT_EQ(pids.size(), 2u);
  const Witness rank(pids[0]);
  const Witness daemon(pids[1]);
  ASSERT_TRUE(rank.alive() && daemon.alive());
  // The program has started one process, the keeper; what it starts are the ranks.
  pid_t keeper = 0;
  std::istringstream(slurp(fmt::format("/proc/{0}/task/{0}/children", keeper_))) >> keeper;
  ASSERT_GT(keeper, 0);
  ASSERT_EQ(::kill(keeper, SIGKILL), 0);
  EXPECT_EQ(finish(), 128 + SIGKILL);
  EXPECT_FALSE(rank.alive() || daemon.alive()) << "the program ends after all it has started";
}

TEST_F(KeeperTest, AKilledGuardTakesThemWithItToo) {
  start(launch(kWithDaemon + "exec sleep 1000"));
  const std::vector<pid_t> pids = processes();
  ASSERT_EQ(pids.size(), 2u);
  const Witness rank(pids[0]);
  const Witness daemon(pids[1]);
  EXPECT_EQ(finish(SIGKILL), 128 + SIGKILL);
  EXPECT_TRUE(rank.ends());
  EXPECT_TRUE(daemon.ends());
  // The keeper itself is no child of this process; it holds the lock until its end.
  const FileDescriptor lock(::open(files_.lock().c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(::flock(lock.get(), LOCK_EX), 0);
}

TEST_F(KeeperTest, ADaemonThatARankLeavesIsGoneBeforeTheAttemptIs) {
  start(launch("sleep 1000 & " + kWithDaemon));
  await_stage(RankStage::kGone);
  EXPECT_EQ(report().end->kind, ExitKind::kDone);
  std::istringstream text(output());
  for (pid_t pid = 0; text >> pid;) EXPECT_FALSE(Witness(pid).alive()) << pid;
}

TEST_F(KeeperTest, ARankGoesOnInANewerEpochThatAnotherOneJoins) {
  // Each rank reports as its step how many there were when it began.
  const std::string script =
      "echo rank $RANK of $WORLD_SIZE; echo '{\"step\":'$WORLD_SIZE'}' >$ORRERY_PROGRESS; "
      "until grep -q '\"epoch\":2' ${ORRERY_PROGRESS%/*}/membership; do sleep 0.01; done; "
      "echo '{\"epoch\":2,\"rank\":0}' >$ORRERY_PROGRESS; exec sleep 1000";
  const KeeperLaunch one = launch(script);
  start(one);
  await_step(1);
  EXPECT_EQ(report().up_epoch, 1u);
  KeeperLaunch two = launch(script, 2);
  two.ranks.token.epoch = 2;
  agent_->send(AgentOrder{{{1, 100}, two.ranks}, two.gangs});
  await([&] { return report().up_epoch == 2u && agent_->status->progress.step == 2; });
  EXPECT_EQ(report().stage, RankStage::kRunning);
  EXPECT_EQ(output(0), "rank 0 of 1\n");
  EXPECT_EQ(output(1), "rank 1 of 2\n");
}

TEST_F(KeeperTest, LogsAreRotatedAndTheTailIsKept) {
  KeeperLaunch talking = launch("seq 1 1000");
  talking.logs = {.file_bytes = 1000, .files = 3};
  start(talking);
  await_stage(RankStage::kGone);
  const std::string all = output();
  EXPECT_EQ(all.size(), 3893u);
  const std::string log = files_.logs + "/gang-0-rank-0.log";
  EXPECT_EQ(slurp(log + ".2") + slurp(log + ".1") + slurp(log), all.substr(1000));
  EXPECT_FALSE(std::filesystem::exists(log + ".3"));
  agent_->tail.reset();
  agent_->send(LogQuestion{.from = 3888});
  await([&] { return agent_->tail.has_value(); });
  EXPECT_EQ(agent_->tail->part.bytes, "1000\n");
  // The files record which part of the log they hold.
  const LogFiles files = LogFiles::look(real_->env().storage, log);
  EXPECT_EQ(files.begin(), 1000u);
  EXPECT_EQ(files.end(), all.size());
  EXPECT_EQ(files.read(1990, 20).bytes, all.substr(1990, 20));
  EXPECT_EQ(files.read(0, 1 << 20).bytes, all.substr(1000));
  EXPECT_EQ(files.read(5000, 10).from, all.size());
}

TEST_F(KeeperTest, EndsTheRanksByItselfWhenNoControllerIsHeard) {
  const std::string alive = files_.directory + "/alive";
  ASSERT_EQ(::mkfifo(alive.c_str(), 0600), 0);
  KeeperLaunch leased = launch("exec sleep 1000 >" + alive);
  leased.ranks.lease = {Lease::Kind::kBinding, Duration::milliseconds(500)};
  ASSERT_TRUE(write_keeper_launch(real_->env().storage, files_, leased));
  ASSERT_TRUE(spawn());
  // Held open by the rank alone: the end of the file is the rank's.
  const FileDescriptor held(::open(alive.c_str(), O_RDONLY | O_CLOEXEC));
  char byte = 0;
  EXPECT_EQ(::read(held.get(), &byte, 1), 0);
  agent_->connect(files_);
  agent_->order(AdoptKeeper{});
  await_stage(RankStage::kGone);
  EXPECT_EQ(report().end->kind, ExitKind::kInfra);
  EXPECT_EQ(report().end->blame.layer, FaultLayer::kController);
  release();
}

TEST_F(KeeperTest, ARenewedLeaseHolds) {
  KeeperLaunch leased = launch("exec sleep 1000");
  leased.ranks.lease = {Lease::Kind::kBinding, Duration::seconds(1000)};
  leased.ranks.heard = RealClock().now_boot() - Duration::seconds(899);
  start(leased);
  agent_->order(RenewLease{leased.ranks.token.id, RealClock().now_boot()});
  await_stage(RankStage::kRunning);
  EXPECT_FALSE(report().end);
}

TEST_F(KeeperTest, IsEndedBySigtermWithAllItHolds) {
  start(launch("trap '' TERM; " + kWithDaemon + "while :; do sleep 1000; done", 2));
  const std::vector<pid_t> pids = processes();
  EXPECT_EQ(finish(SIGTERM), 0);
  for (const pid_t pid : pids) EXPECT_FALSE(Witness(pid).alive());
  await_stage(RankStage::kGone);
  ASSERT_TRUE(report().end) << "or the job would run on without ranks";
  EXPECT_EQ(report().end->kind, ExitKind::kInfra);
}

TEST_F(KeeperTest, SaysWhyItDoesNotStart) {
  EXPECT_FALSE(spawn());
  EXPECT_EQ(finish(), 1);
  EXPECT_NE(slurp(files_.directory + "/errors").find(files_.launch()), std::string::npos);
  std::ofstream(files_.launch()) << "orrery-launch-4\ntorn";
  EXPECT_FALSE(spawn());
  EXPECT_EQ(finish(), 1);
  EXPECT_EQ(slurp(files_.directory + "/errors"),
            "orrery-keeper: " + files_.launch() + ": torn or changed: its checksum is another\n");
  KeeperLaunch script = launch("#!/bin/sh\n");
  script.facts.style = LaunchStyle::kSlurm;
  std::filesystem::create_directories(files_.script());  // in its place, so it cannot be written
  ASSERT_TRUE(write_keeper_launch(real_->env().storage, files_, script));
  EXPECT_FALSE(spawn());
  EXPECT_EQ(finish(), 1);
  EXPECT_NE(slurp(files_.directory + "/errors").find(files_.script()), std::string::npos);
}

TEST_F(KeeperTest, IsTheOnlyOneOfItsDirectory) {
  start(launch("exec sleep 1000"));
  await_stage(RankStage::kRunning);
  const pid_t first = keeper_;
  EXPECT_FALSE(spawn());
  EXPECT_EQ(finish(), 1);
  EXPECT_NE(slurp(files_.directory + "/errors").find("another keeper holds it"), std::string::npos);
  keeper_ = first;
}

TEST_F(KeeperTest, RunsAsTheUserOfTheJob) {
  ASSERT_EQ(::geteuid(), 0U) << "only root can run a job as another user";
  std::filesystem::permissions(files_.directory, std::filesystem::perms::others_exec,
                               std::filesystem::perm_options::add);
  KeeperLaunch other = launch("id -u; id -G; " + kSaysStep1 + "touch mine");
  other.user = ProcessUser{65534, 65533, {65532}};
  start(other);
  await_stage(RankStage::kGone);
  EXPECT_EQ(output(), "65534\n65533 65532\n");
  EXPECT_EQ(report().end->kind, ExitKind::kDone) << report().end->blame.evidence;
  EXPECT_EQ(agent_->status->progress.step, 1u);
}

}  // namespace
}  // namespace orrery
