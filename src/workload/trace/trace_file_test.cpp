#include "workload/trace/trace_file.hpp"

#include <gtest/gtest.h>

#include <string>

#include "workload/job_spec.hpp"
#include "workload/trace/trace_generator.hpp"
#include "workload/trace_input/trace_reader.hpp"

namespace orrery {
namespace {

const std::string kHead = "apiVersion: orrery/v1\nkind: Trace\nname: t\n";

Trace read(const std::string& text, const TraceOptions& options = {}) {
  Result<Trace> trace = read_trace(text, "t", options);
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().text());
  return trace ? std::move(*trace) : Trace();
}

std::string error(const std::string& text, const TraceOptions& options = {}) {
  const Result<Trace> trace = read_trace(text, "t", options);
  return trace ? "read" : trace.error().text();
}

// All members of a job but its line and spec.
auto told(const TraceJob& j) {
  return std::tuple(j.name, j.user, j.tenant, j.model, j.types, j.submit, j.run, j.limit,
                    j.deadline, j.accelerators, j.accelerators_min, j.accelerators_max, j.share,
                    j.status, j.kind, j.cpu_millicores, j.memory_mib, j.batch_size, j.priority,
                    j.weight, j.slo, j.steps, j.step_time, j.stage_times);
}

void expect_round_trip(const Trace& trace) {
  const std::string text = write_trace(trace, "t");
  const Trace again = read(text);
  ASSERT_EQ(again.jobs.size(), trace.jobs.size());
  for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
    EXPECT_TRUE(told(again.jobs[i]) == told(trace.jobs[i])) << trace.jobs[i].name << "\n" << text;
  }
  EXPECT_EQ(write_trace(again, "t"), text);
}

TEST(TraceFile, ReadsJobsInShort) {
  const Trace trace = read(kHead +
                           "epoch: 2026-01-01T00:00:00Z\n"
                           "jobs:\n"
                           "  - {submit: 90 s, run: 2 h, accelerators: 8, kind: Train}\n"
                           "  - name: b\n"
                           "    at: 2025-01-01T00:00:00Z\n"
                           "    share: 0.25\n");
  ASSERT_EQ(trace.jobs.size(), 2u);
  EXPECT_EQ(trace.jobs[0].name, "1");
  EXPECT_EQ(trace.jobs[0].submit.text(), "2026-01-01T00:01:30Z");
  EXPECT_EQ(trace.jobs[0].run, Duration::hours(2));
  EXPECT_EQ(trace.jobs[0].kind, JobKind::kTrain);
  EXPECT_EQ(trace.jobs[0].line, 6);
  EXPECT_EQ(trace.jobs[1].submit.text(), "2025-01-01T00:00:00Z");
  EXPECT_EQ(trace.jobs[1].share, 250);
  EXPECT_EQ(trace.jobs[1].accelerators, 1u);
}

TEST(TraceFile, EverythingAJobTellsIsWrittenAndReadBack) {
  Trace trace;
  TraceJob& full = trace.jobs.emplace_back();
  full.name = "null";
  full.user = "a: b # c";
  full.tenant = "x/y";
  full.model = "LM (batch size 80)";
  full.types = "V100M16|V100M32";
  full.submit = Instant::from_ns(1'500'000'000'123'456'789);
  full.run = Duration::nanoseconds(2'951'000'000'007);
  full.limit = Duration::milliseconds(10'000'001);
  full.deadline = Instant::from_ns(1'600'000'000'000'000'001);
  full.accelerators = 6;
  full.accelerators_min = 3;
  full.accelerators_max = 12;
  full.status = TraceStatus::kCancelled;
  full.kind = JobKind::kBatch;
  full.cpu_millicores = 4'294'967;
  full.memory_mib = 12'345;
  full.batch_size = 80;
  full.priority = -3;
  full.weight = 1.0 / 3;
  full.slo = 1.2;
  full.steps = 1'000'000'007;
  full.step_time = Duration::nanoseconds(1);
  full.stage_times = {Duration(), Duration::milliseconds(75), Duration::nanoseconds(75'500'001)};
  TraceJob& earlier = trace.jobs.emplace_back();
  earlier.name = "007";
  earlier.submit = Instant::from_ns(-5);
  earlier.share = 333;
  TraceJob& cpu = trace.jobs.emplace_back();
  cpu.name = "cpu";
  cpu.accelerators = 0;
  expect_round_trip(trace);
  expect_round_trip({});
}

TEST(TraceFile, GeneratedTracesAreReadBack) {
  for (const TraceStyle style : {TraceStyle::kPhilly, TraceStyle::kHelios, TraceStyle::kAcme}) {
    expect_round_trip(generate_trace({.style = style, .jobs = 100}, 1));
  }
}

TEST(TraceFile, AWholeJobMayStandUnderSpec) {
  const std::string text = kHead +
                           "jobs:\n"
                           "  - submit: 0 s\n"
                           "    run: 1 h\n"
                           "    spec:\n"
                           "      apiVersion: orrery/v1\n"
                           "      kind: FineTune\n"
                           "      name: tune\n"
                           "      tenant: research/vision\n"
                           "      roles:\n"
                           "        - {accelerators_min: 4, accelerators_max: 16}\n";
  const Trace trace = read(text);
  ASSERT_EQ(trace.jobs.size(), 1u);
  const TraceJob& job = trace.jobs[0];
  ASSERT_NE(job.spec, nullptr);
  EXPECT_EQ(job.name, "tune");
  EXPECT_EQ(job.tenant, "research/vision");
  EXPECT_EQ(job.kind, JobKind::kFineTune);
  EXPECT_EQ(job.accelerators, 4u);
  EXPECT_EQ(job.accelerators_max, 16u);
  const Trace again = read(write_trace(trace, "t"));
  ASSERT_EQ(again.jobs.size(), 1u);
  EXPECT_TRUE(told(again.jobs[0]) == told(job));
  EXPECT_EQ(write_job_spec(*again.jobs[0].spec), write_job_spec(*job.spec));

  EXPECT_EQ(error(text + "    accelerators: 8\n"),
            "t:5:5: accelerators beside spec, expected it in the spec alone");
  EXPECT_EQ(error(kHead + "jobs: [{submit: 0 s, spec: {kind: Train}}]\n"),
            "t:4:28: the key \"apiVersion\" is missing");
}

TEST(TraceFile, ErrorsNameThePlaceAndWhatWasExpected) {
  const auto job = [](const std::string& fields) {
    return error(kHead + "jobs:\n  - {" + fields + "}\n");
  };
  EXPECT_EQ(job("run: 1 s"),
            "t:5:5: expected either submit (since the epoch) or at (a point in time)");
  EXPECT_TRUE(
      job("submit: 1 s, acelerators: 2")
          .starts_with("t:5:19: unknown key \"acelerators\", did you mean \"accelerators\"?"));
  EXPECT_EQ(job("submit: 1 s, share: 0.5, accelerators: 2"),
            "t:5:5: share is of one accelerator, expected accelerators: 1");
  EXPECT_NE(job("submit: 1 s, share: 1.5"), "read");
  EXPECT_NE(job("submit: -1 s"), "read");
  EXPECT_NE(job("submit: 1 s, at: 2026-01-01T00:00:00Z"), "read");
  EXPECT_NE(job("submit: 1 s, accelerators: 9, accelerators_min: 1, accelerators_max: 8"), "read");
  EXPECT_NE(job("submit: 1 s, accelerators_min: 1"), "read");
  EXPECT_NE(job("submit: 1 s, stage_times: [1 s, 1 s, 1 s, 1 s]"), "read");
  EXPECT_NE(job("submit: 1 s, weight: -1"), "read");
  EXPECT_NE(job("submit: 1 s, cpu: .nan"), "read");
  EXPECT_EQ(error("apiVersion: orrery/v1\nkind: Trade\nname: t\njobs: []\n"),
            "t:1:1: kind is Trade, expected Trace");
  EXPECT_EQ(error(kHead), "t:1:1: jobs is missing, expected a list of jobs");
}

TEST(TraceFile, ARunOfMoreThanAHundredYearsIsRefused) {
  EXPECT_EQ(error(kHead + "jobs:\n- {submit: 0 s, run: 3155760000 s}\n"), "read");
  EXPECT_EQ(error(kHead + "jobs:\n- {submit: 0 s, run: 60 s}\n- {submit: 0 s, run: 8e9 s}\n"),
            "t:6:3: run is 8000000000 s, expected at most 3155760000 s, 100 years");
}

TEST(TraceFile, ADateAsDeadlineNeedsDatesOfSubmits) {
  const std::string why =
      "deadline is a date, 2026-01-02T00:00:00Z, and submit is none, so the trace needs epoch: "
      "expected the date from which submit counts";
  const std::string date = "\"2026-01-02T00:00:00Z\"";
  EXPECT_EQ(error(kHead + "jobs:\n- {submit: 0 s, run: 1 h, deadline: " + date + "}\n"),
            "t:5:37: " + why);
  const std::string spec =
      ", run: 1 h, spec: {apiVersion: orrery/v1, kind: Train, name: a, deadline: " + date +
      ", roles: [{accelerators: 1}]}}\n";
  EXPECT_EQ(error(kHead + "jobs:\n- {submit: 0 s" + spec), "t:5:89: " + why);
  const std::string epoch = "epoch: 2026-01-01T00:00:00Z\n";
  EXPECT_EQ(error(kHead + epoch + "jobs:\n- {submit: 0 s" + spec), "read");
  EXPECT_EQ(error(kHead + "jobs:\n- {at: \"2026-01-01T00:00:00Z\"" + spec), "read");
  EXPECT_EQ(error(kHead + "jobs:\n- {submit: 0 s, run: 1 h, deadline: \"1970-01-01T02:00:00Z\"}\n"),
            "read");
}

TEST(TraceFile, FiltersAndSkipsLikeEveryOtherFormat) {
  const std::string text = kHead +
                           "jobs:\n"
                           "  - {submit: 1 s, tenant: a}\n"
                           "  - {submit: 2 s, tenant: b, kind: Serve}\n"
                           "  - {submit: 3 s, tenant: a, share: 7}\n";
  EXPECT_NE(error(text), "read");
  constexpr auto kSkip = TraceOptions::BadRows::kSkip;
  const Trace of_a = read(text, {.where = {{"tenant", "a"}}, .bad_rows = kSkip});
  ASSERT_EQ(of_a.jobs.size(), 1u);
  ASSERT_EQ(of_a.skipped.size(), 1u);
  EXPECT_EQ(of_a.skipped[0].where.line, 7);
  const Trace later = read(text, {.from = Instant::from_ns(1'500'000'000), .bad_rows = kSkip});
  ASSERT_EQ(later.jobs.size(), 1u);
  EXPECT_EQ(later.jobs[0].name, "2");
  EXPECT_EQ(read(text, {.where = {{"kind", "Serve"}}, .bad_rows = kSkip}).jobs.size(), 1u);
  EXPECT_EQ(
      error(text, {.where = {{"tenan", "a"}}}),
      "t: there is no column \"tenan\" to compare, did you mean \"tenant\"?; the columns are: "
      "name, user, tenant, model, types, kind, status");
}

}  // namespace
}  // namespace orrery
