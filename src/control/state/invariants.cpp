// control/state/invariants.cpp - counts what the state keeps again, and compares.
#include "control/state/invariants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <vector>

#include "base/format/field_writer.hpp"
#include "scheduler/power/gang_power.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {
namespace {

using Broken = std::optional<std::string>;

/// The holder and use of each device, according to jobs, ghosts and nodes.
struct Devices {
  std::vector<JobId> owner;                   ///< job that has all of it
  std::vector<std::uint32_t> shared;          ///< shares in use, in thousandths
  std::vector<std::optional<DeviceUse>> use;  ///< none: free
  std::vector<NodeState> nodes;               ///< only the used_* fields
  std::uint64_t taken_twice = 0;
};

/// Devices of a node that a job or ghost holds.
struct Held {
  JobId job;
  NodeDevices at;
  HostNeeds host;
  std::uint16_t share = kWholeDevice;
  DeviceUse use = DeviceUse::kUseful;
};

void enter(Devices& devices, const Topology& topology, const Held& held) {
  const std::uint32_t first = topology.place(held.at.node).first_device.value();
  for (std::uint64_t left = held.at.devices; left != 0; left &= left - 1) {
    const std::uint32_t d = first + static_cast<std::uint32_t>(std::countr_zero(left));
    const bool whole = held.share == kWholeDevice;
    if (devices.owner[d].valid() || (whole && devices.shared[d] != 0)) ++devices.taken_twice;
    if (whole) devices.owner[d] = held.job;
    if (!whole) devices.shared[d] += held.share;
    devices.use[d] = whole ? held.use : DeviceUse::kUseful;
  }
  detail::move_host(devices.nodes[held.at.node.value()], held.host,
                    static_cast<std::uint32_t>(std::popcount(held.at.devices)));
}

bool same_host(const NodeState& a, const NodeState& b) {
  return a.used_cpu == b.used_cpu && a.used_memory == b.used_memory && a.used_cxl == b.used_cxl &&
         a.used_disk == b.used_disk;
}

/// The causes under which the ledger counts devices that are metered for a job.
constexpr std::array<DeviceUse, 6> kMetered{DeviceUse::kUseful,     DeviceUse::kLost,
                                            DeviceUse::kSaving,     DeviceUse::kStarting,
                                            DeviceUse::kUndetected, DeviceUse::kStopping};

}  // namespace

class StateCheck {
 public:
  explicit StateCheck(const State& state)
      : s_(state), topology_(state.fleet().topology()), view_(state.fleet().view()) {}

  Broken all() const {
    for (const auto check :
         {&StateCheck::places_of_jobs, &StateCheck::phases_of_jobs, &StateCheck::queue,
          &StateCheck::arrays, &StateCheck::dependencies, &StateCheck::gangs, &StateCheck::devices,
          &StateCheck::ledger_times, &StateCheck::tenants, &StateCheck::power, &StateCheck::claims,
          &StateCheck::services}) {
      if (Broken broken = (this->*check)()) return broken;
    }
    return std::nullopt;
  }

  Broken metering() const {
    TypeTimes metered = s_.total_.devices;  // usage of jobs that have ended
    for (const Job& job : s_.jobs_) {
      if (!ended(job.phase)) metered += s_.usage_of(job.id, s_.now_).devices;
    }
    // Times from before types were separate allow only the sums to be compared.
    const bool apart = metered.of(kAllTypes) == 0;
    DeviceTime counted = 0;
    for (std::uint32_t t = 0; t < topology_.type_count(); ++t) {
      const DeviceTime before = counted;
      for (const DeviceUse use : kMetered) {
        counted += s_.ledger_.sum(FleetTypeId(t), use, s_.now_);
      }
      const DeviceTime of_type = metered.of(FleetTypeId(t));
      if (!apart || of_type == counted - before) continue;
      return fmt::format("jobs were metered for {} device-hours of type {}, the ledger has {}",
                         device_hours(of_type), t, device_hours(counted - before));
    }
    if (metered.total() == counted) return std::nullopt;
    return fmt::format("jobs were metered for {} device-hours, the ledger has {} in use",
                       device_hours(metered.total()), device_hours(counted));
  }

 private:
  Broken places_of_jobs() const;
  Broken phases_of_jobs() const;
  Broken queue() const;
  Broken arrays() const;
  Broken dependencies() const;
  Broken gangs() const;
  Broken devices() const;
  Broken uses(const Devices& count) const;
  Broken ledger_times() const;
  Broken tenants() const;
  Broken power() const;
  Broken claims() const;
  Broken services() const;

  Devices count_devices() const;

  const State& s_;
  const Topology& topology_;
  FleetView view_;
};

Broken StateCheck::places_of_jobs() const {
  std::map<JobPhase, std::size_t> phases;
  std::size_t holding = 0;
  std::size_t over = 0;
  for (std::uint32_t i = 0; i < s_.jobs_.size(); ++i) {
    if (!s_.jobs_.has(JobId(i))) {
      ++over;
      continue;
    }
    const Job& job = s_.jobs_[JobId(i)];
    if (job.id != JobId(i)) return fmt::format("job {} is in the place of {}", job.id.value(), i);
    ++phases[job.phase];
    over += ended(job.phase) ? 1 : 0;
    if (ended(job.phase) == (job.submission != nullptr)) {
      return fmt::format("job {} has a submission although it ended, or none before", i);
    }
    if (s_.held_.contains(job.id) != (job.phase == JobPhase::kHeld)) {
      return fmt::format("job {} is {} and {} those held", i, word_of(job.phase),
                         job.phase == JobPhase::kHeld ? "not among" : "among");
    }
    if (!holds_devices(job.phase)) continue;
    ++holding;
    if (job.at >= s_.running_.size() || s_.running_[job.at].id != job.id) {
      return fmt::format("job {} is {} and not where it should be among the running", i,
                         word_of(job.phase));
    }
  }
  if (s_.held_.size() != phases[JobPhase::kHeld]) return "one is held twice";
  if (s_.waiting_.size() != phases[JobPhase::kQueued])
    return "the queue has others than the queued";
  if (s_.running_.size() != holding) return "one runs that holds no devices";
  if (s_.ended_ != over) return fmt::format("{} jobs ended, {} are counted", over, s_.ended_);
  return std::nullopt;
}

Broken StateCheck::claims() const {
  for (const Claim& claim : s_.claims_) {
    const NodeHealth health = s_.nodes_[claim.node.value()].health;
    const bool out = health == NodeHealth::kQuarantined || health == NodeHealth::kRepairing;
    if (claim.verdict != ClaimVerdict::kSuspected || out) continue;
    return fmt::format("node {} is {} although a claim against it is open", claim.node.value(),
                       word_of(health));
  }
  return std::nullopt;
}

Broken StateCheck::phases_of_jobs() const {
  for (const Job& job : s_.jobs_) {
    const auto broken = [&](std::string_view what) {
      return fmt::format("job {}, {}: {}", job.id.value(), word_of(job.phase), what);
    };
    if (job.since > s_.now_ || job.submitted > job.since)
      return broken("its times are not in order");
    if (job.attempt == 0 && job.first_start != Instant::max()) return broken("started unseen");
    if (job.hold != JobHold::kNone && job.phase == JobPhase::kQueued) return broken("is held, too");
    if (!job.attempts.empty() && job.attempts.back().number != job.attempt) {
      return broken("its newest attempt has no history");
    }
    if (!(job.done >= 0 && job.done <= 1)) return broken(fmt::format("{} of it is done", job.done));
    if (!holds_devices(job.phase)) {
      if (job.leaving != 0) return broken("has devices that leave it");
      continue;
    }
    const RunningJob& run = s_.running_[job.at];
    if (job.attempt == 0) return broken("runs without an attempt");
    if (job.metered > s_.now_) return broken("is metered beyond now");
    if (run.request != &job.submission->request) return broken("runs by another request");
    if (run.stopping != (job.phase == JobPhase::kStopping)) return broken("stops unseen");
    if (job.up && job.phase != JobPhase::kRunning) return broken("is up although it does not run");
    if (run.gangs.size() != run.terms.size()) return broken("a gang has no terms");
    DeviceUse use = job.up ? DeviceUse::kUseful : DeviceUse::kStarting;
    if (job.phase == JobPhase::kStopping) use = DeviceUse::kStopping;
    if (job.use != use) return broken(fmt::format("its devices count as {}", word_of(job.use)));
  }
  return std::nullopt;
}

Broken StateCheck::queue() const {
  for (std::size_t i = 0; i < s_.waiting_.size(); ++i) {
    const WaitingJob& waiting = s_.waiting_[i];
    const Job& job = s_.job(waiting.id);
    if (job.phase != JobPhase::kQueued) return "one in the queue is not queued";
    if (waiting.request != &job.submission->request || waiting.submitted != job.submitted ||
        waiting.done != job.done || waiting.attained != job.attained) {
      return fmt::format("job {} is another in the queue", waiting.id.value());
    }
    if (i == 0) continue;
    const WaitingJob& first = s_.waiting_[i - 1];
    if (std::pair(first.submitted, first.id) >= std::pair(waiting.submitted, waiting.id)) {
      return fmt::format("job {} is out of order in the queue", waiting.id.value());
    }
  }
  for (const Reservation& slot : s_.slots_) {
    // A job that stops in order to move has a slot where it continues.
    const bool has = s_.has(slot.job) && !ended(s_.job(slot.job).phase);
    const JobPhase phase = has ? s_.job(slot.job).phase : JobPhase::kFinished;
    if (!has || (holds_devices(phase) && phase != JobPhase::kStopping)) {
      return fmt::format("a slot is kept for job {}, which does not wait", slot.job.value());
    }
  }
  return std::nullopt;
}

Broken StateCheck::arrays() const {
  std::map<ArrayId, State::Array> count;
  for (const Job& job : s_.jobs_) {
    if (ended(job.phase) || !job.submission->request.array.valid()) continue;
    State::Array& array = count[job.submission->request.array];
    if (job.phase == JobPhase::kHeld) array.held.insert(job.id);
    if (job.phase != JobPhase::kHeld) ++array.active;
  }
  for (const auto& [id, kept] : s_.arrays_) {
    const State::Array& is = count[id];
    if (kept.active != is.active || kept.held != is.held) {
      return fmt::format("array {} has {} active and {} held, counted {} and {}", id.value(),
                         is.active, is.held.size(), kept.active, kept.held.size());
    }
  }
  if (count.size() != s_.arrays_.size()) return "an array is not known";
  return std::nullopt;
}

Broken StateCheck::services() const {
  std::map<JobId, std::set<JobId>> live;
  for (const Job& job : s_.jobs_) {
    const ReplicaMembership* member = s_.services_.membership(job.id);
    if (ended(job.phase)) continue;
    const JobRequest& request = job.submission->request;
    const bool replica = request.kind == JobKind::kServe && request.array.valid();
    if (replica != (member != nullptr)) {
      return fmt::format("job {} is a replica, or of a service", job.id.value());
    }
    if (replica) live[member->service].insert(job.id);
  }
  for (const auto& [id, service] : s_.services_.all()) {
    if (live[id] != service.live) {
      return fmt::format("service {} has {} replicas, counted {}", id.value(), live[id].size(),
                         service.live.size());
    }
    if (s_.services_.updating().contains(id) != service.update.has_value()) {
      return fmt::format("service {} is updated, or not", id.value());
    }
    if (service.live.empty() && !service.update) {
      return fmt::format("service {} has ended", id.value());
    }
  }
  for (const auto& [id, scaling] : s_.services_.scalings()) {
    if (s_.services_.find(id) == nullptr) return "a service is scaled and has ended";
  }
  if (live.size() != s_.services_.all().size()) return "a replica's service is not known";
  return std::nullopt;
}

Broken StateCheck::dependencies() const {
  std::map<JobId, std::uint32_t> waits;
  for (const auto& [before, next] : s_.after_) {
    for (const JobId each : next) {
      if (!s_.has(each) || ended(s_.job(each).phase)) continue;
      const Dependency is = s_.dependency(*s_.job(each).submission, before);
      waits[each] += is == Dependency::kMet ? 0 : 1;
    }
  }
  for (const Job& job : s_.jobs_) {
    if (ended(job.phase) || job.waiting_for == waits[job.id]) continue;
    return fmt::format("job {} waits for {} others, counted {}", job.id.value(), waits[job.id],
                       job.waiting_for);
  }
  return std::nullopt;
}

Broken StateCheck::gangs() const {
  std::map<JobId, std::uint32_t> leaving;
  for (const Ghost& ghost : s_.ghosts_) {
    const Job& job = s_.job(ghost.job);
    const auto now = std::pair(job.attempt, job.epoch);
    if (std::pair(ghost.attempt, ghost.epoch) > now) return "a ghost is of an epoch to come";
    if (!holds_devices(job.phase) || ghost.attempt != job.attempt) continue;
    if (ghost.epoch == job.epoch) return "a ghost is of the present epoch";
    leaving[job.id] += static_cast<std::uint32_t>(std::popcount(ghost.at.devices));
  }
  for (const RunningJob& run : s_.running_) {
    const Job& job = s_.job(run.id);
    if (job.leaving != leaving[run.id]) {
      return fmt::format("{} devices leave job {}, counted {}", leaving[run.id], run.id.value(),
                         job.leaving);
    }
    for (const PlacedGang& gang : run.gangs) {
      const auto& options = run.request->roles[gang.role].options;
      const std::uint32_t asked = options[gang.option].gang.devices;
      const bool whole = gang.allocation.devices() == asked;
      if (!whole && job.phase != JobPhase::kStopping) {
        return fmt::format("a gang of job {} has {} devices of {}", run.id.value(),
                           gang.allocation.devices(), asked);
      }
    }
  }
  return std::nullopt;
}

Devices StateCheck::count_devices() const {
  Devices count;
  count.owner.resize(topology_.device_count());
  count.shared.resize(topology_.device_count());
  count.use.resize(topology_.device_count());
  count.nodes.resize(topology_.node_count());
  for (const RunningJob& run : s_.running_) {
    const DeviceUse use = s_.job(run.id).use;
    for (const PlacedGang& gang : run.gangs) {
      for (const NodeDevices& at : gang.allocation.ranks) {
        enter(count, topology_, {run.id, at, gang.host, gang.allocation.share, use});
      }
      for (const NodeDevices& at : gang.allocation.idle) {
        enter(count, topology_, {run.id, at, {}, kWholeDevice, DeviceUse::kExclusive});
      }
    }
  }
  for (const Ghost& ghost : s_.ghosts_) {
    const Job& job = s_.job(ghost.job);
    const bool present = holds_devices(job.phase) && ghost.attempt == job.attempt;
    enter(count, topology_,
          {ghost.job, ghost.at, ghost.host, ghost.share,
           present ? DeviceUse::kStopping : DeviceUse::kDown});
  }
  return count;
}

Broken StateCheck::devices() const {
  const Devices count = count_devices();
  if (count.taken_twice > 0) {
    return fmt::format("{} devices are held by two", count.taken_twice);
  }
  for (std::uint32_t n = 0; n < topology_.node_count(); ++n) {
    const NodeId id(n);
    const NodeState& node = view_.node(id);
    const std::uint32_t first = topology_.place(id).first_device.value();
    for (std::uint32_t i = 0; i < topology_.group(id).devices; ++i) {
      const std::uint32_t d = first + i;
      const bool free = ((node.free_mask >> i) & 1) != 0;
      if (free == count.use[d].has_value()) {
        return fmt::format("device {} is {} and shown {}", d, free ? "held" : "free",
                           free ? "free" : "held");
      }
      if (view_.shared(DeviceId(d)) != count.shared[d]) {
        return fmt::format("of device {} {} thousandths are shared, shown {}", d, count.shared[d],
                           view_.shared(DeviceId(d)));
      }
      if (s_.owner_[d] != count.owner[d]) return fmt::format("device {} has another owner", d);
    }
    if (!same_host(node, count.nodes[n])) return fmt::format("node {}: its host is not", n);
    if (node.health != shown_health(s_.nodes_[n])) {
      return fmt::format("node {} is {} and shown {}", n, word_of(s_.nodes_[n].health),
                         word_of(node.health));
    }
    const NodeRecord::Loan& loan = s_.nodes_[n].loan;
    const std::uint32_t all = topology_.group(id).devices;
    const bool used = static_cast<std::uint32_t>(std::popcount(node.free_mask)) < all;
    if (!loan.hold.empty() && used != (loan.used != Instant::max())) {
      return fmt::format("node {} is lent, and its use is metered wrongly", n);
    }
    if (s_.spares_.contains(id) != s_.nodes_[n].spare) return fmt::format("spare {} is not", n);
  }
  return uses(count);
}

Broken StateCheck::uses(const Devices& count) const {
  std::vector<std::array<std::uint32_t, kDeviceUses>> by_type(topology_.type_count());
  for (std::uint32_t n = 0; n < topology_.node_count(); ++n) {
    const NodeGroup& group = topology_.group(NodeId(n));
    const std::uint32_t first = topology_.place(NodeId(n)).first_device.value();
    for (std::uint32_t d = first; d < first + group.devices; ++d) {
      const DeviceUse use = count.use[d].value_or(s_.free_use(NodeId(n)));
      ++by_type[group.type.value()][static_cast<std::size_t>(use)];
    }
  }
  for (std::uint32_t t = 0; t < by_type.size(); ++t) {
    for (std::size_t u = 0; u < kDeviceUses; ++u) {
      const auto use = static_cast<DeviceUse>(u);
      const std::uint32_t kept = s_.ledger_.count(FleetTypeId(t), use);
      if (kept == by_type[t][u]) continue;
      return fmt::format("{} devices of type {} are {}, the ledger counts {}", by_type[t][u], t,
                         word_of(use), kept);
    }
  }
  return std::nullopt;
}

Broken StateCheck::ledger_times() const {
  for (std::uint32_t t = 0; t < topology_.type_count(); ++t) {
    const FleetTypeId type(t);
    DeviceTime sum = 0;
    for (std::size_t u = 0; u < kDeviceUses; ++u) {
      sum += s_.ledger_.sum(type, static_cast<DeviceUse>(u), s_.now_);
    }
    const std::uint32_t devices = topology_.device_count(Topology::root(), type);
    const DeviceTime all = s_.ledger_.time_of(type, devices, s_.now_);
    if (sum == all) continue;
    return fmt::format("the ledger has {} device-hours of type {}, there were {}",
                       device_hours(sum), t, device_hours(all));
  }
  return std::nullopt;
}

Broken StateCheck::tenants() const {
  TenantUsage count(*s_.tenants_);
  for (const RunningJob& run : s_.running_) {
    for (const PlacedGang& gang : run.gangs) {
      const GangRequest& request = run.request->roles[gang.role].options[gang.option].gang;
      count.apply({run.request->tenant, request.type, rank_of(*run.request), request.devices});
    }
  }
  const auto same = [](const Holding& a, const Holding& b) {
    return a.priority == b.priority && a.type == b.type && a.devices == b.devices;
  };
  for (std::uint32_t t = 0; t < s_.tenants_->size(); ++t) {
    const auto kept = s_.usage_->holdings(TenantId(t));
    const auto is = count.holdings(TenantId(t));
    if (std::equal(kept.begin(), kept.end(), is.begin(), is.end(), same) &&
        s_.usage_->used(TenantId(t), kAllTypes) == count.used(TenantId(t), kAllTypes)) {
      continue;
    }
    return fmt::format("tenant \"{}\" holds {} devices, counted {}", s_.tenants_->path(TenantId(t)),
                       count.used(TenantId(t), kAllTypes), s_.usage_->used(TenantId(t), kAllTypes));
  }
  for (const Job& job : s_.jobs_) {
    if (!ended(job.phase) && job.submission->request.tenant != job.tenant) {
      return fmt::format("job {} is of two tenants", job.id.value());
    }
  }
  return std::nullopt;
}

Broken StateCheck::power() const {
  if (!s_.power_) return std::nullopt;
  PowerBudget count(*s_.setup().power);
  for (const RunningJob& run : s_.running_) {
    for (std::size_t i = 0; i < run.gangs.size(); ++i) {
      count.add(draws_of_gang(*s_.setup().power, run.gangs[i], run.terms[i].draw));
    }
  }
  if (count == *s_.power_) return std::nullopt;
  return "the planned power is not that of what runs";
}

std::optional<std::string> broken_invariant(const State& state) { return StateCheck(state).all(); }

std::optional<std::string> broken_metering(const State& state) {
  return StateCheck(state).metering();
}

}  // namespace orrery
