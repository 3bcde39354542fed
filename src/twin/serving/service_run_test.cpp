#include "twin/serving/service_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "twin/serving/demand_scaler.hpp"
#include "workload/requests/request_generator.hpp"

namespace orrery {
namespace {

constexpr EngineStepCost kCost = {.step_s = 5e-3,
                                  .sequence_s = 3e-5,
                                  .context_token_s = 4e-8,
                                  .prompt_token_s = 3e-5,
                                  .prompt_pair_s = 1e-9};

RequestTrace requests(double rate, std::uint64_t seed, double batch = 0) {
  RequestSpec spec;
  spec.span = Seconds(300);
  spec.rate = rate;
  spec.cv = 2;
  spec.batch = batch;
  spec.prompt = {.median = 500, .sigma = 1, .max = 4000};
  spec.output = {.median = 100, .sigma = 1, .max = 1000};
  spec.sessions = SessionSpec{.turns = 3, .think = Seconds(4), .shared = 1024, .prefixes = 3};
  Result<RequestTrace> trace = generate_requests(spec, {}, seed);
  EXPECT_TRUE(trace);
  return *std::move(trace);
}

ServiceSetup setup_of(std::uint32_t replicas) {
  ServiceSetup setup;
  setup.groups.push_back({.name = "a",
                          .count = replicas,
                          .rules = {.sequences_max = 32, .step_tokens = 1024, .kv_blocks = 3000},
                          .cost = kCost,
                          .cold_start = Duration::seconds(20)});
  return setup;
}

void expect_all_end(const ServiceFigures& figures, const RequestTrace& trace) {
  EXPECT_EQ(figures.all.requests, trace.requests.size());
  EXPECT_EQ(figures.all.completed + figures.all.shed + figures.all.failed, figures.all.requests);
  EXPECT_EQ(figures.interactive.requests + figures.batch.requests, figures.all.requests);
}

/// All that a run shows, so that two runs can be compared bit for bit.
std::vector<double> figures_in_full(const ServiceFigures& f) {
  std::vector<double> all = {f.hit_rate,
                             f.replicas.alive_s,
                             f.replicas.busy_s,
                             f.replicas.usd,
                             f.replicas.joules,
                             f.span.count_seconds(),
                             static_cast<double>(f.detours.preemptions),
                             static_cast<double>(f.replicas.steps),
                             static_cast<double>(f.detours.waited)};
  for (const ClassFigures* each : {&f.all, &f.interactive, &f.batch}) {
    for (const QuantilesOf* q : {&each->ttft, &each->tpot, &each->whole}) {
      all.insert(all.end(), {q->mean, q->p50, q->p90, q->p99, q->max});
    }
    all.push_back(static_cast<double>(each->within));
    all.push_back(static_cast<double>(each->shed));
  }
  return all;
}

/// Figures with steps skipped and with each step an event, of a service that queues little and has
/// a crash: every request ends, two runs are bit-equal, and so are both ways.
std::pair<ServiceFigures, ServiceFigures> played_in_both_ways(const RequestTrace& trace,
                                                              ServiceSetup setup) {
  setup.router.queue_max = 20;
  setup.crashes.push_back({.replica = 1, .at = Duration::seconds(100)});
  const ServiceFigures first = run_service(trace, setup);
  expect_all_end(first, trace);
  EXPECT_EQ(figures_in_full(first), figures_in_full(run_service(trace, setup)));
  setup.groups[0].rules.steps = EngineRules::Steps::kEach;
  const ServiceFigures each = run_service(trace, setup);
  EXPECT_EQ(figures_in_full(first), figures_in_full(each));
  return {first, each};
}

TEST(ServiceRun, TwoRunsAreBitEqualAndSoAreSkippedSteps) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    const RequestTrace trace = requests(6, seed, 0.2);
    const auto [first, each] = played_in_both_ways(trace, setup_of(2));
    EXPECT_GT(first.all.completed, 0u);
    EXPECT_LT(first.replicas.events, each.replicas.events);
  }
}

TEST(ServiceRun, MoreReplicasAreFasterAndCostMore) {
  const RequestTrace trace = requests(8, 3);
  ServiceSetup setup = setup_of(1);
  setup.groups[0].usd_h = 3.6;
  setup.groups[0].watts = 700;
  setup.groups[0].watts_idle = 100;
  setup.targets = {.ttft_s = 1, .tpot_s = 0.1};
  setup.queue_wait = Duration::hours(1);
  setup.router.queue_max = 1'000'000;
  const ServiceFigures one = run_service(trace, setup);
  setup.groups[0].count = 4;
  const ServiceFigures four = run_service(trace, setup);
  EXPECT_EQ(one.all.completed, trace.requests.size());
  EXPECT_EQ(four.all.completed, trace.requests.size());
  EXPECT_GT(one.all.ttft.p99, 2 * four.all.ttft.p99);
  EXPECT_LT(one.all.within, four.all.within);
  EXPECT_NEAR(four.replicas.usd, four.replicas.alive_s * 1e-3, 1e-6);
  EXPECT_NEAR(four.replicas.alive_s, 4 * four.span.count_seconds(), 10);
  EXPECT_NEAR(four.replicas.joules,
              four.replicas.busy_s * 700 + (four.replicas.alive_s - four.replicas.busy_s) * 100,
              1e-3);
  EXPECT_LE(four.hit_rate, four.oracle_rate);
  EXPECT_GT(one.hit_rate, 0.2);
  EXPECT_LE(one.hit_rate, one.oracle_rate + 1e-9);
}

TEST(ServiceRun, ACrashLosesNoRequest) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    const RequestTrace trace = requests(4, seed);
    ServiceSetup setup = setup_of(3);
    setup.queue_wait = Duration::hours(1);
    setup.router.queue_max = 1'000'000;
    setup.crashes.reserve(20);
    for (std::uint32_t i = 0; i < 20; ++i) {
      setup.crashes.push_back({.replica = i, .at = Duration::seconds(10) * (i + 1)});
    }
    const ServiceFigures figures = run_service(trace, setup);
    expect_all_end(figures, trace);
    EXPECT_EQ(figures.all.completed, trace.requests.size());
    EXPECT_GT(figures.detours.moved, 0u);
    EXPECT_GT(figures.detours.retried, 0u);
  }
}

TEST(ServiceRun, WithoutAReplicaRequestsWaitForTheColdStart) {
  const RequestTrace trace = requests(1, 1);
  ServiceSetup setup = setup_of(1);
  setup.crashes.push_back({.replica = 0, .at = Duration::nanoseconds(1)});
  setup.groups[0].cold_start = Duration::seconds(30);
  const ServiceFigures figures = run_service(trace, setup);
  EXPECT_EQ(figures.all.completed, trace.requests.size());
  EXPECT_GT(figures.all.ttft.max, 25);
  EXPECT_LT(figures.all.ttft.max, 35);
}

TEST(ServiceRun, AFullQueueRefusesBatchFirst) {
  const RequestTrace trace = requests(20, 2, 0.5);
  ServiceSetup setup = setup_of(1);
  setup.router.queue_max = 30;
  const ServiceFigures figures = run_service(trace, setup);
  expect_all_end(figures, trace);
  EXPECT_GT(figures.batch.shed, 0u);
  const auto share = [](const ClassFigures& of) {
    return static_cast<double>(of.shed) / static_cast<double>(of.requests);
  };
  EXPECT_GT(share(figures.batch), share(figures.interactive) + 0.2);
}

TEST(ServiceRun, ARequestThatWaitsTooLongIsShed) {
  const RequestTrace trace = requests(20, 2);
  ServiceSetup setup = setup_of(1);
  setup.router.queue_max = 1'000'000;
  setup.queue_wait = Duration::seconds(5);
  const ServiceFigures figures = run_service(trace, setup);
  expect_all_end(figures, trace);
  EXPECT_GT(figures.all.shed, 0u);
}

TEST(ServiceRun, ARequestThatFitsNoReplicaFails) {
  RequestTrace trace = requests(1, 1);
  trace.requests[3].prompt_tokens = 60'000;
  trace.requests[3].chain_size = 0;
  const ServiceFigures figures = run_service(trace, setup_of(2));
  EXPECT_EQ(figures.all.failed, 1u);
  EXPECT_EQ(figures.all.completed, trace.requests.size() - 1);
}

TEST(ServiceRun, AScalersOrdersTakeEffectAfterTheColdStartAndLoseNothing) {
  const RequestTrace trace = requests(10, 4);
  ServiceSetup setup = setup_of(1);
  setup.queue_wait = Duration::hours(1);
  setup.router.queue_max = 1'000'000;
  setup.tick = Duration::seconds(5);
  std::vector<ServiceWindow> seen;
  setup.scaler = [&seen](const ServiceWindow& window) {
    seen.push_back(window);
    const double begin = window.begin.count_seconds();
    return std::vector<std::uint32_t>{begin < 50 ? 1u : begin < 200 ? 5u : 2u};
  };
  const ServiceFigures figures = run_service(trace, setup);
  EXPECT_EQ(figures.all.completed, trace.requests.size());
  EXPECT_EQ(figures.replicas.orders, 2u);
  EXPECT_EQ(figures.replicas.most, 5u);
  std::uint64_t arrived = 0;
  for (const ServiceWindow& window : seen) {
    const double end = (window.begin + window.length).count_seconds();
    arrived += window.arrived;
    if (end <= 55) {
      EXPECT_EQ(window.ready[0], 1u) << end;
    }
    if (end > 55 && end < 75) {
      EXPECT_EQ(window.starting[0], 4u) << end;
    }
    if (end > 80 && end <= 205) {
      EXPECT_EQ(window.ready[0], 5u) << end;
    }
    if (end > 205) {
      EXPECT_EQ(window.ready[0], 2u) << end;
    }
  }
  EXPECT_EQ(arrived, trace.requests.size());
}

/// Requests at one rate, then at a higher one, then at the first again, ten minutes each.
RequestTrace rush(double rate, double high, std::uint64_t seed) {
  RequestSpec spec;
  spec.span = Seconds(1800);
  spec.prompt = {.median = 500, .sigma = 0.5, .max = 4000};
  spec.output = {.median = 100, .sigma = 0.5, .max = 1000};
  const Duration part = Duration::minutes(10);
  Result<RequestTrace> trace =
      generate_requests(spec, {{{}, rate}, {part, high}, {part * 2, rate}}, seed);
  EXPECT_TRUE(trace);
  return *std::move(trace);
}

TEST(ServiceRun, AServiceThatIsScaledFollowsARushAndLosesNoRequest) {
  constexpr ScaleTerms kTerms{.min = 1, .max = 9};
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    SCOPED_TRACE(seed);
    const RequestTrace trace = rush(6, 60, seed);
    ServiceSetup setup = setup_of(1);
    setup.targets = {.ttft_s = 2, .tpot_s = 0.1};
    setup.queue_wait = Duration::hours(1);
    setup.router.queue_max = 1'000'000;
    const ServiceFigures still = run_service(trace, setup);
    setup.scaler = demand_scaler(setup.groups, {.terms = kTerms, .ttft_s = 2, .tpot_s = 0.1});
    const ServiceFigures scaled = run_service(trace, setup);
    EXPECT_EQ(scaled.all.completed, trace.requests.size());
    EXPECT_EQ(figures_in_full(scaled), figures_in_full(run_service(trace, setup)));
    EXPECT_GT(scaled.replicas.most, 2U);
    EXPECT_LE(scaled.replicas.most, kTerms.max);
    EXPECT_LT(scaled.replicas.alive_s, scaled.replicas.most * scaled.span.count_seconds() * 0.8);
    EXPECT_GT(scaled.all.within, still.all.within + trace.requests.size() / 4);
  }
}

TEST(ServiceRun, AServiceThatRestsWakesForARequestAndLosesNone) {
  RequestTrace trace = requests(2, 3);
  const std::size_t half = trace.requests.size() / 2;
  for (std::size_t i = half; i < trace.requests.size(); ++i) {
    trace.requests[i].arrival = trace.requests[i].arrival + Duration::hours(1);
  }
  ServiceSetup setup = setup_of(1);
  setup.scaler =
      demand_scaler(setup.groups, {.terms = {.min = 0, .max = 4, .idle = Duration::minutes(2)}});
  const ServiceFigures figures = run_service(trace, setup);
  EXPECT_EQ(figures.all.completed, trace.requests.size());
  EXPECT_LT(figures.replicas.alive_s, 1800);
  EXPECT_GT(figures.all.ttft.max, 20) << "the cold start";
  EXPECT_LT(figures.all.ttft.max, 23) << "it wakes within a second";
}

TEST(ServiceRun, UnlikeReplicasEachHaveTheirOwnPace) {
  const RequestTrace trace = requests(6, 5);
  ServiceSetup setup = setup_of(2);
  ReplicaGroup slow = setup.groups[0];
  slow.name = "slow";
  slow.cost.step_s *= 4;
  slow.cost.prompt_token_s *= 4;
  setup.groups.push_back(slow);
  const ServiceFigures figures = run_service(trace, setup);
  EXPECT_EQ(figures.all.completed, trace.requests.size());
  ServiceSetup fast = setup_of(4);
  EXPECT_LT(run_service(trace, fast).all.whole.mean, figures.all.whole.mean);
}

/// The p90 of the time to the first token, in seconds, of eight replicas behind so many gateways;
/// the mean over several traces.
double ttft_p90(std::uint32_t gateways, Duration tell) {
  constexpr std::uint64_t kTraces = 3;
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= kTraces; ++seed) {
    ServiceSetup setup = setup_of(8);
    setup.gateways = gateways;
    setup.tell = tell;
    setup.seed = seed;
    sum += run_service(requests(60, seed), setup).all.ttft.p90;
  }
  return sum / kTraces;
}

TEST(ServiceRun, SeveralGatewaysThatTellEachOtherAreLittleWorseThanOne) {
  const double one = ttft_p90(1, kPeerTell);
  double told = one;
  for (const std::uint32_t gateways : {2U, 4U, 8U}) {
    told = ttft_p90(gateways, kPeerTell);
    EXPECT_LT(told, 1.5 * one) << gateways << " gateways";
  }
  EXPECT_LT(told, ttft_p90(8, Duration())) << "without telling";
}

TEST(ServiceRun, EachRequestOfSeveralGatewaysEndsOnceAndTwoRunsAreBitEqual) {
  const RequestTrace trace = requests(20, 1, 0.2);
  for (const std::uint32_t gateways : {2U, 5U}) {
    ServiceSetup setup = setup_of(2);
    setup.gateways = gateways;
    EXPECT_GT(played_in_both_ways(trace, setup).first.detours.waited, 0u);
  }
}

}  // namespace
}  // namespace orrery
