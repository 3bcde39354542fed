// Holds, requeues and changes of jobs, their dependencies, and the history of their attempts.
#include <gtest/gtest.h>

#include "control/scripted_cluster_test.hpp"

namespace orrery {
namespace {

Duration minutes(std::int64_t n) { return Duration::minutes(n); }

class CoreChanges : public ::testing::Test {
 protected:
  /// Submits a job with a spec, whose attempts are kept.
  JobId submit(Submission submission) {
    cluster_.send(SubmitJob{std::move(submission), "spec"});
    cluster_.tick();
    return JobId::at(cluster_.state().jobs() - 1);
  }
  JobId run(const Submission& submission) {
    const JobId id = submit(submission);
    cluster_.up(id);
    return id;
  }
  /// Returns why a command was refused; empty: it was accepted.
  std::string refusal(InputKind what) {
    const Status status = cluster_.send(std::move(what)).answer.status;
    return status ? std::string() : status.error().message;
  }
  ChangeJob change(JobId id) const {
    const JobRequest& now = cluster_.job(id).submission->request;
    return {id, now.priority, now.time_limit, now.estimate, now.class_id};
  }

  ScriptedCluster cluster_;
};

TEST_F(CoreChanges, AHeldJobStartsOnlyOnceItIsReleased) {
  Submission held = cluster_.job(8);
  held.hold = true;
  const JobId id = submit(held);
  cluster_.wait(minutes(10));
  EXPECT_EQ(cluster_.phase(id), JobPhase::kHeld) << "although the fleet is empty";
  cluster_.send(HoldJob{id, JobHold::kNone});
  cluster_.wait(minutes(1));
  EXPECT_EQ(cluster_.phase(id), JobPhase::kStarting);
}

TEST_F(CoreChanges, AQueuedJobThatIsHeldLeavesTheQueueAndItsSlot) {
  const JobId first = run(cluster_.job(32));
  const JobId second = submit(cluster_.job(32));
  ASSERT_EQ(cluster_.phase(second), JobPhase::kQueued);
  cluster_.send(HoldJob{second, JobHold::kOperator});
  EXPECT_EQ(cluster_.phase(second), JobPhase::kHeld);
  EXPECT_EQ(cluster_.job(second).hold, JobHold::kOperator);
  cluster_.end(first);
  cluster_.wait(minutes(5));
  EXPECT_EQ(cluster_.phase(second), JobPhase::kHeld);
  cluster_.send(HoldJob{second, JobHold::kNone});
  cluster_.wait(minutes(1));
  EXPECT_EQ(cluster_.phase(second), JobPhase::kStarting);
}

TEST_F(CoreChanges, AJobOfAnArrayThatIsHeldLetsAnotherTakeItsTurn) {
  Submission task = cluster_.job(32);
  task.request.array = ArrayId(0);
  task.parallel = 2;
  const JobId first = submit(task);
  const JobId second = submit(task);
  const JobId third = submit(task);
  ASSERT_EQ(cluster_.phase(second), JobPhase::kQueued);
  ASSERT_EQ(cluster_.phase(third), JobPhase::kHeld);
  cluster_.send(HoldJob{second, JobHold::kOwner});
  EXPECT_EQ(cluster_.phase(third), JobPhase::kQueued);
  EXPECT_TRUE(holds_devices(cluster_.phase(first)));
}

TEST_F(CoreChanges, AHoldOfARunningJobTellsWhenItNextWaits) {
  const JobId id = run(cluster_.job(8));
  cluster_.send(HoldJob{id, JobHold::kOwner});
  EXPECT_EQ(cluster_.phase(id), JobPhase::kRunning);
  cluster_.decide({PreemptJob{id, JobId()}});
  cluster_.gone(id);
  cluster_.wait(minutes(5));
  EXPECT_EQ(cluster_.phase(id), JobPhase::kHeld);
}

TEST_F(CoreChanges, ARequeuedJobStopsAndStartsAgain) {
  const JobId id = run(cluster_.job(8));
  EXPECT_EQ(refusal(RequeueJob{id, 1}), "");
  EXPECT_EQ(cluster_.phase(id), JobPhase::kStopping);
  EXPECT_EQ(refusal(RequeueJob{id, 1}), "") << "the command came twice";
  cluster_.gone(id);
  cluster_.wait(minutes(1));
  EXPECT_EQ(cluster_.phase(id), JobPhase::kStarting);
  EXPECT_EQ(cluster_.job(id).attempt, 2u);
  EXPECT_EQ(refusal(RequeueJob{id, 1}), "") << "the command came late";
  EXPECT_EQ(cluster_.phase(id), JobPhase::kStarting);
  const JobUsage& usage = cluster_.job(id).usage;
  EXPECT_EQ(usage.preemptions + usage.faults + usage.program_faults, 0u);
}

TEST_F(CoreChanges, ARequeueThatHoldsKeepsTheJobFromStarting) {
  const JobId id = run(cluster_.job(8));
  cluster_.send(RequeueJob{id, 1, JobHold::kOwner});
  cluster_.gone(id);
  cluster_.wait(minutes(10));
  EXPECT_EQ(cluster_.phase(id), JobPhase::kHeld);
}

TEST_F(CoreChanges, ARequeueThatHoldsHoldsAlsoWhatStopsAlready) {
  const JobId id = run(cluster_.job(8));
  cluster_.send(RequeueJob{id, 1});
  cluster_.send(RequeueJob{id, 1, JobHold::kOwner});
  cluster_.gone(id);
  cluster_.wait(minutes(10));
  EXPECT_EQ(cluster_.phase(id), JobPhase::kHeld);
}

TEST_F(CoreChanges, AnOwnersHoldDoesNotWeakenAnOperators) {
  const JobId id = submit(cluster_.job(8));
  cluster_.send(HoldJob{id, JobHold::kOperator});
  cluster_.send(HoldJob{id, JobHold::kOwner});
  EXPECT_EQ(cluster_.job(id).hold, JobHold::kOperator);
}

TEST_F(CoreChanges, ARequeueIsRefusedWhereNothingRunsOrMayRunAgain) {
  const JobId waits = submit(cluster_.job(32));
  Submission once = cluster_.job(32);
  once.restart = RestartPolicy::kNever;
  cluster_.send(CancelJob{waits});
  cluster_.gone(waits);
  const JobId id = run(once);
  EXPECT_NE(refusal(RequeueJob{id, 1}).find("never"), std::string::npos);
  const JobId queued = submit(cluster_.job(32));
  EXPECT_NE(refusal(RequeueJob{queued, 0}).find("queued"), std::string::npos);
  EXPECT_NE(refusal(RequeueJob{waits, 1}).find("ended"), std::string::npos);
  EXPECT_EQ(cluster_.phase(id), JobPhase::kRunning);
}

TEST_F(CoreChanges, ARaisedPriorityGoesFirst) {
  ScriptedOptions options;
  options.policy = "easy";
  ScriptedCluster cluster(options);
  const JobId first = cluster.run(cluster.job(32));
  const JobId early = cluster.submit(cluster.job(32));
  const JobId late = cluster.submit(cluster.job(32));
  cluster.wait(minutes(1));
  const JobRequest& asked = cluster.job(late).submission->request;
  cluster.send(ChangeJob{late, 50, asked.time_limit, asked.estimate, asked.class_id});
  cluster.end(first);
  cluster.wait(minutes(1));
  EXPECT_EQ(cluster.phase(late), JobPhase::kStarting);
  EXPECT_EQ(cluster.phase(early), JobPhase::kQueued);
}

TEST_F(CoreChanges, ATimeLimitThatIsLoweredEndsTheJobWhenItIsOver) {
  const JobId id = run(cluster_.job(8));
  cluster_.wait(minutes(10));
  ChangeJob shorter = change(id);
  shorter.time_limit = minutes(15);
  cluster_.send(shorter);
  cluster_.wait(minutes(4));
  EXPECT_EQ(cluster_.phase(id), JobPhase::kRunning);
  cluster_.wait(minutes(1));
  EXPECT_EQ(cluster_.phase(id), JobPhase::kStopping);
  EXPECT_EQ(cluster_.job(id).stop, StopReason::kTimeLimit);
}

TEST_F(CoreChanges, ATimeLimitThatIsRaisedLetsTheJobGoOn) {
  Submission limited = cluster_.job(8);
  limited.request.time_limit = minutes(10);
  limited.request.estimate = minutes(10);
  const JobId id = run(limited);
  ChangeJob longer = change(id);
  longer.time_limit = minutes(30);
  longer.estimate = minutes(25);
  cluster_.wait(minutes(5));
  cluster_.send(longer);
  EXPECT_EQ(cluster_.state().running(id).expected_end,
            cluster_.state().running(id).started + minutes(25));
  cluster_.wait(minutes(20));
  EXPECT_EQ(cluster_.phase(id), JobPhase::kRunning);
  cluster_.wait(minutes(5));
  EXPECT_EQ(cluster_.job(id).stop, StopReason::kTimeLimit);
}

TEST_F(CoreChanges, AShorterEstimateLetsAJobBackfill) {
  ScriptedOptions options;
  options.policy = "easy";
  ScriptedCluster cluster(options);
  Submission first = cluster.job(16);
  first.request.estimate = minutes(60);
  cluster.run(first);
  const JobId wide = cluster.submit(cluster.job(32));
  Submission narrow = cluster.job(16);
  narrow.request.estimate = minutes(600);
  const JobId behind = cluster.submit(narrow);
  cluster.wait(minutes(1));
  ASSERT_EQ(cluster.phase(behind), JobPhase::kQueued) << "it would delay the wide job";
  const JobRequest& asked = cluster.job(behind).submission->request;
  cluster.send(ChangeJob{behind, 0, asked.time_limit, minutes(10), ClassId(1000)});
  cluster.wait(minutes(1));
  EXPECT_TRUE(holds_devices(cluster.phase(behind)));
  EXPECT_EQ(cluster.phase(wide), JobPhase::kQueued);
}

// --- Dependencies -------------------------------------------------------------------------------

TEST_F(CoreChanges, JobsWaitForOthersToFinishToEndOrToFail) {
  for (const bool finishes : {true, false}) {
    ScriptedCluster cluster;
    const JobId first = cluster.run(cluster.job(8));
    Submission ok = cluster.job(8);
    ok.after = {first};
    Submission any = cluster.job(8);
    any.after_any = {first};
    Submission notok = cluster.job(8);
    notok.after_notok = {first};
    const JobId on_ok = cluster.submit(ok);
    const JobId on_any = cluster.submit(any);
    const JobId on_notok = cluster.submit(notok);
    for (const JobId id : {on_ok, on_any, on_notok}) EXPECT_EQ(cluster.phase(id), JobPhase::kHeld);
    cluster.end(first, finishes ? ExitKind::kDone : ExitKind::kProgram);
    EXPECT_EQ(cluster.phase(on_any), JobPhase::kQueued);
    EXPECT_EQ(cluster.phase(on_ok), finishes ? JobPhase::kQueued : JobPhase::kCancelled);
    EXPECT_EQ(cluster.phase(on_notok), finishes ? JobPhase::kCancelled : JobPhase::kQueued);
    const JobId given_up = finishes ? on_notok : on_ok;
    EXPECT_NE(cluster.job(given_up).blame.evidence.find("job 0"), std::string::npos);
  }
}

TEST_F(CoreChanges, ACancelledJobCountsAsOneThatDidNotFinish) {
  const JobId first = submit(cluster_.job(32));
  Submission notok = cluster_.job(8);
  notok.after_notok = {first};
  const JobId next = submit(notok);
  cluster_.send(CancelJob{first});
  cluster_.gone(first);
  cluster_.wait(minutes(1));
  EXPECT_EQ(cluster_.phase(next), JobPhase::kStarting);
}

TEST_F(CoreChanges, WhatCanNeverBeMetIsRefusedAtOnce) {
  const JobId done = run(cluster_.job(8));
  cluster_.end(done);
  const JobId failed = run(cluster_.job(8));
  cluster_.end(failed, ExitKind::kProgram);
  ASSERT_EQ(cluster_.phase(failed), JobPhase::kFailed);
  Submission ok = cluster_.job(8);
  ok.after = {failed};
  EXPECT_NE(refusal(SubmitJob{ok, "spec"}).find("has failed"), std::string::npos);
  Submission notok = cluster_.job(8);
  notok.after_notok = {done};
  EXPECT_NE(refusal(SubmitJob{notok, "spec"}).find("has finished"), std::string::npos);
  Submission met = cluster_.job(8);
  met.after = {done};
  met.after_any = {failed};
  EXPECT_TRUE(holds_devices(cluster_.phase(submit(met))));
}

TEST_F(CoreChanges, AChainOfAnyLengthEndsWithItsFirst) {
  Core core(cluster_.setup());
  Submission next = cluster_.job(32);
  constexpr std::uint32_t kLong = 20'000;
  for (std::uint32_t i = 0; i < kLong; ++i) {
    if (i > 0) next.after = {JobId(i - 1)};
    ASSERT_TRUE(core.handle({cluster_.now(), SubmitJob{next, "spec"}, ""}).answer.status);
  }
  core.handle({cluster_.now(), CancelJob{JobId(0)}, ""});
  EXPECT_EQ(core.state().job(JobId(kLong - 1)).phase, JobPhase::kCancelled);
  EXPECT_EQ(core.state().ended_jobs(), kLong);
}

// --- Attempts -----------------------------------------------------------------------------------

TEST_F(CoreChanges, TheHistoryOfAttemptsSaysWhenWhereAndHowEachEnded) {
  Submission twice = cluster_.job(16);
  twice.restart_max = 1;
  const JobId id = run(twice);
  const Instant started = cluster_.now();
  const std::vector<NodeId> nodes = cluster_.nodes(id);
  cluster_.wait(minutes(3));
  RanksEnded first{.job = id, .attempt = 1, .kind = ExitKind::kProgram};
  first.blame = {.layer = FaultLayer::kProgram, .evidence = "exit status 3 of rank 5"};
  first.gone = true;
  first.exit = RankExit{5, 3};
  cluster_.send(first);
  cluster_.wait(minutes(1));
  cluster_.up(id);
  RanksEnded second{.job = id, .attempt = 2, .kind = ExitKind::kDone};
  second.gone = true;
  second.exit = RankExit{0, 0};
  cluster_.send(second);
  ASSERT_EQ(cluster_.phase(id), JobPhase::kFinished);
  EXPECT_EQ(cluster_.job(id).spec, "spec") << "kept after the end";
  const std::vector<Attempt>& attempts = cluster_.job(id).attempts;
  ASSERT_EQ(attempts.size(), 2u);
  EXPECT_EQ(attempts[0].number, 1u);
  EXPECT_EQ(attempts[0].started, started);
  EXPECT_EQ(attempts[0].stopped, started + minutes(3));
  EXPECT_EQ(attempts[0].reason, StopReason::kProgram);
  EXPECT_EQ(attempts[0].exit, (RankExit{5, 3}));
  EXPECT_EQ(attempts[0].blame.evidence, "exit status 3 of rank 5");
  EXPECT_EQ(attempts[0].nodes, nodes);
  EXPECT_EQ(attempts[1].reason, StopReason::kFinished);
  EXPECT_EQ(attempts[1].exit, (RankExit{0, 0}));
}

TEST_F(CoreChanges, AJobKeepsItsNewestAttemptsAlone) {
  const JobId id = submit(cluster_.job(8));
  for (std::uint32_t attempt = 1; attempt <= kAttemptsKept + 3; ++attempt) {
    cluster_.up(id);
    cluster_.send(RequeueJob{id, attempt});
    cluster_.gone(id);
    cluster_.wait(minutes(1));
  }
  const std::vector<Attempt>& attempts = cluster_.job(id).attempts;
  ASSERT_EQ(attempts.size(), kAttemptsKept);
  EXPECT_EQ(attempts.back().number, cluster_.job(id).attempt);
  EXPECT_EQ(attempts.front().number, cluster_.job(id).attempt - kAttemptsKept + 1);
}

}  // namespace
}  // namespace orrery
