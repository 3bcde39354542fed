// control/state/state_codec.cpp - makes a state of the fields of a snapshot: what can be derived is
// rebuilt.
#include "control/state/state_codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "control/settings.hpp"
#include "control/state/invariants.hpp"
#include "control/state/state_ranges.hpp"
#include "scheduler/pass/taking.hpp"
#include "scheduler/power/gang_power.hpp"

namespace orrery {

void StateCodec::make_queue(State& state) {
  for (Job& job : state.jobs_) {
    if (ended(job.phase)) continue;
    if (job.submission->request.array.valid()) {
      State::Array& array = state.arrays_[job.submission->request.array];
      if (job.phase == JobPhase::kHeld) {
        array.held.insert(job.id);
      } else {
        ++array.active;
      }
    }
    if (job.phase == JobPhase::kHeld) state.held_.insert(state.held_.end(), job.id);
    if (job.phase != JobPhase::kQueued) continue;
    state.waiting_.push_back(
        {job.id, &job.submission->request, job.submitted, job.done, job.attained, job.data_at});
  }
  std::sort(state.waiting_.begin(), state.waiting_.end(),
            [](const WaitingJob& a, const WaitingJob& b) {
              return std::pair(a.submitted, a.id) < std::pair(b.submitted, b.id);
            });
  for (std::uint32_t i = 0; i < state.running_.size(); ++i) {
    RunningJob& run = state.running_.edit(i);
    Job& job = state.at(run.id);
    job.at = i;
    run.request = &job.submission->request;
    run.data_at = job.data_at;
  }
}

void StateCodec::make_fleet(State& state, const Parts& parts) {
  const Topology& topology = *state.setup_->topology;
  state.closed_.take_up_windows(topology);
  for (const auto& [link, is] : parts.links) state.fleet_.set_link(link, is);
  for (std::uint32_t n = 0; n < state.nodes_.size(); ++n) {
    const NodeId id(n);
    const NodeRecord& record = state.nodes_[n];
    state.closed_.lend(id, Instant::max(), record.loan.until, topology);
    state.closed_.take(id, Instant(), taken_until(record), topology);
    state.closed_.bind(id, JobId(), bound_job(record), topology);
    if (state.nodes_[n].spare) state.spares_.insert(state.spares_.end(), id);
    state.fleet_.set_health(id, shown_health(state.nodes_[n]));
  }
  const auto take_part = [&state](JobId job, const NodeDevices& at, const PlacedGang& gang) {
    take(state.fleet_, {.ranks = {at}, .share = gang.allocation.share}, gang.host);
    if (gang.allocation.share == kWholeDevice) state.set_owner(at, job);
  };
  for (const RunningJob& run : state.running_) {
    for (const PlacedGang& gang : run.gangs) {
      for (const NodeDevices& at : gang.allocation.ranks) take_part(run.id, at, gang);
      for (const NodeDevices& at : gang.allocation.idle) take_part(run.id, at, {});
    }
    state.add_power(run);
  }
  for (const Ghost& ghost : state.ghosts_) {
    take_part(ghost.job, ghost.at, {.allocation = {.share = ghost.share}, .host = ghost.host});
  }
  // An earlier form did not say since when nodes are lent.
  for (std::uint32_t n = 0; n < state.nodes_.size(); ++n) {
    NodeRecord::Loan& loan = state.nodes_[n].loan;
    if (loan.since != Instant::max()) continue;
    loan.since = loan.hold.empty() ? Instant() : state.now_;
    state.note_loan_use(NodeId(n));
  }
  if (!state.caps_) return;
  for (std::size_t d = 0; d < parts.limits.size(); ++d) {
    state.caps_->set_cap(PowerDomainId::at(d), parts.limits[d].cap);
    state.caps_->set_supply(PowerDomainId::at(d), parts.limits[d].supply);
  }
}

Status StateCodec::make_settings(State& state) {
  if (!state.texts_.policy.empty()) {
    Result<Policy> policy = policy_from(state.texts_.policy);
    if (!policy) return forward_error(policy);
    state.policy_ = *std::move(policy);
  }
  if (state.texts_.tenants.empty()) {
    const std::optional<Error>& refused = state.setup().fleets.tenants_refused;
    return refused ? Status(tl::unexpected(*refused)) : Status();
  }
  Result<TenantTree> tree = tenants_from(state.texts_.tenants, *state.setup().topology);
  if (!tree) return forward_error(tree);
  state.own_tenants_ = std::make_shared<const TenantTree>(*std::move(tree));
  state.tenants_ = state.own_tenants_.get();
  return {};
}

// Checks the fields before anything is rebuilt from them.
Status StateCodec::check(const State& state, const Parts& parts) {
  const auto nonsense = [](std::string_view what) {
    return environment_error(fmt::format("the snapshot makes no sense: {}", what));
  };
  const TenantTree& tenants = *state.tenants_;
  if (parts.recent.size() != std::size_t{tenants.size()} * tenants.columns()) {
    return environment_error("the snapshot is of other tenants");
  }
  const auto finite = [](double value) { return std::isfinite(value); };
  if (!std::all_of(parts.recent.begin(), parts.recent.end(), finite)) {
    return nonsense("a tenant's usage is no number");
  }
  for (const Remembered& each : parts.requests) {
    if (each.job.value() >= state.jobs_.size()) return nonsense("a job that was answered is none");
  }
  const Topology& topology = *state.setup().topology;
  for (const auto& [link, is] : parts.links) {
    if (link.value() >= topology.link_count()) return nonsense("a link is not there");
    if (!(is.health >= 0 && is.health <= 1 && is.load >= 0)) {
      return nonsense(fmt::format("link {} has a health or load that is none", link.value()));
    }
  }
  if (parts.limits.size() != (state.caps_ ? topology.power_domains().size() : 0)) {
    return nonsense("its power domains are others than the fleet's");
  }
  for (const auto& [cap, supply] : parts.limits) {
    const bool numbers =
        finite(cap.value_or(Watts()).value()) && finite(supply.value_or(Watts()).value());
    if (!numbers) return nonsense("a power limit is no number");
  }
  for (const PlanKey& key : parts.plans) {
    if (key.type.value() < topology.type_count() && key.devices > 0) continue;
    return nonsense("a plan is for a type that is not there");
  }
  if (const auto wrong = out_of_range(state)) return nonsense(*wrong);
  return {};
}

void StateCodec::make_usage(State& state, const Parts& parts) {
  const TenantTree& tenants = *state.tenants_;
  state.usage_ = std::make_unique<TenantUsage>(tenants);
  for (const RunningJob& run : state.running_) state.enter_usage(run, 1);
  for (std::size_t i = 0; i < parts.recent.size(); ++i) {
    const std::size_t c = i % tenants.columns();
    const FleetTypeId type = c < tenants.type_count() ? FleetTypeId::at(c) : kAllTypes;
    state.usage_->set_recent(TenantId::at(i / tenants.columns()), type, parts.recent[i]);
  }
}

Status StateCodec::make_plans(State& state, const Parts& parts) {
  if (!parts.plans.empty() && !state.setup().plans) {
    return environment_error("the snapshot has plans, and this setup has no planner");
  }
  for (const PlanKey& key : parts.plans) {
    const std::shared_ptr<const PlanEntry> entry = state.setup().plans(key);
    if (entry == nullptr) return environment_error("a plan of the snapshot is not found any more");
    state.plans_.put(key, *entry);
  }
  for (const RunningJob& run : state.running_) {
    for (std::size_t i = 0; i < run.gangs.size(); ++i) {
      const PlacedGang& gang = run.gangs[i];
      const auto& plan = run.request->roles[gang.role].options[gang.option].plan;
      const PlanEntry* entry = plan ? state.plans_.find(*plan) : nullptr;
      if (entry == nullptr || !*entry || run.terms[i].plan < entry->value().size()) continue;
      return environment_error(fmt::format(
          "job {} of the snapshot runs by a plan that is not found any more", run.id.value()));
    }
  }
  return {};
}

Status StateCodec::make_again(State& state, const Parts& parts) {
  if (Status settings = make_settings(state); !settings) return settings;
  if (Status sense = check(state, parts); !sense) return sense;
  for (const Remembered& each : parts.requests) {
    state.requests_.jobs[each.request] = {each.job, each.at};
    state.requests_.ages.emplace_back(each.at, each.request);
  }
  make_queue(state);
  state.services_.take_up(state.jobs_);
  make_fleet(state, parts);
  make_usage(state, parts);
  if (Status plans = make_plans(state, parts); !plans) return plans;
  if (const auto broken = broken_invariant(state)) {
    return environment_error(fmt::format("the snapshot does not fit together: {}", *broken));
  }
  return {};
}

}  // namespace orrery
