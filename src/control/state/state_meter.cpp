// The use of resources by jobs: devices, energy, money, carbon, lost work.
#include <algorithm>
#include <bit>

#include "control/state/state.hpp"
#include "scheduler/request/gang_run.hpp"
#include "scheduler/rounds/round_turns.hpp"

namespace orrery {
namespace {

/// Draw and cost a second of a job's devices, together.
struct Rates {
  double watts = 0;        ///< at the meter
  double hire = 0;         ///< dollars
  double electricity = 0;  ///< dollars paid beside the hire
  double co2_grams = 0;
};

struct Span {
  Instant from;
  Instant to;
};

/// Returns the plan of a gang that was started without a plan; nullptr: none is known.
const PlannedWork* plan_found_since(const State& state, const RunningJob& run, std::size_t gang) {
  if (state.policy().choice == OptionChoice::kCheapest) return nullptr;
  const PlacedGang& placed = run.gangs[gang];
  const std::optional<PlanKey>& key = run.request->roles[placed.role].options[placed.option].plan;
  const PlanEntry* entry = key ? state.plans().find(*key) : nullptr;
  if (entry == nullptr || !*entry) return nullptr;
  return fastest_plan_on(entry->value(), placed.allocation.ranks, state.fleet().view()).plan;
}

/// Returns the draw of one device of a gang while it works. Policies that take the first option
/// start a gang before its plan is known: `found` is the plan found since.
Watts draw_of_gang(const RunningJob& run, std::size_t gang, const DeviceCosts& costs,
                   const PlannedWork* found) {
  const Watts typical = costs.training().value_or(Watts());
  const Watts draw = run.terms[gang].draw > Watts() ? run.terms[gang].draw : typical;
  if (found == nullptr || !found->power) return draw;
  // The plan's draw is scaled by the ratio by which the clock lowered the typical draw.
  return typical > Watts() ? found->power->total() * (draw / typical) : found->power->total();
}

Rates rates_of(const State& state, const RunningJob& run, const Span& span) {
  Rates rates;
  const ControlSetup& setup = state.setup();
  if (setup.costs == nullptr) return rates;
  const Topology& topology = *setup.topology;
  for (std::size_t i = 0; i < run.gangs.size(); ++i) {
    const Allocation& allocation = run.gangs[i].allocation;
    const double share = allocation.share / double{kWholeDevice};
    const PlannedWork* found = plan_found_since(state, run, i);
    for (const PricedPart& part : priced_parts(*setup.costs, topology, allocation)) {
      if (part.costs == nullptr) continue;
      const DeviceCosts& costs = *part.costs;
      const Watts draw = draw_of_gang(run, i, costs, found);
      const double devices = part.devices * share;
      const DollarsPerJoule price = setup.series.electricity != nullptr
                                        ? setup.series.electricity->mean(span.from, span.to)
                                        : costs.electricity;
      const GramsCo2PerJoule carbon = setup.series.carbon != nullptr
                                          ? setup.series.carbon->mean(span.from, span.to)
                                          : costs.carbon;
      rates.watts += costs.metered(draw).value() * devices;
      rates.hire += costs.hire.value_or(DollarsPerSecond()).value() * devices;
      rates.electricity += costs.electricity_beside(draw, price).value() * devices;
      rates.co2_grams += costs.metered(draw).value() * devices * carbon.value();
    }
  }
  return rates;
}

/// Returns the job's part of the time of whole devices that it shares.
DeviceTime share_of(DeviceTime whole, std::uint16_t share) { return whole * share / kWholeDevice; }

/// Whether a job that stops for this reason will begin another attempt, as far as is known now.
bool begins_anew(const Job& job, StopReason reason) {
  const Submission& asked = *job.submission;
  switch (reason) {
    case StopReason::kPreempted:
    case StopReason::kMoved:
    case StopReason::kPower:
    case StopReason::kDrained:
    case StopReason::kRequeued:
      return true;
    case StopReason::kInfra:
    case StopReason::kNeverStarted:
      return asked.restart != RestartPolicy::kNever;
    case StopReason::kProgram:
      return asked.restart != RestartPolicy::kNever &&
             job.usage.program_faults + 1 <= asked.restart_max;
    case StopReason::kFinished:
    case StopReason::kTimeLimit:
    case StopReason::kCancelled:
    case StopReason::kRefused:
      return false;
  }
  return false;
}

bool tells_nothing(const Progress& progress, const Job& job) {
  return progress.done <= job.done && progress.lost == Duration() &&
         progress.saving == Duration() && progress.undetected == Duration();
}

}  // namespace

JobUsage& JobUsage::operator+=(const JobUsage& other) {
  waited += other.waited;
  devices += other.devices;
  lost += other.lost;
  idle += other.idle;
  joules += other.joules;
  dollars += other.dollars;
  electricity += other.electricity;
  egress += other.egress;
  co2_grams += other.co2_grams;
  preemptions += other.preemptions;
  faults += other.faults;
  program_faults += other.program_faults;
  resizes += other.resizes;
  return *this;
}

void State::add_since_metered(const Job& job, Instant now, JobUsage& used) const {
  const RunningJob& run = running_[job.at];
  const Duration time = now - job.metered;
  if (time <= Duration()) return;
  const auto add = [&](NodeId node, std::uint32_t devices, std::uint16_t share) {
    const DeviceTime held = share_of(static_cast<DeviceTime>(devices) * time.count_ns(), share);
    used.devices.add(setup_->topology->group(node).type, held);
    return held;
  };
  for (const PlacedGang& gang : run.gangs) {
    const Allocation& allocation = gang.allocation;
    if (allocation.ranks.empty()) continue;
    const NodeId first = allocation.ranks.front().node;
    const DeviceTime held = add(first, allocation.devices(), allocation.share);
    if (!job.up) used.idle += held;
  }
  for (const Ghost& ghost : ghosts_) {
    if (job.leaving == 0) break;
    if (ghost.job != job.id || ghost.attempt != job.attempt) continue;
    const auto devices = static_cast<std::uint32_t>(std::popcount(ghost.at.devices));
    used.idle += add(ghost.at.node, devices, ghost.share);
  }
  const Rates rates = rates_of(*this, run, {job.metered, now});
  used.joules += rates.watts * time.count_seconds();
  used.dollars += (rates.hire + rates.electricity) * time.count_seconds();
  used.electricity += rates.electricity * time.count_seconds();
  used.co2_grams += rates.co2_grams * time.count_seconds();
}

// Gangs of a job at several sites read the data at the first gang's site.
void State::bring_data(Job& job, const RunningJob& run) {
  if (run.request->data.empty()) return;
  const Topology& topology = *setup_->topology;
  const NodeId first = run.gangs.front().allocation.ranks.front().node;
  const std::uint32_t site = site_ordinal(topology, first);
  if (setup_->costs != nullptr) {
    const double egress = transfer_to(site, topology, *run.request, job.data_at).dollars;
    job.usage.egress += egress;
    job.usage.dollars += egress;
  }
  job.data_at |= site_bit(site);
}

void State::meter(Job& job) {
  add_since_metered(job, now_, job.usage);
  job.metered = now_;
}

JobUsage State::usage_of(JobId id, Instant now) const {
  JobUsage used = job(id).usage;
  if (holds_devices(job(id).phase)) add_since_metered(job(id), now, used);
  if (job(id).phase <= JobPhase::kQueued) used.waited += now - job(id).since;
  return used;
}

double State::device_seconds(JobId id, FleetTypeId type, Instant now) const {
  const Job& job = this->job(id);
  DeviceTime time = job.usage.devices.of(type);
  if (holds_devices(job.phase) && now > job.metered) {
    for (const PlacedGang& gang : running_[job.at].gangs) {
      const Allocation& has = gang.allocation;
      if (setup_->topology->group(has.ranks.front().node).type != type) continue;
      const DeviceTime whole = DeviceTime{has.devices()} * (now - job.metered).count_ns();
      time += share_of(whole, has.share);
    }
  }
  return static_cast<double>(time) * 1e-9;
}

void State::on(const PassDone& event) {
  passes_.last[static_cast<std::size_t>(event.kind)] = now_;
  ++passes_.count;
  const bool shares = keeps_share_period(policy_);
  if (shares && event.kind == PassKind::kFull) {
    renew_share_period(situation(now_), policy_, share_period_);
  } else if (!shares) {
    share_period_ = {};
  }
}

JobPast State::past(JobId id) const { return {job(id).attempt, job(id).since}; }

// An executor's report of the attempt's work takes precedence. Without a report, a job that writes
// no checkpoints and begins anew has lost all of the attempt's work.
Progress State::progress_at_stop(const Job& job, const JobStopping& event) const {
  const RunningJob& run = running_[job.at];
  Progress progress = event.progress;
  const bool keeps = run.checkpoint != Duration::max();
  if (keeps || run.devices() == 0 || !tells_nothing(progress, job)) return progress;
  if (!begins_anew(job, event.reason)) return progress;
  const double device_seconds = run.attained_at(now_) - job.attained;
  progress.lost = Duration::from_seconds(std::max(0.0, device_seconds) / run.devices());
  return progress;
}

Progress State::progress_when_gone(const Job& job, const Progress& told) {
  if (!tells_nothing(told, job)) return told;
  Progress progress = told;
  progress.lost = job.progress.lost;
  return progress;
}

JobUsage State::settle_in(Ledger& ledger, JobId id, const Progress& progress, Instant now) const {
  JobUsage found;
  const RunningJob& run = running(id);
  for (const PlacedGang& gang : run.gangs) {
    const GangRequest& request = run.request->roles[gang.role].options[gang.option].gang;
    const auto devices = static_cast<DeviceTime>(request.devices);
    if (request.share < kWholeDevice) {
      // The ledger counts a shared device once, for all jobs that share it.
      found.lost += share_of(devices * progress.lost.count_ns(), request.share);
      const Duration stood = progress.saving + progress.undetected;
      found.idle += share_of(devices * stood.count_ns(), request.share);
      continue;
    }
    const std::array<std::pair<DeviceUse, Duration>, 3> parts{
        {{DeviceUse::kLost, progress.lost},
         {DeviceUse::kSaving, progress.saving},
         {DeviceUse::kUndetected, progress.undetected}}};
    for (const auto& [use, time] : parts) {
      const DeviceTime asked = devices * time.count_ns();
      const DeviceTime left = ledger.recount({request.type, DeviceUse::kUseful, use, asked}, now);
      (use == DeviceUse::kLost ? found.lost : found.idle) += asked - left;
    }
  }
  return found;
}

}  // namespace orrery
