// control/state/state_ranges.cpp - checks the content of a snapshot in the order of the state.
#include "control/state/state_ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace orrery {
namespace {

/// What is wrong; nullptr: nothing.
using Wrong = const char*;

/// More device-nanoseconds than any fleet can have; sums of that many values still fit.
constexpr DeviceTime kTimeMax = DeviceTime{1} << 95;
/// More job classes than are ever submitted.
constexpr std::uint32_t kClassesMax = 1U << 24;

bool is_part(double value) { return value >= 0 && value <= 1; }
bool is_sum(double value) { return std::isfinite(value) && value >= 0; }
bool is_time(DeviceTime time) { return time >= 0 && time < kTimeMax; }
bool fills_its_slice(const GangRequest& gang) {
  if (!gang.asks_slice()) return true;
  std::uint64_t left = gang.devices;
  for (const std::uint32_t side : gang.slice) {
    if (side == 0 || left % side != 0) return false;
    left /= side;
  }
  return left == 1;
}

bool is_length(Duration time) { return time >= Duration(); }

Wrong wrong_of(const Progress& progress) {
  if (!is_part(progress.done)) return "a part of its work that is none";
  const bool lengths =
      is_length(progress.lost) && is_length(progress.saving) && is_length(progress.undetected);
  return lengths ? nullptr : "a loss below nothing";
}

Wrong wrong_of(const JobUsage& usage, std::uint32_t types) {
  const TypeTimes::Entry* last = nullptr;
  for (const TypeTimes::Entry& entry : usage.devices.entries) {
    if (entry.type.valid() && entry.type.value() >= types)
      return "time on a type that is not there";
    if (last != nullptr && !(last->type < entry.type)) return "its types out of order";
    if (entry.time == 0 || !is_time(entry.time)) return "a time that no devices were held";
    last = &entry;
  }
  if (!is_time(usage.lost) || !is_time(usage.idle) || !is_length(usage.waited)) {
    return "a time below nothing";
  }
  const bool sums = is_sum(usage.joules) && std::isfinite(usage.dollars) &&
                    std::isfinite(usage.co2_grams) && std::isfinite(usage.electricity) &&
                    is_sum(usage.egress);
  return sums ? nullptr : "a bill that is no number";
}

}  // namespace

class StateRanges {
 public:
  explicit StateRanges(const State& state)
      : s_(state), topology_(*state.setup().topology), held_(topology_.device_count()) {}

  std::optional<std::string> all() {
    if (Wrong wrong = sizes()) return wrong;
    for (std::uint32_t i = 0; i < s_.jobs_.size(); ++i) {
      const JobId id(i);
      if (!s_.jobs_.has(id)) continue;
      if (Wrong wrong = wrong_of(s_.jobs_[id], id)) return fmt::format("job {} has {}", i, wrong);
    }
    for (const RunningJob& run : s_.running_) {
      if (Wrong wrong = wrong_of(run)) {
        return fmt::format("job {}, which runs, has {}", run.id.value(), wrong);
      }
    }
    for (const Ghost& ghost : s_.ghosts_) {
      if (Wrong wrong = wrong_of(ghost)) return fmt::format("what left a job has {}", wrong);
    }
    for (const Reservation& slot : s_.slots_) {
      if (Wrong wrong = wrong_of(slot)) return fmt::format("a slot has {}", wrong);
    }
    if (Wrong wrong = services()) return wrong;
    if (Wrong wrong = others()) return wrong;
    return ledger();
  }

 private:
  /// Whether `at` names at least one device, and only devices that its node has.
  [[nodiscard]] bool is_on_node(const NodeDevices& at) const;
  [[nodiscard]] Wrong hold(const NodeDevices& at, std::uint16_t share);
  [[nodiscard]] Wrong wrong_of(const Job& job, JobId id) const;
  [[nodiscard]] Wrong wrong_of(const JobRequest& request) const;
  [[nodiscard]] Wrong wrong_of(const RoleRequest& role) const;
  [[nodiscard]] Wrong wrong_of(const GangOption& option) const;
  [[nodiscard]] Wrong wrong_of(const PlacedGang& gang, const JobRequest& request) const;
  [[nodiscard]] Wrong wrong_of(const RunningJob& run);
  [[nodiscard]] Wrong wrong_of(const Ghost& ghost);
  [[nodiscard]] Wrong wrong_of(const Reservation& slot) const;
  [[nodiscard]] Wrong sizes() const;
  [[nodiscard]] Wrong wrong_of(const ServiceRevision& revision) const;
  [[nodiscard]] Wrong services() const;
  [[nodiscard]] Wrong others() const;
  [[nodiscard]] std::optional<std::string> ledger() const;

  const State& s_;
  const Topology& topology_;
  std::vector<std::uint16_t> held_;  ///< by device, in thousandths
};

Wrong StateRanges::sizes() const {
  if (s_.nodes_.size() != topology_.node_count()) return "its nodes are others than the fleet's";
  if (s_.idle_.size() != topology_.type_count()) return "its types are others than the fleet's";
  if (s_.by_tenant_.size() != s_.tenants_->size()) return "its bills are of other tenants";
  if (!s_.risk_.empty() && s_.risk_.size() != s_.nodes_.size()) return "a node has no risk";
  return nullptr;
}

bool StateRanges::is_on_node(const NodeDevices& at) const {
  if (!at.node.valid() || at.node.value() >= topology_.node_count()) return false;
  const auto width = static_cast<std::uint32_t>(std::bit_width(at.devices));
  return width > 0 && width <= topology_.group(at.node).devices;
}

// Fails if devices are already held, so that none is taken from the fleet twice.
Wrong StateRanges::hold(const NodeDevices& at, std::uint16_t share) {
  if (!is_on_node(at)) return "devices that no node has";
  if (share == 0 || share > kWholeDevice) return "a share of a device that is none";
  const bool whole = share == kWholeDevice;
  if (!whole && std::popcount(at.devices) != 1) return "one share of several devices";
  const std::uint32_t first = topology_.place(at.node).first_device.value();
  for (std::uint64_t left = at.devices; left != 0; left &= left - 1) {
    std::uint16_t& held = held_[first + static_cast<std::uint32_t>(std::countr_zero(left))];
    // A device that is held whole has no room for a share.
    if (whole ? held != 0 : held + share > kShareMax) return "devices that another holds";
    held = whole ? kShareMax : static_cast<std::uint16_t>(held + share);
  }
  return nullptr;
}

Wrong StateRanges::wrong_of(const Job& job, JobId id) const {
  if (job.id != id) return "the number of another";
  if (job.tenant.value() >= s_.tenants_->size()) return "a tenant that is not there";
  if (ended(job.phase) != (job.submission == nullptr)) return "a submission and has ended, or none";
  if (!is_part(job.done)) return "a part of its work that is none";
  if (!is_sum(job.attained)) return "less than nothing attained";
  const NodeId blamed = job.blame.node;
  if (blamed.valid() && blamed.value() >= topology_.node_count()) return "a node to blame of none";
  for (const std::vector<NodeDevices>& gang : job.placed) {
    for (const NodeDevices& at : gang) {
      if (!is_on_node(at)) return "been placed on devices that no node has";
    }
  }
  if (Wrong wrong = orrery::wrong_of(job.usage, topology_.type_count())) return wrong;
  if (Wrong wrong = orrery::wrong_of(job.progress)) return wrong;
  for (const Attempt& attempt : job.attempts) {
    const auto there = [&](NodeId node) { return node.value() < topology_.node_count(); };
    if (!std::all_of(attempt.nodes.begin(), attempt.nodes.end(), there)) {
      return "run on a node that is not there";
    }
    const NodeId at_fault = attempt.blame.node;
    if (at_fault.valid() && !there(at_fault)) return "a node to blame of none";
  }
  if (job.submission == nullptr) return nullptr;
  const Submission& asked = *job.submission;
  for (const std::vector<JobId>* list : {&asked.after, &asked.after_any, &asked.after_notok}) {
    for (const JobId before : *list) {
      if (before.value() >= s_.jobs_.size()) return "to wait for a job that is not there";
    }
  }
  if (!is_length(job.submission->prepare.compile)) return "a time to compile below nothing";
  if (job.submission->request.tenant != job.tenant) return "two tenants";
  return wrong_of(job.submission->request);
}

Wrong StateRanges::wrong_of(const JobRequest& request) const {
  if (request.roles.empty()) return "no role";
  for (const RoleRequest& role : request.roles) {
    if (Wrong wrong = wrong_of(role)) return wrong;
  }
  for (const DataRequest& data : request.data) {
    if (data.site >= topology_.sites().size()) return "data at a site that is not there";
    if (!is_sum(data.size.value())) return "data of no size";
  }
  const auto none_below = [](const std::optional<Duration>& time) {
    return !time || is_length(*time);
  };
  if (!none_below(request.time_limit) || !none_below(request.estimate) ||
      !is_length(request.checkpoint_interval) || !is_length(request.checkpoint_cost) ||
      !is_length(request.restart)) {
    return "a time below nothing";
  }
  if (request.budget && !std::isfinite(request.budget->value())) return "a budget of no size";
  const ClassId of = request.class_id;
  return of.valid() && of.value() >= kClassesMax ? "a class beyond all" : nullptr;
}

Wrong StateRanges::wrong_of(const RoleRequest& role) const {
  if (role.options.empty()) return "a role without an option";
  if (role.devices_min > role.devices_max) return "a role of fewer than its least";
  if (role.steps && !is_sum(*role.steps)) return "a number of steps that is none";
  for (const GangOption& option : role.options) {
    if (Wrong wrong = wrong_of(option)) return wrong;
  }
  return nullptr;
}

Wrong StateRanges::wrong_of(const GangOption& option) const {
  const GangRequest& gang = option.gang;
  if (gang.type.value() >= topology_.type_count()) return "an option of a type that is not there";
  if (gang.node_devices == 0 || gang.node_devices > gang.devices) return "a gang of no devices";
  if (gang.share == 0 || gang.share > kWholeDevice) return "a share of a device that is none";
  if (gang.share < kWholeDevice && gang.devices != 1) return "one share of several devices";
  if (!fills_its_slice(gang)) return "a slice of other devices than the gang's";
  if (!std::isfinite(option.speed) || option.speed <= 0) return "a speed that is none";
  const bool planned = !option.plan || (option.plan->type.value() < topology_.type_count() &&
                                        option.plan->devices > 0);
  return planned ? nullptr : "a plan for a type that is not there";
}

Wrong StateRanges::wrong_of(const PlacedGang& gang, const JobRequest& request) const {
  if (gang.role >= request.roles.size()) return "a gang of a role that is not there";
  const RoleRequest& role = request.roles[gang.role];
  if (gang.option >= role.options.size()) return "a gang of an option that is not there";
  const FleetTypeId type = role.options[gang.option].gang.type;
  NodeId last;
  for (const NodeDevices& at : gang.allocation.ranks) {
    if (!is_on_node(at)) return "devices that no node has";
    if (last.valid() && at.node <= last) return "nodes out of order";
    if (topology_.group(at.node).type != type) return "devices of a type that it did not ask for";
    last = at.node;
  }
  const auto& idle = gang.allocation.idle;
  const auto there = [this](const NodeDevices& at) { return is_on_node(at); };
  return std::all_of(idle.begin(), idle.end(), there) ? nullptr : "devices that no node has";
}

Wrong StateRanges::wrong_of(const RunningJob& run) {
  if (!s_.jobs_.has(run.id)) return "a number that no job has";
  const Job& job = s_.jobs_[run.id];
  if (!holds_devices(job.phase)) return "not started, or ended";
  if (run.gangs.empty() || run.gangs.size() != run.terms.size()) return "a gang without terms";
  if (!is_part(run.done) || !is_sum(run.attained)) return "a part of its work that is none";
  for (const GangTerms& terms : run.terms) {
    const bool sums = is_sum(terms.ratio) && is_sum(terms.clock) && is_sum(terms.draw.value());
    if (!sums || (terms.length && !is_length(*terms.length))) return "terms that are no numbers";
  }
  for (const PlacedGang& gang : run.gangs) {
    if (Wrong wrong = wrong_of(gang, job.submission->request)) return wrong;
    for (const NodeDevices& at : gang.allocation.ranks) {
      if (Wrong wrong = hold(at, gang.allocation.share)) return wrong;
    }
    for (const NodeDevices& at : gang.allocation.idle) {
      if (Wrong wrong = hold(at, kWholeDevice)) return wrong;
    }
  }
  return nullptr;
}

Wrong StateRanges::wrong_of(const Ghost& ghost) {
  if (!s_.jobs_.has(ghost.job)) return "the number of no job";
  return hold(ghost.at, ghost.share);
}

Wrong StateRanges::wrong_of(const Reservation& slot) const {
  const bool has = s_.jobs_.has(slot.job) && s_.jobs_[slot.job].submission != nullptr;
  const JobPhase phase = has ? s_.jobs_[slot.job].phase : JobPhase::kFinished;
  if (ended(phase) || (holds_devices(phase) && phase != JobPhase::kStopping)) {
    return "a job that does not wait";
  }
  if (!is_sum(slot.lost_device_seconds)) return "a loss that is no number";
  for (const PlacedGang& gang : slot.gangs) {
    if (Wrong wrong = wrong_of(gang, s_.jobs_[slot.job].submission->request)) return wrong;
  }
  return nullptr;
}

Wrong StateRanges::wrong_of(const ServiceRevision& revision) const {
  if (revision.number == 0) return "a service has no revision";
  if (revision.replica == nullptr) return "a service has no replica to start";
  const JobRequest& request = revision.replica->request;
  if (request.kind != JobKind::kServe || !request.array.valid()) return "a service is none";
  if (request.tenant.value() >= s_.tenants_->size()) return "a service is of no tenant";
  if (!is_length(revision.replica->prepare.compile)) return "a service compiles below nothing";
  return wrong_of(request) == nullptr ? nullptr : "a service asks for what is not there";
}

Wrong StateRanges::services() const {
  std::set<ArrayId> arrays;
  for (const auto& [id, service] : s_.services_.all()) {
    if (service.id != id || id.value() >= s_.jobs_.size()) return "a service is of no job";
    if (Wrong wrong = wrong_of(service.revision)) return wrong;
    if (!arrays.insert(service.revision.replica->request.array).second) {
      return "two services have one array";
    }
    if (!service.update) continue;
    if (Wrong wrong = wrong_of(service.update->to)) return wrong;
  }
  for (const auto& [id, scaling] : s_.services_.scalings_) {
    if (s_.services_.find(id) == nullptr) return "a service is scaled and is not there";
  }
  for (const auto& [job, member] : s_.services_.memberships_) {
    if (!s_.jobs_.has(job)) return "a replica is no job";
    const Job& replica = s_.jobs_[job];
    if (ended(replica.phase)) continue;
    const Service* service = s_.services_.find(member.service);
    const ArrayId array = replica.submission->request.array;
    if (service == nullptr || service->revision.replica->request.array != array) {
      return "a replica is of no service";
    }
  }
  return nullptr;
}

Wrong StateRanges::others() const {
  const SharePeriod& period = s_.share_period_;
  if (!std::is_sorted(period.jobs.begin(), period.jobs.end())) return "shares of jobs out of order";
  for (const auto& [of, had] : period.had) {
    if (!is_sum(had)) return "a share with a time that is no number";
  }
  for (const auto& [before, next] : s_.after_) {
    const auto is_job = [this](JobId id) { return id.value() < s_.jobs_.size(); };
    const bool all = std::all_of(next.begin(), next.end(), is_job);
    if (!s_.jobs_.has(before) || !all) return "one waits for a job that is not there";
  }
  for (const auto& [id, window] : s_.closed_.windows()) {
    const auto is_node = [this](NodeId node) { return node.value() < topology_.node_count(); };
    if (!std::all_of(window.nodes.begin(), window.nodes.end(), is_node)) {
      return "a maintenance window is of a node that is not there";
    }
    if (window.to <= window.from) return "a maintenance window ends before it begins";
  }
  for (const NodeRecord& node : s_.nodes_) {
    const NodeRecord::Loan& loan = node.loan;
    const bool used = loan.used != Instant::max();
    const bool known = loan.since != Instant::max();
    if ((known && loan.since > s_.now_) || (used && (loan.used > s_.now_ || loan.hold.empty()))) {
      return "a node is lent from a time that has not come";
    }
  }
  const HoldBills& bills = s_.bills_;
  const auto is_billed = [&](const auto& each) { return bills.billed_.contains(each.second); };
  if (!std::ranges::all_of(bills.newest_, is_billed) ||
      bills.newest_.size() != bills.billed_.size()) {
    return "the holds that were billed are not those of the bills";
  }
  for (const auto* totals : {&bills.totals(), &bills.open()}) {
    for (const auto& [of, total] : *totals) {
      if (!is_time(total.held) || !is_time(total.used)) return "a hold has a time that is none";
    }
  }
  for (const Claim& claim : s_.claims_) {
    if (claim.job.value() >= s_.jobs_.size()) return "a claim against a node is of no job";
    if (claim.node.value() >= topology_.node_count()) return "a claim is against no node";
    if (claim.tenant.value() >= s_.tenants_->size()) return "a claim is of no tenant";
  }
  for (const auto& [program, type] : s_.compiled_) {
    if (type.value() >= topology_.type_count()) return "a program is compiled for no type";
  }
  for (const float risk : s_.risk_) {
    if (!is_sum(risk)) return "a node's risk is no number";
  }
  for (const DeviceUse use : s_.idle_) {
    if (use < DeviceUse::kNoDemand || use > DeviceUse::kOrder) return "idle devices are in use";
  }
  TypeTimes of_tenants;
  for (const JobUsage& usage : s_.by_tenant_) {
    if (orrery::wrong_of(usage, topology_.type_count())) return "a tenant's bill is no bill";
    of_tenants += usage.devices;
  }
  if (orrery::wrong_of(s_.total_, topology_.type_count())) return "the bill of all is no bill";
  return of_tenants == s_.total_.devices ? nullptr : "the bills of tenants are not that of all";
}

std::optional<std::string> StateRanges::ledger() const {
  const Ledger& ledger = s_.ledger_;
  if (ledger.begin_ > s_.now_) return "the ledger begins later than now";
  if (!ledger.changed_.empty() && ledger.changed_.size() != ledger.cells_.size()) {
    return "the ledger has changes of other types";
  }
  for (std::uint32_t t = 0; t < topology_.type_count(); ++t) {
    const std::uint32_t devices = topology_.device_count(Topology::root(), FleetTypeId(t));
    const DeviceTime all = ledger.time_of(FleetTypeId(t), devices, s_.now_);
    for (const auto& [count, since, sum] : ledger.cells_[t]) {
      const bool in_time = since >= ledger.begin_ && since <= s_.now_;
      if (in_time && count <= devices && sum >= 0 && sum <= all) continue;
      return fmt::format("the ledger has more of type {} than there is", t);
    }
  }
  return std::nullopt;
}

std::optional<std::string> out_of_range(const State& state) { return StateRanges(state).all(); }

}  // namespace orrery
