// Devices and nodes of the state: which job holds each device, and the cause it counts under.
#include <algorithm>
#include <bit>

#include "base/assert.hpp"
#include "control/state/snapshot.hpp"
#include "control/state/state.hpp"
#include "fleet/fleet_map.hpp"
#include "scheduler/pass/taking.hpp"

namespace orrery {
namespace {

/// Returns the part of a gang on one node.
Allocation part_of(const NodeDevices& at, std::uint16_t share) {
  Allocation part;
  part.ranks.push_back(at);
  part.share = share;
  return part;
}

template <class Visit>
void for_each_device(const Topology& topology, const NodeDevices& at, Visit&& visit) {
  const std::uint32_t first = topology.place(at.node).first_device.value();
  for (std::uint64_t left = at.devices; left != 0; left &= left - 1) {
    visit(DeviceId(first + static_cast<std::uint32_t>(std::countr_zero(left))));
  }
}

// A drain by an operator replaces that of a window.
void note_reasons(const NodeChanged& event, NodeRecord& record) {
  if (event.health == NodeHealth::kReady) {
    record.drain_why.clear();
    record.out_why.clear();
    return;
  }
  const bool taken_over = event.health == NodeHealth::kDraining && !event.window && !record.drain;
  if (taken_over || !event.why.empty()) record.drain_why = event.why;
  const bool out = event.health == NodeHealth::kLost || event.health == NodeHealth::kQuarantined ||
                   event.health == NodeHealth::kRepairing;
  const bool cause = event.health != record.health || event.blame.layer != FaultLayer::kNone;
  if (out && cause && !event.blame.evidence.empty()) record.out_why = event.blame.evidence;
}

/// Returns the time of a loan since `since`, at most to the end of the loan: what is reported later
/// may have ended then, while no controller looked.
Duration loan_time(const NodeRecord::Loan& loan, Instant since, Instant now) {
  return std::max(std::min(now, loan.until) - since, Duration());
}

/// Whether a job has devices on a node, ghosts left aside.
bool runs_on(const State& state, JobId id, NodeId node) {
  const auto here = [node](const NodeDevices& at) { return at.node == node; };
  if (!holds_devices(state.job(id).phase)) return false;
  for (const PlacedGang& gang : state.running(id).gangs) {
    const Allocation& has = gang.allocation;
    if (std::any_of(has.ranks.begin(), has.ranks.end(), here)) return true;
    if (std::any_of(has.idle.begin(), has.idle.end(), here)) return true;
  }
  return false;
}

}  // namespace

DeviceUse State::free_use(NodeId node) const {
  const NodeRecord& record = nodes_[node.value()];
  switch (record.health) {
    case NodeHealth::kReady:
      return record.spare ? DeviceUse::kSpare : idle_[fleet_.topology().group(node).type.value()];
    case NodeHealth::kDraining:
    case NodeHealth::kDrained:
      return record.foreign.claim == ForeignClaim::kTaken ? DeviceUse::kForeign
                                                          : DeviceUse::kDraining;
    case NodeHealth::kQuarantined:
    case NodeHealth::kRepairing:
      return DeviceUse::kRepair;
    case NodeHealth::kJoining:
    case NodeHealth::kSuspect:
    case NodeHealth::kLost:
      return DeviceUse::kDown;
    case NodeHealth::kAbsent:
      return DeviceUse::kAbsent;
  }
  return DeviceUse::kDown;
}

void State::move_use(NodeId node, std::uint64_t devices, std::pair<DeviceUse, DeviceUse> uses) {
  ledger_.move({fleet_.topology().group(node).type, uses.first, uses.second,
                static_cast<std::uint32_t>(std::popcount(devices))},
               now_);
}

// Shared devices count as useful as long as any job has a share of them.
void State::move_use(RunningJob& run, DeviceUse to) {
  for (const PlacedGang& gang : run.gangs) {
    if (gang.allocation.share < kWholeDevice) continue;
    if (gang.allocation.ranks.empty()) continue;
    const FleetTypeId type = fleet_.topology().group(gang.allocation.ranks.front().node).type;
    ledger_.move({type, at(run.id).use, to, gang.allocation.devices()}, now_);
  }
  at(run.id).use = to;
}

void State::set_owner(const NodeDevices& at, JobId job) {
  for_each_device(fleet_.topology(), at, [&](DeviceId device) { owner_[device.value()] = job; });
}

void State::hold_part(JobId job, const Ghost& part, DeviceUse use) {
  bool first = true;
  if (part.share < kWholeDevice) {
    const DeviceId device = detail::shared_device(fleet_.topology(), part.at);
    first = fleet_.view().shared(device) == 0;
    use = DeviceUse::kUseful;
  }
  const DeviceUse was = free_use(part.at.node);
  take(fleet_, part_of(part.at, part.share), part.host);
  if (part.share == kWholeDevice) set_owner(part.at, job);
  if (first) move_use(part.at.node, part.at.devices, {was, use});
  note_loan_use(part.at.node);
}

void State::hold_devices(const RunningJob& run, const PlacedGang& gang, DeviceUse use) {
  for (const NodeDevices& at : gang.allocation.ranks) {
    hold_part(run.id, {run.id, 0, 0, at, gang.host, gang.allocation.share}, use);
  }
  for (const NodeDevices& at : gang.allocation.idle) {
    hold_part(run.id, {run.id, 0, 0, at, {}, kWholeDevice}, DeviceUse::kExclusive);
  }
}

void State::release(const Ghost& part, DeviceUse from) {
  give_back(fleet_, part_of(part.at, part.share), part.host);
  if (part.share < kWholeDevice) {
    const DeviceId device = detail::shared_device(fleet_.topology(), part.at);
    if (fleet_.view().shared(device) != 0) return;
    from = DeviceUse::kUseful;
  } else {
    set_owner(part.at, JobId());
  }
  move_use(part.at.node, part.at.devices, {from, free_use(part.at.node)});
  note_loan_use(part.at.node);
}

/// Begins or ends the time in which jobs have devices on a lent node.
void State::note_loan_use(NodeId node) {
  NodeRecord::Loan& loan = nodes_[node.value()].loan;
  if (loan.hold.empty()) return;
  const std::uint32_t devices = fleet_.topology().group(node).devices;
  const int free = std::popcount(fleet_.view().node(node).free_mask);
  const bool used = static_cast<std::uint32_t>(free) < devices;
  if (used == (loan.used != Instant::max())) return;
  if (!used) bills_.use(loan.hold, loan_time(loan, loan.used, now_));
  loan.used = used ? now_ : Instant::max();
}

// Devices that only the old epoch had are released when its ranks are reported gone; until then the
// job pays for them. Within the event all devices are free, so that host needs of ranks may differ.
void State::exchange_devices(Job& job, std::span<const PlacedGang> old, RunningJob& run) {
  std::map<NodeId, std::uint64_t> kept;
  for (const PlacedGang& gang : run.gangs) {
    for (const NodeDevices& at : gang.allocation.ranks) kept[at.node] |= at.devices;
  }
  const DeviceUse was = std::exchange(job.use, DeviceUse::kStarting);
  for (const PlacedGang& gang : old) {
    for (const NodeDevices& at : gang.allocation.ranks) {
      release({job.id, 0, 0, at, gang.host, gang.allocation.share}, was);
    }
    for (const NodeDevices& at : gang.allocation.idle) {
      release({job.id, 0, 0, at, {}, kWholeDevice}, DeviceUse::kExclusive);
    }
  }
  for (const PlacedGang& gang : old) {
    for (const NodeDevices& at : gang.allocation.ranks) {
      const std::uint64_t left = at.devices & ~kept[at.node];
      if (left == 0) continue;
      ghosts_.push_back(
          {job.id, job.attempt, job.epoch, {at.node, left}, gang.host, gang.allocation.share});
      job.leaving += static_cast<std::uint32_t>(std::popcount(left));
      hold_part(job.id, ghosts_.back(), DeviceUse::kStopping);
    }
  }
  for (PlacedGang& gang : run.gangs) {
    for (NodeDevices& at : gang.allocation.idle) {
      at.devices &= fleet_.view().node(at.node).free_mask;
    }
    std::erase_if(gang.allocation.idle, [](const NodeDevices& at) { return at.devices == 0; });
    hold_devices(run, gang, DeviceUse::kStarting);
  }
}

void State::free_ghost(const Ghost& ghost) {
  Job& job = at(ghost.job);
  const bool of_running = holds_devices(job.phase) && ghost.attempt == job.attempt;
  if (of_running) {
    ORRERY_ASSERT(job.metered == now_, "what leaves a job is metered first");
    job.leaving -= static_cast<std::uint32_t>(std::popcount(ghost.at.devices));
  }
  release(ghost, of_running ? DeviceUse::kStopping : DeviceUse::kDown);
}

bool State::has_ranks(const DevicesFreed& of) const {
  const auto named = [&](NodeId node) {
    return of.nodes.empty() || std::find(of.nodes.begin(), of.nodes.end(), node) != of.nodes.end();
  };
  const bool left = std::any_of(ghosts_.begin(), ghosts_.end(), [&](const Ghost& ghost) {
    return ghost.job == of.job && ghost.attempt == of.attempt && ghost.epoch <= of.epoch &&
           named(ghost.at.node);
  });
  const Job& job = this->job(of.job);
  if (left || job.phase != JobPhase::kStopping || of.attempt != job.attempt) return left;
  if (of.epoch < job.epoch) return false;
  const std::vector<PlacedGang>& gangs = running(of.job).gangs;
  return std::any_of(gangs.begin(), gangs.end(), [&](const PlacedGang& gang) {
    return std::any_of(gang.allocation.ranks.begin(), gang.allocation.ranks.end(),
                       [&](const NodeDevices& at) { return named(at.node); });
  });
}

void State::on(const DevicesFreed& event) {
  const auto named = [&](NodeId node) {
    return event.nodes.empty() ||
           std::find(event.nodes.begin(), event.nodes.end(), node) != event.nodes.end();
  };
  ++changes_.freed;
  Job& job = at(event.job);
  const bool present = holds_devices(job.phase) && event.attempt == job.attempt;
  if (present) meter(job);
  const auto gone = [&](const Ghost& ghost) {
    if (ghost.job != event.job || ghost.attempt != event.attempt) return false;
    if (ghost.epoch > event.epoch || !named(ghost.at.node)) return false;
    free_ghost(ghost);
    return true;
  };
  std::erase_if(ghosts_, gone);
  if (!present || job.phase != JobPhase::kStopping) return;
  if (event.progress) job.progress = progress_when_gone(job, *event.progress);
  if (event.epoch < job.epoch) return;
  RunningJob& run = running_at(event.job);
  remove_power(run);
  for (PlacedGang& gang : run.gangs) {
    std::erase_if(gang.allocation.ranks, [&](const NodeDevices& at) {
      if (!named(at.node)) return false;
      release({job.id, 0, 0, at, gang.host, gang.allocation.share}, DeviceUse::kStopping);
      return true;
    });
    if (!gang.allocation.ranks.empty()) continue;
    for (const NodeDevices& at : gang.allocation.idle) {
      release({job.id, 0, 0, at, {}, kWholeDevice}, DeviceUse::kExclusive);
    }
    gang.allocation.idle.clear();
  }
  add_power(run);
}

std::vector<JobId> State::jobs_on(NodeId id) const {
  std::vector<JobId> jobs;
  const Topology& topology = fleet_.topology();
  const std::uint32_t first = topology.place(id).first_device.value();
  bool shared = false;
  for (std::uint32_t d = first; d < first + topology.group(id).devices; ++d) {
    if (owner_[d].valid()) jobs.push_back(owner_[d]);
    shared = shared || fleet_.view().shared(DeviceId(d)) != 0;
  }
  // The job of a ghost may be elsewhere by now.
  const auto here = [id](const Ghost& ghost) { return ghost.at.node == id; };
  if (std::any_of(ghosts_.begin(), ghosts_.end(), here)) {
    std::erase_if(jobs, [&](JobId job) { return !runs_on(*this, job, id); });
  }
  for (const RunningJob& run : running_) {
    if (!shared) break;
    if (runs_on(*this, run.id, id)) jobs.push_back(run.id);
  }
  std::sort(jobs.begin(), jobs.end());
  jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
  return jobs;
}

NodeHealth shown_health(const NodeRecord& record) {
  const bool kept =
      record.health == NodeHealth::kReady && (record.spare || record.loan.job.valid());
  return kept ? NodeHealth::kDrained : record.health;
}

JobId bound_job(const NodeRecord& record) {
  return record.health == NodeHealth::kReady && !record.spare ? record.loan.job : JobId();
}

Instant taken_until(const NodeRecord& record) {
  const bool closed =
      record.health == NodeHealth::kDraining || record.health == NodeHealth::kDrained;
  const bool taken = record.foreign.claim == ForeignClaim::kTaken;
  return taken && closed && !record.drain && !record.spare ? record.foreign.until : Instant();
}

void State::edit_node(NodeId id, const NodeRecord& record) {
  const DeviceUse was = free_use(id);
  const bool was_ready = nodes_[id.value()].health == NodeHealth::kReady;
  const bool was_spare = nodes_[id.value()].spare;
  const NodeRecord before = std::exchange(nodes_[id.value()], record);
  const Topology& topology = *setup_->topology;
  closed_.take(id, taken_until(before), taken_until(record), topology);
  closed_.bind(id, bound_job(before), bound_job(record), topology);
  move_use(id, fleet_.view().node(id).free_mask, {was, free_use(id)});
  fleet_.set_health(id, shown_health(record));
  if (record.health != NodeHealth::kReady) return;
  // A spare counts, too: jobs that wait to restart may take it.
  if (!was_ready || (was_spare && !record.spare)) ++changes_.freed;
}

void State::on(const NodeChanged& event) {
  NodeRecord record = nodes_[event.node.value()];
  note_reasons(event, record);
  record.health = event.health;
  if (event.health == NodeHealth::kDraining && !event.window) record.drain = true;
  if (event.health == NodeHealth::kReady) record.drain = false;
  if (event.blame.layer != FaultLayer::kNone) {
    std::erase_if(record.faults,
                  [&](Instant at) { return now_ - at > setup_->timing.lemon_window; });
    record.faults.push_back(now_);
  }
  edit_node(event.node, record);
  settle_claims(event);
}

void State::on(const NodeLent& event) {
  NodeRecord record = nodes_[event.node.value()];
  NodeRecord::Loan& loan = record.loan;
  closed_.lend(event.node, loan.until, event.until, *setup_->topology);
  if (loan.hold != event.hold) {
    if (!loan.hold.empty()) bills_.hold(loan.hold, loan_time(loan, loan.since, now_));
    if (loan.used != Instant::max()) bills_.use(loan.hold, loan_time(loan, loan.used, now_));
    loan = {.hold = event.hold, .since = now_};
  }
  loan.managed = event.managed;
  loan.until = event.until;
  loan.job = event.job;
  record.health = event.health;
  edit_node(event.node, record);
  note_loan_use(event.node);
}

void State::on(const ForeignSet& event) {
  NodeRecord record = nodes_[event.node.value()];
  record.foreign = {event.claim, event.until, event.who};
  edit_node(event.node, record);
}

// A fault found by the node's own checks confirms the suspicion; the node's return to service
// clears it.
void State::settle_claims(const NodeChanged& event) {
  const bool out =
      event.health == NodeHealth::kQuarantined || event.health == NodeHealth::kRepairing;
  for (Claim& claim : claims_) {
    if (claim.node != event.node || claim.verdict != ClaimVerdict::kSuspected) continue;
    if (!out) claim.verdict = ClaimVerdict::kCleared;
    if (out && event.blame.layer != FaultLayer::kNone) claim.verdict = ClaimVerdict::kConfirmed;
  }
}

// Claims that no longer affect a verdict are dropped.
void State::on(const NodeAccused& event) {
  std::erase_if(claims_, [&](const Claim& claim) {
    const bool same =
        claim.job == event.job && claim.attempt == event.attempt && claim.node == event.node;
    if (same || claim.verdict == ClaimVerdict::kSuspected) return same;
    const bool over = !has(claim.job) || ended(job(claim.job).phase);
    if (claim.verdict == ClaimVerdict::kRefused) {
      return over || job(claim.job).attempt != claim.attempt;
    }
    return over && now_ - claim.at > setup_->timing.claim_window;
  });
  claims_.push_back(
      {event.job, event.attempt, event.node, job(event.job).tenant, now_, event.verdict});
}

// All processes of the old boot are gone.
void State::on(const NodeBooted& event) {
  nodes_[event.node.value()].boot = event.boot;
  for (const Ghost& ghost : ghosts_) {
    if (ghost.at.node == event.node && holds_devices(job(ghost.job).phase)) meter(at(ghost.job));
  }
  std::erase_if(ghosts_, [&](const Ghost& ghost) {
    if (ghost.at.node != event.node) return false;
    free_ghost(ghost);
    return true;
  });
}

void State::on(const SpareSet& event) {
  NodeRecord record = nodes_[event.node.value()];
  record.spare = event.spare;
  if (event.spare) {
    spares_.insert(event.node);
  } else {
    spares_.erase(event.node);
  }
  edit_node(event.node, record);
}

void State::on(const LemonFound& event) {
  if (risk_.empty()) risk_.assign(nodes_.size(), 1.0F);
  nodes_[event.node.value()].lemon = true;
  risk_[event.node.value()] = static_cast<float>(event.faults + 1);
}

// The core has checked that the fleet fits.
void State::on(const FleetSet& event) {
  const Result<const ControlSetup*> next = setup_->fleets.source(event.yaml);
  ORRERY_ASSERT(next, "a fleet is read before it is set");
  // Prices may change, and count from now on.
  for (const RunningJob& run : running()) meter(at(run.id));
  const Result<FleetMap> map = fleet_map(*setup_->topology, *(*next)->topology);
  ORRERY_ASSERT(map, "a fleet fits the state before it is set");
  Result<State> changed = with_fleet(*this, **next);
  ORRERY_ASSERT(changed, "a fleet fits the state before it is set");
  *this = *std::move(changed);
  if (!map->same_ids()) fleet_changes_.last = now_;
}

}  // namespace orrery
