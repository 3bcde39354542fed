#include "scheduler/explain/explain.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "base/text/quantity_text.hpp"
#include "scheduler/admission.hpp"
#include "scheduler/explain/explain_trial.hpp"
#include "scheduler/power/gang_power.hpp"
#include "scheduler/preempt/preemption.hpp"
#include "scheduler/price/run_time.hpp"
#include "scheduler/price/time_shift.hpp"
#include "scheduler/tenants/queue_order.hpp"
#include "scheduler/tenants/slack.hpp"

namespace orrery {
namespace {

std::string level_name(TopologyLevel level) {
  for (const auto& word : enum_words(level)) {
    if (word.value == level) return std::string(word.word);
  }
  return "";
}

const GangRequest& first_gang(const JobRequest& job) {
  return job.roles[static_cast<std::size_t>(JobPlacer::order_of(job).front())].options[0].gang;
}

class Explainer {
 public:
  Explainer(const Situation& situation, const Policy& policy, const WaitingJob& job)
      : s_(situation), policy_(policy), trial_(situation, policy, job) {}

  [[nodiscard]] Explanation run(const ExplainNames& names);

 private:
  void say_why(Explanation& out, const ExplainNames& names);
  [[nodiscard]] std::string why_busy(const Refusal& refusal) const;
  [[nodiscard]] std::string why(const Refusal& refusal) const;
  [[nodiscard]] std::string why_budget() const;
  /// The best run on a fleet where nothing runs.
  [[nodiscard]] std::optional<BestRun> best(BestAt what) const;
  void find_blocking(Explanation& out, const ExplainNames& names);
  void find_bounds(Explanation& out);
  void say_when(Explanation& out);
  [[nodiscard]] bool waits_for_grid(Explanation& out, const StartJob& start) const;
  void say_deadline(Explanation& out);
  [[nodiscard]] FleetTypeId type_of(const StartJob& start) const;

  const Situation& s_;
  const Policy& policy_;
  ExplainTrial trial_;
};

std::string Explainer::why_busy(const Refusal& refusal) const {
  const GangRequest& gang = first_gang(trial_.request());
  const std::string type = s_.fleet.topology().accelerator(gang.type).id;
  const std::uint32_t have = gang.devices - std::min(gang.devices, refusal.missing);
  if (gang.share < kWholeDevice) return fmt::format("no {} has so large a share free", type);
  if (refusal.level == TopologyLevel::kNode || gang.node_devices == 1 ||
      gang.devices <= gang.node_devices) {
    return fmt::format("no {} has {} of {} free; the fullest has {}", level_name(refusal.level),
                       gang.devices, type, have);
  }
  const std::uint32_t each = gang.node_devices;
  const std::string units =
      fmt::format("{} nodes with {} of {}", (gang.devices + each - 1) / each, each, type);
  const std::uint32_t units_free = have / each;
  if (refusal.level == TopologyLevel::kFleet) {
    return fmt::format("the fleet does not have {} free; it has {}", units, units_free);
  }
  return fmt::format("no {} has {} free; the fullest has {}", level_name(refusal.level), units,
                     units_free);
}

std::optional<BestRun> Explainer::best(BestAt what) const {
  FleetOverlay emptied(s_.fleet);
  for (const RunningJob& job : s_.running) {
    give_back(emptied, std::span<const PlacedGang>(job.gangs));
  }
  Situation empty = s_;
  empty.fleet = emptied.view();
  return best_run(empty, trial_.tree(), trial_.request(), what);
}

std::string Explainer::why_budget() const {
  std::string why = "what is free would cost more than its budget";
  const std::optional<BestRun> cheapest = best(BestAt::kCost);
  if (!cheapest) return why;
  const std::optional<Dollars>& budget = trial_.request().budget;
  if (!budget || cheapest->cost > *budget) return budget_text(*cheapest);
  return fmt::format("{}; on {} it costs {}", why, cheapest->on, print(cheapest->cost));
}

std::string Explainer::why(const Refusal& refusal) const {
  switch (refusal.kind) {
    case RejectionKind::kBusy:
      return why_busy(refusal);
    case RejectionKind::kNever:
      return "the fleet, as built, can never hold it";
    case RejectionKind::kQuota:
      return "its tenant may not take that many accelerators";
    case RejectionKind::kPower:
      return "its draw would exceed a power or cooling limit";
    case RejectionKind::kMemory:
      return "the work does not fit the memory of the accelerators";
    case RejectionKind::kStack:
      return "no accelerator has the software stack it needs";
    case RejectionKind::kBudget:
      return why_budget();
    case RejectionKind::kLater:
      return "something could start it now, but it waits for better";
  }
  return "";
}

// Lists tenants whose limit binds, and the power domain that lacks most.
void Explainer::find_bounds(Explanation& out) {
  const JobRequest& job = trial_.request();
  const Topology& topology = s_.fleet.topology();
  if (policy_.quotas == Quotas::kHeld && s_.usage != nullptr) {
    for (const RoleRequest& role : job.roles) {
      const GangRequest& gang = role.options.front().gang;
      const Room room = s_.usage->room(job.tenant, gang.type);
      if (room.bound == RoomBound::kNone || room.devices >= std::int64_t{role.gangs} * gang.devices)
        continue;
      out.blocked_by.push_back(fmt::format("{} of tenant {}: room for {} more of {}",
                                           room.bound == RoomBound::kLimit ? "limit" : "guarantee",
                                           s_.usage->tree().path(room.tenant),
                                           std::max<std::int64_t>(0, room.devices),
                                           topology.accelerator(gang.type).id));
    }
  }
  if (s_.power == nullptr || out.refusal->kind != RejectionKind::kPower) return;
  Situation unlimited = trial_.situation();
  unlimited.power = nullptr;
  const auto start = trial_.decide(unlimited);
  if (!start) return;
  std::vector<NodeDraw> draws;
  for (std::size_t i = 0; i < start->gangs.size(); ++i) {
    for (const NodeDraw& draw :
         draws_of_gang(s_.power->tree(), start->gangs[i], start->terms[i].draw)) {
      draws.push_back(draw);
    }
  }
  if (const auto lacks = s_.power->check(*s_.caps, draws)) {
    out.blocked_by.push_back(fmt::format("{} lacks {:.1f} kW", topology.power_name(lacks->domain),
                                         static_cast<double>(lacks->missing) / 1e6));
  }
}

// Lists the fewest running jobs found whose devices the job needs, regardless of rights to them.
void Explainer::find_blocking(Explanation& out, const ExplainNames& names) {
  std::vector<std::vector<HeldGang>> held(s_.running.size());
  std::vector<Victim> victims;
  for (std::size_t i = 0; i < s_.running.size(); ++i) {
    for (const PlacedGang& gang : s_.running[i].gangs) {
      held[i].push_back({&gang.allocation, gang.host});
    }
    victims.push_back({held[i], 1, {}});
  }
  PreemptionAsk ask;
  ask.place = [&](const FleetView& view) { return trial_.place(view); };
  ask.object = [](const PreemptionPlan&) { return std::optional<std::uint32_t>(); };
  ask.devices = devices_wanted(trial_.request());
  const auto plan = plan_preemption(s_.fleet, victims, ask);
  if (!plan) return;
  for (const Yield& one : plan->yields) {
    out.blocking.push_back(s_.running[one.victim].id);
    out.blocked_by.push_back(names.job(out.blocking.back()));
  }
}

void Explainer::say_why(Explanation& out, const ExplainNames& names) {
  const auto alone = trial_.decide(trial_.situation());
  if (!alone) {
    out.refusal = alone.error();
    out.why = why(*out.refusal);
    find_bounds(out);
    if (out.refusal->kind == RejectionKind::kBusy) find_blocking(out, names);
    return;
  }
  out.why = "it would fit now: jobs ahead of it, or slots kept for them, come first";
  for (const Reservation& slot : s_.reserved) {
    if (slot.job != out.job) out.blocked_by.push_back("the slot of " + names.job(slot.job));
  }
  for (const Closure& closure : s_.closures) {
    if (closure.from > s_.now && !closure.only.valid()) {
      out.blocked_by.push_back(fmt::format("maintenance of {} nodes from {}", closure.nodes.size(),
                                           closure.from.text()));
    }
  }
}

// Whether the job waits for cleaner or cheaper electricity than it would have now.
bool Explainer::waits_for_grid(Explanation& out, const StartJob& start) const {
  const auto later = later_start({s_, policy_, s_.fleet}, trial_.job(),
                                 {start.gangs, start.terms, start.expected});
  if (!later) return false;
  out.why = fmt::format("by choice until {}: electricity and carbon cost {} less then",
                        later->at.text(), print(Dollars(static_cast<double>(later->saved) * 1e-6)));
  out.when = LikelyStart{later->at - s_.now, later->at - s_.now};
  return true;
}

// If the job waits by choice, it does not start on its present choice until its patience ends.
void Explainer::say_when(Explanation& out) {
  ForecastAsk ask{.job = out.job, .after = out.blocking, .declined = {}, .declined_until = {}};
  const bool by_choice = out.refusal && out.refusal->kind == RejectionKind::kLater;
  if (by_choice) {
    Policy policy = trial_.policy();
    policy.plan_wait = Seconds(0);
    const Duration waited = s_.now - trial_.job().submitted;
    if (trial_.decide(trial_.situation(), policy)) {
      const Duration left = Duration::from_seconds(policy_.plan_wait.value()) - waited;
      out.why = "a plan for it is being made";
      out.waits_for_plan = true;
      out.when = LikelyStart{std::max(Duration(), left), std::max(Duration(), left)};
      return;
    }
    policy.patience = Seconds(-1);
    if (const auto start = trial_.decide(trial_.situation(), policy)) {
      if (waits_for_grid(out, *start)) return;
      ask.declined = type_of(*start);
      ask.declined_until =
          trial_.job().submitted + Duration::from_seconds(policy_.patience.value());
    }
  }
  out.when = forecast_start(s_, policy_, trial_.tree(), ask);
  if (!ask.declined || !out.when || !out.when->on) return;
  const Topology& topology = s_.fleet.topology();
  out.why = fmt::format("by choice, for {} that is free at about {}; {} is free now",
                        topology.accelerator(*out.when->on).id, (s_.now + out.when->median).text(),
                        topology.accelerator(*ask.declined).id);
}

void Explainer::say_deadline(Explanation& out) {
  const std::optional<Slack> slack = slack_of(trial_.job(), policy_, s_);
  if (!slack) return;
  out.deadline = slack_text(*slack);
  if (!slack->kept()) {
    const std::optional<BestRun> quickest = best(BestAt::kTime);
    if (quickest) out.deadline += "; " + quickest_text(*quickest, s_.now);
    return;
  }
  if (!out.when || out.when->median == Duration::max()) return;
  const Duration late = out.when->median - slack->left;
  out.deadline += late > Duration()
                      ? fmt::format("; as things are it will be about {} late", late.text())
                      : ", and is likely to";
}

FleetTypeId Explainer::type_of(const StartJob& start) const {
  const PlacedGang& gang = start.gangs.front();
  return trial_.request().roles[gang.role].options[gang.option].gang.type;
}

Explanation Explainer::run(const ExplainNames& names) {
  Explanation out;
  out.job = trial_.job().id;
  out.name = names.job(out.job);
  const GangRequest& gang = first_gang(trial_.request());
  out.wish = fmt::format("{} {}", devices_wanted(trial_.request()),
                         s_.fleet.topology().accelerator(gang.type).id);
  const std::vector<std::uint32_t> order = in_order(s_, policy_);
  const auto mine = std::find_if(order.begin(), order.end(),
                                 [&](std::uint32_t at) { return s_.waiting[at].id == out.job; });
  out.ahead = static_cast<std::uint32_t>(mine - order.begin());
  say_why(out, names);
  const bool ever = !out.refusal || out.refusal->kind == RejectionKind::kBusy ||
                    out.refusal->kind == RejectionKind::kLater;
  if (ever) say_when(out);
  say_deadline(out);
  find_changes(trial_, names, out);
  return out;
}

}  // namespace

Explanation explain(const Situation& situation, const Policy& policy, JobId job,
                    const ExplainNames& names) {
  const auto at = std::find_if(situation.waiting.begin(), situation.waiting.end(),
                               [&](const WaitingJob& waiting) { return waiting.id == job; });
  ORRERY_ASSERT(at != situation.waiting.end(), "the job to explain waits");
  return Explainer(situation, policy, *at).run(names);
}

}  // namespace orrery
