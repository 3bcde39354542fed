// A made-up sample in the form that sacct of Slurm 22.05 prints.
#include "workload/trace_input/trace_sacct.hpp"

#include <gtest/gtest.h>

#include <string>

#include "workload/trace_input/trace_reader.hpp"

namespace orrery {
namespace {

const std::string kHead =
    "JobID|User|Account|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqTRES|AllocTRES\n";

Trace read(const std::string& rows, const TraceOptions& options = {}) {
  Result<Trace> trace = read_trace(kHead + rows, "s", options);
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().text());
  return trace ? std::move(*trace) : Trace();
}

std::string error(const std::string& row) {
  const Result<Trace> trace = read_trace(kHead + row, "s", {});
  return trace ? "read" : trace.error().text();
}

TEST(SacctTrace, AJobHasWhatItHad) {
  const Trace trace = read(
      "41|ann|vision|COMPLETED|2026-11-20T10:00:00|2026-11-20T10:05:00|2026-11-20T11:05:00|3600|"
      "120|"
      "billing=16,cpu=16,gres/gpu:h100=8,gres/gpu=8,mem=64G,node=1|"
      "billing=16,cpu=32,gres/gpu:h100=16,gres/gpu=16,mem=1.50T,node=2\n"
      "42|bob|speech|NODE_FAIL|2026-11-20T10:00:00|2026-11-20T10:00:00|2026-11-20T10:00:10|10|"
      "UNLIMITED|cpu=4,mem=512M,node=1|cpu=4,gres/gpu:a100=2,mem=2048K\n");
  ASSERT_EQ(trace.jobs.size(), 2u);
  const TraceJob& first = trace.jobs[0];
  EXPECT_EQ(first.name, "41");
  EXPECT_EQ(first.user, "ann");
  EXPECT_EQ(first.tenant, "vision");
  EXPECT_EQ(first.submit.text(), "2026-11-20T10:00:00Z");
  EXPECT_EQ(first.run, Duration::hours(1));
  EXPECT_EQ(first.limit, Duration::hours(2));
  EXPECT_EQ(first.accelerators, 16u);
  EXPECT_EQ(first.types, "h100");
  EXPECT_EQ(first.cpu_millicores, 32'000u);
  EXPECT_EQ(first.memory_mib, 1536u << 10);
  EXPECT_EQ(first.status, TraceStatus::kCompleted);
  EXPECT_EQ(trace.jobs[1].accelerators, 2u) << "those of types are all";
  EXPECT_EQ(trace.jobs[1].types, "") << "it asked for none";
  EXPECT_EQ(trace.jobs[1].memory_mib, 2u);
  EXPECT_EQ(trace.jobs[1].limit, std::nullopt);
  EXPECT_EQ(trace.jobs[1].status, TraceStatus::kFailed);
}

TEST(SacctTrace, TasksOfArraysAreJobsAndComponentsAreOne) {
  const std::string times = "|2026-11-20T10:00:00|2026-11-20T10:01:00|2026-11-20T10:02:00|60|60|";
  const std::string gpus = "gres/gpu=4|gres/gpu=4\n";
  const Trace trace = read("7_1|a|x|COMPLETED" + times + gpus + "7_2|a|x|COMPLETED" + times + gpus +
                           "8+0|a|x|COMPLETED" + times + gpus + "8+1|a|x|FAILED" + times + gpus);
  ASSERT_EQ(trace.jobs.size(), 3u);
  EXPECT_EQ(trace.jobs[0].name, "7_1");
  EXPECT_EQ(trace.jobs[2].name, "8");
  EXPECT_EQ(trace.jobs[2].accelerators, 8u);
  EXPECT_EQ(trace.jobs[2].run, Duration::minutes(1));
  EXPECT_EQ(trace.jobs[2].status, TraceStatus::kFailed);
}

TEST(SacctTrace, WhatStillRunsHasRunSoFarAndWhatNeverRanIsToldApart) {
  const std::string submit = "|2026-11-20T10:00:00|";
  const Trace trace = read(
      "1|a|x|RUNNING" + submit + "2026-11-20T10:01:00|Unknown|90|60|gres/gpu=1|gres/gpu=1\n" +
      "2|a|x|CANCELLED by 1000" + submit + "None|2026-11-20T10:02:00|0|60|gres/gpu=2|\n" +
      "3|a|x|PENDING" + submit + "Unknown|Unknown|0|60|gres/gpu=2|\n" + "4_[3-9%2]|a|x|PENDING" +
      submit + "Unknown|Unknown|0|60|gres/gpu=2|\n" + "1.batch|a|x|RUNNING" + submit +
      "2026-11-20T10:01:00|Unknown|90||cpu=1|cpu=1\n" + "5|a|x|REQUEUED" + submit +
      "2026-11-20T10:01:00|2026-11-20T10:02:00|60|60|cpu=1|cpu=1\n");
  ASSERT_EQ(trace.jobs.size(), 2u);
  EXPECT_EQ(trace.jobs[0].run, Duration::seconds(90));
  EXPECT_EQ(trace.jobs[0].status, TraceStatus::kUnknown);
  EXPECT_EQ(trace.jobs[1].status, TraceStatus::kCancelled);
  EXPECT_EQ(trace.jobs[1].run, Duration());
  EXPECT_EQ(trace.jobs[1].accelerators, 2u) << "what it asked for";
  ASSERT_EQ(trace.left_out.size(), 4u);
  EXPECT_EQ(trace.left_out[0].reason, "without a start");
  EXPECT_EQ(trace.left_out[1].reason, "of tasks of an array that never started");
  EXPECT_EQ(trace.left_out[2].reason, "of a step");
  EXPECT_EQ(trace.left_out[3].reason, "of a run that was requeued");
}

TEST(SacctTrace, RareStatesCountAsSlurmMeansThem) {
  const std::string ran = "|2026-11-20T10:00:00|2026-11-20T10:01:00|2026-11-20T10:02:00|60|60|";
  const std::string runs = "|2026-11-20T10:00:00|2026-11-20T10:01:00|Unknown|90|60|";
  const std::string waits = "|2026-11-20T10:00:00|Unknown|Unknown|0|60|";
  const std::string gpus = "gres/gpu=1|gres/gpu=1\n";
  std::string rows = "1|a|x|LAUNCH_FAILED" + ran + gpus;
  for (const std::string state : {"CONFIGURING", "STOPPED", "SIGNALING", "STAGE_OUT"}) {
    rows.append(state).append("|a|x|").append(state).append(runs).append(gpus);
  }
  for (const std::string state :
       {"CONFIGURING", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}) {
    rows.append("w").append(state).append("|a|x|").append(state).append(waits).append(gpus);
  }
  const Trace trace = read(rows + "9|a|x|REVOKED" + waits + gpus);
  ASSERT_EQ(trace.jobs.size(), 5u);
  EXPECT_EQ(trace.jobs[0].status, TraceStatus::kFailed);
  for (std::size_t i = 1; i < trace.jobs.size(); ++i) {
    EXPECT_EQ(trace.jobs[i].status, TraceStatus::kUnknown) << trace.jobs[i].name;
    EXPECT_EQ(trace.jobs[i].run, Duration::seconds(90)) << trace.jobs[i].name;
  }
  ASSERT_EQ(trace.left_out.size(), 2u);
  EXPECT_EQ(trace.left_out[0].reason, "without a start");
  EXPECT_EQ(trace.left_out[0].rows, 5u);
  EXPECT_EQ(trace.left_out[1].reason, "of jobs that another cluster ran");
}

TEST(SacctTrace, ARowThatIsWrongIsNamedWithItsPlace) {
  EXPECT_EQ(error("1|a|x|DONE|2026-11-20T10:00:00|Unknown|Unknown|0|1|cpu=1|\n"),
            "s:2:7: State is \"DONE\", expected a state of Slurm, \"CANCELLED by 1000\" or one of "
            "COMPLETED, CANCELLED, REVOKED, FAILED, TIMEOUT, NODE_FAIL, OUT_OF_MEMORY, BOOT_FAIL, "
            "DEADLINE, LAUNCH_FAILED, PREEMPTED, RUNNING, COMPLETING, PENDING, SUSPENDED, "
            "RESIZING, CONFIGURING, STOPPED, SIGNALING, STAGE_OUT, REQUEUE_HOLD, REQUEUE_FED, "
            "SPECIAL_EXIT, RESV_DEL_HOLD, REQUEUED");
  EXPECT_EQ(error("1|a|x|FAILED|2026-11-20T10:00:00|2026-11-20T09:00:00|Unknown|0|1|cpu=1|\n"),
            "s:2:34: Start is \"2026-11-20T09:00:00\", expected a time not before Submit");
  EXPECT_EQ(error("1|a|x|FAILED|2026-11-20T10:00:00|2026-11-20T11:00:00|2026-11-20T10:30:00|0|1|"
                  "cpu=1|\n"),
            "s:2:54: End is \"2026-11-20T10:30:00\", expected a time not before Start");
  EXPECT_EQ(error("1|a|x|FAILED|2026-11-20T10:00:00|Unknown|Unknown|0|1|gres/gpu=-8|\n"),
            "s:2:54: ReqTRES is \"gres/gpu=-8\", expected resources such as "
            "\"cpu=16,gres/gpu:h100=8,mem=64G,node=1\"");
  EXPECT_EQ(error("1|a|x|FAILED|2026-11-20T10:00:00\n"),
            "s:2:14: the row has 5 cells, expected 11");
}

}  // namespace
}  // namespace orrery
