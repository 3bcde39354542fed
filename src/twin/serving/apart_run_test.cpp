// twin/serving/apart_run_test.cpp - services in virtual time some of whose replicas compute prompts
// alone.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/numbers/rng.hpp"
#include "twin/serving/service_run.hpp"

namespace orrery {
namespace {

constexpr EngineStepCost kCost = {.step_s = 5e-3,
                                  .sequence_s = 3e-5,
                                  .context_token_s = 4e-8,
                                  .prompt_token_s = 1e-4,
                                  .prompt_pair_s = 1e-9};

/// Requests of one kind.
struct Kind {
  double rate = 1;
  std::uint32_t prompt = 1;
  std::uint32_t output = 1;
};

/// Requests of all kinds, which come as a Poisson process of 200 s.
RequestTrace trace_of(const std::vector<Kind>& kinds, std::uint64_t seed) {
  Rng draws(seed);
  double rate = 0;
  for (const Kind& each : kinds) rate += each.rate;
  const auto gap = [&] { return -std::log(1 - draws.uniform()) / rate; };
  RequestTrace trace;
  trace.span = Duration::seconds(200);
  for (double at = gap(); at < 200; at += gap()) {
    double drawn = draws.uniform() * rate;
    std::size_t kind = 0;
    while (kind + 1 < kinds.size() && drawn >= kinds[kind].rate) drawn -= kinds[kind++].rate;
    trace.requests.push_back({.arrival = Duration::from_seconds(at),
                              .prompt_tokens = kinds[kind].prompt,
                              .output_tokens = kinds[kind].output});
  }
  return trace;
}

/// Three replicas that compute prompts and answers.
ServiceSetup joint_setup() {
  ServiceSetup setup;
  setup.groups.push_back({.name = "a",
                          .count = 3,
                          .rules = {.sequences_max = 64, .step_tokens = 2048, .kv_blocks = 6000},
                          .cost = kCost,
                          .cold_start = Duration::seconds(20)});
  setup.targets = {.ttft_s = 0, .tpot_s = 0.012};
  return setup;
}

/// One of these machines is of duty prefill, two are of duty decode.
ServiceSetup apart_setup() {
  ServiceSetup setup = joint_setup();
  setup.groups.push_back(setup.groups[0]);
  setup.groups[0].duty = ReplicaDuty::kPrefill;
  setup.groups[0].count = 1;
  setup.groups[1].duty = ReplicaDuty::kDecode;
  setup.groups[1].count = 2;
  setup.groups[0].transfer = RoutedTransfer{.token_bytes = 131'072, .bytes_s = 1e10};
  return setup;
}

constexpr Kind kLong{.rate = 0.5, .prompt = 8000, .output = 40};
constexpr Kind kShort{.rate = 8, .prompt = 100, .output = 150};

TEST(ApartRun, LongPromptsDelayNoAnswersWhereTheyAreComputedElsewhere) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    const RequestTrace trace = trace_of({kLong, kShort}, seed);
    const ServiceFigures joint = run_service(trace, joint_setup());
    const ServiceFigures apart = run_service(trace, apart_setup());
    EXPECT_EQ(joint.all.completed, trace.requests.size());
    EXPECT_EQ(apart.all.completed, trace.requests.size());
    EXPECT_EQ(joint.detours.apart, 0u);
    EXPECT_GT(apart.detours.apart, 30u);
    EXPECT_LT(apart.all.tpot.p99, 0.8 * joint.all.tpot.p99);
    EXPECT_GT(apart.all.within, joint.all.within);
  }
}

TEST(ApartRun, ShortPromptsStayWhereTheyAreAnswered) {
  const RequestTrace trace = trace_of({kShort}, 1);
  const ServiceFigures figures = run_service(trace, apart_setup());
  EXPECT_EQ(figures.all.completed, trace.requests.size());
  EXPECT_LT(static_cast<double>(figures.detours.apart),
            0.02 * static_cast<double>(trace.requests.size()));
}

TEST(ApartRun, ASlowLinkKeepsPromptsWhereTheyAreAnswered) {
  const RequestTrace trace = trace_of({kLong, kShort}, 1);
  ServiceSetup setup = apart_setup();
  setup.targets.ttft_s = 4;
  EXPECT_GT(run_service(trace, setup).detours.apart, 30u);
  setup.groups[0].transfer->bytes_s = 1e6;  // 13 s for a short prompt
  EXPECT_EQ(run_service(trace, setup).detours.apart, 0u);
}

TEST(ApartRun, EachRequestEndsWhateverCrashesAndTwoRunsAreBitEqual) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    const RequestTrace trace = trace_of({{2, 6000, 40}, {8, 200, 150}}, seed);
    ServiceSetup setup = apart_setup();
    setup.gateways = seed % 2 == 0 ? 2 : 1;
    setup.groups[0].transfer->bytes_s = 2e9;
    setup.queue_wait = Duration::hours(1);
    setup.router.queue_max = 1'000'000;
    setup.crashes.reserve(8);
    for (std::uint32_t i = 0; i < 8; ++i) {
      setup.crashes.push_back({.replica = i, .at = Duration::milliseconds(24'300) * (i + 1)});
    }
    const ServiceFigures figures = run_service(trace, setup);
    EXPECT_EQ(figures.all.completed, trace.requests.size());
    EXPECT_GT(figures.detours.apart, 0u);
    const ServiceFigures again = run_service(trace, setup);
    EXPECT_EQ(figures.all.ttft.mean, again.all.ttft.mean);
    EXPECT_EQ(figures.span, again.span);
    for (ReplicaGroup& group : setup.groups) group.rules.steps = EngineRules::Steps::kEach;
    const ServiceFigures each = run_service(trace, setup);
    EXPECT_EQ(figures.all.tpot.mean, each.all.tpot.mean);
    EXPECT_EQ(figures.replicas.steps, each.replicas.steps);
  }
}

TEST(ApartRun, APromptThatWasReceivedNeedsOneStepForItsFirstToken) {
  const EngineRules rules{.sequences_max = 8, .step_tokens = 512, .kv_blocks = 200};
  const std::vector<std::uint32_t> chain{0, 1, 2, 3};
  EngineModel engine(rules, kCost, 4);
  EngineRequest request{.id = 1, .prompt_tokens = 2000, .output_tokens = 3, .chain = chain};
  request.prompt = EngineRequest::Prompt::kReceived;
  engine.submit(request, 0);
  std::vector<EngineEvent> events;
  while (engine.next() != kNeverPs) {
    const std::span<const EngineEvent> told = engine.complete();
    events.insert(events.end(), told.begin(), told.end());
    ASSERT_TRUE(engine.consistent());
  }
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, EngineEventKind::kFirst);
  EXPECT_LT(seconds_of_ps(events[0].time), 0.006);
  EXPECT_EQ(engine.counters().prompt_tokens, 0u) << "it computed no prompt";
  // The next prompt that begins so finds it.
  request.id = 2;
  request.prompt = EngineRequest::Prompt::kComputed;
  engine.submit(request, engine.next() == kNeverPs ? events[1].time : engine.next());
  while (engine.next() != kNeverPs) (void)engine.complete();
  EXPECT_GT(engine.counters().cached_tokens, 1900u);
}

TEST(ApartRun, ACacheThatIsTooSmallComputesAgainWhatItReceived) {
  const EngineRules rules{.sequences_max = 8, .step_tokens = 512, .kv_blocks = 100};
  EngineModel engine(rules, kCost, 0);
  for (std::uint32_t id = 0; id < 4; ++id) {
    engine.submit({.id = id,
                   .prompt_tokens = 480,
                   .output_tokens = 400,
                   .prompt = EngineRequest::Prompt::kReceived},
                  0);
  }
  std::size_t ends = 0;
  while (engine.next() != kNeverPs) {
    for (const EngineEvent& each : engine.complete()) {
      ends += each.kind == EngineEventKind::kEnd ? 1 : 0;
    }
    ASSERT_TRUE(engine.consistent());
  }
  EXPECT_EQ(ends, 4u);
  EXPECT_GT(engine.counters().preemptions, 0u);
}

}  // namespace
}  // namespace orrery
