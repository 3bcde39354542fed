#include "scheduler/admission.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

#include "base/assert.hpp"
#include "base/text/quantity_text.hpp"
#include "scheduler/forecast/start_forecast.hpp"
#include "scheduler/price/expected_bill.hpp"
#include "scheduler/price/priced_placer.hpp"
#include "scheduler/scheduler.hpp"

namespace orrery {
namespace {

Policy policy_of(BestAt what) {
  Policy policy;
  policy.choice = OptionChoice::kCheapest;
  policy.patience = Seconds(-1);
  policy.plan_wait = Seconds(0);
  PriceWeights& weights = policy.weights;
  const bool cost = what != BestAt::kTime;
  constexpr double kOverAllCosts = 1e6;
  weights = {.hire = cost ? 1.0 : 0.0,
             .energy = cost ? 1.0 : 0.0,
             .carbon_tonne = 0,
             .time = cost ? 0.0 : 1.0,
             .time_cost_goal = 1,
             .fragmentation = 0,
             .lost_work = 0,
             .data = 1,
             .failure = 0,
             .lateness = what == BestAt::kCostInTime ? kOverAllCosts : 0,
             .headroom = 0};
  return policy;
}

std::string devices_text(const Topology& topology, const JobRequest& request,
                         std::span<const PlacedGang> gangs) {
  std::map<FleetTypeId, std::uint32_t> devices;
  for (const PlacedGang& placed : gangs) {
    const GangRequest& gang = request.roles[placed.role].options[placed.option].gang;
    devices[gang.type] += gang.devices;
  }
  std::string text;
  for (const auto& [type, count] : devices) {
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : " and ", count, topology.accelerator(type).id);
  }
  return text;
}

Instant next_minute(Instant at) {
  constexpr std::int64_t kMinute = 60'000'000'000;
  return Instant() + Duration::minutes(((at - Instant()).count_ns() + kMinute - 1) / kMinute);
}

std::string amount_text(Dollars amount) {
  return amount < Dollars(10) ? fmt::format("${:.2g}", amount.value())
                              : fmt::format("${:.0f}", amount.value());
}

bool starts_in(const PassResult& result, JobId job) {
  return std::any_of(result.decisions.begin(), result.decisions.end(),
                     [job](const Decision& decision) {
                       const auto* start = std::get_if<StartJob>(&decision);
                       return start != nullptr && start->job == job;
                     });
}

/// The time until the job is likely to start: 0 if it starts in a pass of the whole queue.
std::optional<Duration> likely_wait(const AdmissionAsk& ask, const WaitingJob& job) {
  if (ask.held == HeldBack::kYes) return std::nullopt;
  Scheduler scheduler(ask.tree);
  if (starts_in(scheduler.decide(ask.situation, ask.policy, PassKind::kIncremental), job.id)) {
    return Duration();
  }
  Situation alone = ask.situation;
  alone.waiting = std::span(&job, 1);
  const PassResult result = Scheduler(ask.tree).decide(alone, ask.policy, PassKind::kIncremental);
  if (!starts_in(result, job.id) && result.wake != Instant::max()) {
    return result.wake - ask.situation.now;
  }
  const std::optional<LikelyStart> when =
      forecast_start(ask.situation, ask.policy, ask.tree,
                     {.job = job.id, .after = {}, .declined = {}, .declined_until = {}});
  if (!when || when->median == Duration::max()) return std::nullopt;
  return when->median;
}

/// The note for a job that can be in time and within its budget.
std::string likely_text(const AdmissionAsk& ask, const WaitingJob& job, const BestRun& run) {
  const JobRequest& request = *job.request;
  std::string text =
      fmt::format("on {} it takes {} and costs {}", run.on, run.length.text(), print(run.cost));
  if (request.budget) text += fmt::format(" of its budget of {}", print(*request.budget));
  const std::optional<Duration> wait = likely_wait(ask, job);
  if (!wait) return text + "; when it starts is not foreseen";
  text += *wait == Duration() ? "; it starts at the next decision"
                              : fmt::format("; it is likely to start in {}", wait->text());
  if (!request.deadline) return text;
  const Instant done = ask.situation.now + *wait + run.length;
  const Duration early = *request.deadline - done;
  if (early >= Duration()) return fmt::format("{}, {} earlier than it must", text, early.text());
  return fmt::format("{} and miss its deadline by {}; a deadline of {} would do", text,
                     (-early).text(), next_minute(done).text());
}

}  // namespace

std::optional<BestRun> best_run(const Situation& situation, const PlaceTree& tree,
                                const JobRequest& request, BestAt what) {
  const Policy policy = policy_of(what);
  JobRequest free = request;
  free.class_id = ClassId();
  free.budget.reset();
  free.goal = JobGoal::kTime;
  Situation alone{.now = situation.now, .fleet = situation.fleet};
  alone.plans = situation.plans;
  alone.costs = situation.costs;
  alone.electricity = situation.electricity;
  alone.launch = situation.launch;
  const WaitingJob job{JobId(0), &free, situation.now, 0, 0};
  PricedPlacer placer(tree);
  placer.begin();
  const PriceContext context{alone, policy, alone.fleet};
  const PricedOrRefusal priced =
      placer.place(job, context, {.fit = policy.node_fit}, ViewLasts::kNo);
  if (!priced || !priced->length) return std::nullopt;
  const ExpectedBill bill = expected_bill(context, job, priced->gangs, priced->terms);
  return BestRun{Dollars(bill.dollars() + bill.assumed_hire), Duration::from_seconds(bill.seconds),
                 devices_text(alone.fleet.topology(), request, priced->gangs)};
}

Dollars round_up(Dollars amount) {
  if (amount <= Dollars(0)) return amount;
  double step = 1;
  while (step * 100 <= amount.value()) step *= 10;
  while (step * 10 > amount.value()) step /= 10;
  return Dollars(std::ceil(amount.value() / step) * step);
}

std::string budget_text(const BestRun& cheapest) {
  return fmt::format("its cheapest placement, {}, costs {}; a budget of {} would do", cheapest.on,
                     print(cheapest.cost), amount_text(round_up(cheapest.cost)));
}

std::string quickest_text(const BestRun& quickest, Instant now) {
  return fmt::format("at its quickest, on {}, it takes {}; a deadline of {} would do", quickest.on,
                     quickest.length.text(), next_minute(now + quickest.length).text());
}

Admission judge_admission(const AdmissionAsk& ask) {
  const auto waiting = ask.situation.waiting;
  const auto job = std::find_if(waiting.begin(), waiting.end(),
                                [&](const WaitingJob& each) { return each.id == ask.job; });
  ORRERY_ASSERT(job != waiting.end(), "the job waits");
  const JobRequest& request = *job->request;
  if (!request.deadline && !request.budget) return {};
  Situation empty = ask.situation;
  empty.fleet = ask.empty;
  const std::optional<BestRun> cheapest = best_run(empty, ask.tree, request, BestAt::kCost);
  if (!cheapest) return {};
  if (request.budget && cheapest->cost > *request.budget) {
    return {.refusal = "budget: " + budget_text(*cheapest), .note = {}};
  }
  if (!request.deadline) return {.refusal = {}, .note = likely_text(ask, *job, *cheapest)};
  const std::optional<BestRun> quickest = best_run(empty, ask.tree, request, BestAt::kTime);
  const std::optional<BestRun> timely = best_run(empty, ask.tree, request, BestAt::kCostInTime);
  if (!quickest || !timely) return {};
  const Instant soonest = ask.situation.now + quickest->length;
  if (soonest > *request.deadline) {
    return {.refusal = "deadline: " + quickest_text(*quickest, ask.situation.now), .note = {}};
  }
  if (request.budget && timely->cost > *request.budget) {
    return {
        .refusal = fmt::format("budget: in time for its deadline it costs {} at least, on {}; a "
                               "budget of {} would do, or a deadline of {}",
                               print(timely->cost), timely->on, amount_text(round_up(timely->cost)),
                               next_minute(ask.situation.now + cheapest->length).text()),
        .note = {}};
  }
  return {.refusal = {}, .note = likely_text(ask, *job, *timely)};
}

}  // namespace orrery
