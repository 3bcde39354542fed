// control/state/snapshot.cpp - the fields of the state, as they are and as a changed fleet has
// them.
#include "control/state/snapshot.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/assert.hpp"
#include "base/format/checksum.hpp"
#include "base/format/xxh3.hpp"
#include "control/codec/decoder.hpp"
#include "control/codec/encoder.hpp"
#include "control/services/service_fields.hpp"
#include "control/state/state_codec.hpp"

namespace orrery {

namespace {

/// The present form; it rises with every change of the fields.
constexpr std::uint32_t kForm = 15;
/// Form of snapshots that had every job that was ever submitted.
constexpr std::uint32_t kFormOfAllJobs = 3;
/// The last form that only counted a node's faults.
constexpr std::uint32_t kFormOfFaultCounts = 4;
/// The last form that had one sum of a job's device time, over all types.
constexpr std::uint32_t kFormOfOneSum = 5;
/// The last form without reasons of drains, claims against nodes, and the submitters of jobs.
constexpr std::uint32_t kFormWithoutClaims = 6;

/// The last form without holds, the history of attempts, and jobs that wait for others to fail.
constexpr std::uint32_t kFormWithoutAttempts = 7;
/// The last form that had one sum of a job's dollars and its joules at the nodes, and did not
/// record where the data of a job are.
constexpr std::uint32_t kFormOfOneBill = 8;
/// The last form without the period of max-min shares.
constexpr std::uint32_t kFormWithoutShares = 9;
/// The last form without changes of the fleet.
constexpr std::uint32_t kFormOfOneFleet = 10;
/// The last form without nodes that a resource manager lends.
constexpr std::uint32_t kFormOfOwnNodes = 11;
/// Uses of devices in that form: all before DeviceUse::kAbsent.
constexpr std::size_t kUsesOfOwnNodes = 18;
/// The last form without work of others and bills of holds.
constexpr std::uint32_t kFormWithoutForeign = 12;
/// Uses of devices in that form: all before DeviceUse::kForeign.
constexpr std::size_t kUsesWithoutForeign = 19;
/// The last form without services and reports of replicas.
constexpr std::uint32_t kFormWithoutReplicas = 13;
/// The last form without orders that scale services and sizes of replicas' caches.
constexpr std::uint32_t kFormWithoutScaling = 14;

/// Returns how many uses of devices a form has.
constexpr std::size_t uses_of(std::uint32_t form) {
  if (form <= kFormOfOwnNodes) return kUsesOfOwnNodes;
  return form <= kFormWithoutForeign ? kUsesWithoutForeign : kDeviceUses;
}

/// Returns the form of the fields.
constexpr std::uint32_t form_of(const Encoder&) { return kForm; }
std::uint32_t form_of(const Decoder& decoder) { return decoder.form(); }

/// The most faults of a node that are taken over from a count.
constexpr std::uint32_t kFaultsMost = 1000;

}  // namespace

// --- Fields -------------------------------------------------------------------------------------

template <class Codec, SameStruct<TypeTimes::Entry> S>
void code(Codec& codec, S& entry) {
  auto& [type, time] = entry;
  codec(type, time);
}

template <class Codec, SameStruct<SharePeriod> S>
void code(Codec& codec, S& period) {
  auto& [since, jobs, had] = period;
  codec(since, jobs, had);
}

template <class Codec, SameStruct<TypeTimes> S>
void code(Codec& codec, S& times) {
  if constexpr (!std::is_const_v<S>) {
    if (form_of(codec) <= kFormOfOneSum) {
      DeviceTime sum = 0;
      codec(sum);
      return times.add(kAllTypes, sum);
    }
  }
  auto& [entries] = times;
  codec(entries);
}

template <class Codec, SameStruct<JobUsage> S>
void code(Codec& codec, S& usage) {
  auto& [waited, devices, lost, idle, joules, dollars, electricity, egress, co2_grams, preemptions,
         faults, program_faults, resizes] = usage;
  codec(waited, devices, lost, idle, joules, dollars, co2_grams, preemptions, faults,
        program_faults, resizes);
  if (form_of(codec) > kFormOfOneBill) codec(electricity, egress);
}

template <class Codec, SameStruct<Attempt> S>
void code(Codec& codec, S& attempt) {
  auto& [number, started, running, stopped, reason, blame, exit, in_favour_of, nodes, replica] =
      attempt;
  codec(number, started, running, stopped, reason, blame, exit, in_favour_of, nodes);
  if constexpr (std::is_same_v<Codec, Decoder>) {
    if (form_of(codec) == kFormWithoutScaling) return code_without_cache(codec, replica);
  }
  if (form_of(codec) > kFormWithoutReplicas) codec(replica);
}

template <class Codec, SameStruct<JobTerms> S>
void code(Codec& codec, S& terms) {
  auto& [kind, priority, time_limit, estimate] = terms;
  codec(kind, priority, time_limit, estimate);
}

/// Encodes what the encoding of a Submission leaves out (control/state/job_fields.hpp).
template <class Codec>
void code_rest(Codec& codec, const std::shared_ptr<const Submission>& submission) {
  if (submission == nullptr) return;
  codec(submission->after_any, submission->after_notok, submission->hold);
}
void code_rest(Decoder& decoder, std::shared_ptr<const Submission>& submission) {
  if (submission == nullptr) return;
  auto whole = std::make_shared<Submission>(*submission);
  decoder(whole->after_any, whole->after_notok, whole->hold);
  submission = std::move(whole);
}

/// Leaves out the job's position in the running list, which is rebuilt.
template <class Codec, SameStruct<Job> S>
void code(Codec& codec, S& job) {
  [[maybe_unused]] auto& [id, phase, stop, attempt, epoch, waiting_for, at, leaving, submitted,
                          since, metered, not_before, first_start, end, done, attained, use, cancel,
                          up, progress, blame, usage, submission, name, tenant, spec, placed,
                          submitter, run_as, hold, attempts, terms, data_at] = job;
  codec(id, phase, stop, attempt, epoch, waiting_for, leaving, submitted, since, metered,
        not_before, first_start, end, done, attained, use, cancel, up, progress, blame, usage,
        submission, name, tenant, spec, placed);
  if (form_of(codec) > kFormWithoutClaims) codec(submitter, run_as);
  if (form_of(codec) <= kFormWithoutAttempts) return;
  codec(hold, attempts, terms);
  if (form_of(codec) > kFormOfOneBill) codec(data_at);
  code_rest(codec, submission);
}

/// Encodes the job, or that it is archived.
template <class Codec, SameStruct<JobTable::Slot> S>
void code(Codec& codec, S& slot) {
  bool there = slot.job != nullptr || form_of(codec) == kFormOfAllJobs;
  if (form_of(codec) != kFormOfAllJobs) codec(there);
  if (!there) return;
  if constexpr (std::is_const_v<S>) {
    codec(std::as_const(*slot.job));
  } else {
    codec(*(slot.job = std::make_unique<Job>()));
  }
}

/// Leaves out the request, which is that of the job.
template <class Codec, SameStruct<RunningJob> S>
void code(Codec& codec, S& run) {
  [[maybe_unused]] auto& [id, request, submitted, started, since, expected_end, checkpoint, done,
                          attained, gangs, terms, stopping, data_at] = run;
  codec(id, submitted, started, since, expected_end, checkpoint, done, attained, gangs, terms,
        stopping);
}

template <class Codec, SameStruct<NodeRecord> S>
void code(Codec& codec, S& node) {
  auto& [number, boot, health, spare, lemon, drain, faults, drain_why, out_why, loan, foreign] =
      node;
  if (form_of(codec) > kFormOfOneFleet) codec(number);
  codec(boot, health, spare, lemon, drain);
  if constexpr (!std::is_const_v<S>) {
    if (form_of(codec) <= kFormOfFaultCounts) {
      std::uint32_t count = 0;
      Instant last;
      codec(count, last);
      return faults.assign(std::min(count, kFaultsMost), last);  // as if all came with it
    }
  }
  codec(faults);
  if (form_of(codec) > kFormWithoutClaims) codec(drain_why, out_why);
  if (form_of(codec) > kFormOfOwnNodes) codec(loan.managed, loan.hold, loan.until);
  if (form_of(codec) > kFormWithoutForeign) {
    codec(loan.since, loan.used, loan.job, foreign.claim, foreign.until, foreign.who);
  } else if constexpr (!std::is_const_v<S>) {
    loan.since = Instant::max();  // not known
  }
}

template <class Codec, SameStruct<LentTotal> S>
void code(Codec& codec, S& total) {
  auto& [holds, held, used] = total;
  codec(holds, held, used);
}

template <class Codec, SameStruct<Claim> S>
void code(Codec& codec, S& claim) {
  auto& [job, attempt, node, tenant, at, verdict] = claim;
  codec(job, attempt, node, tenant, at, verdict);
}

template <class Codec, SameStruct<Ghost> S>
void code(Codec& codec, S& ghost) {
  auto& [job, attempt, epoch, at, host, share] = ghost;
  codec(job, attempt, epoch, at, host, share);
}

template <class Codec, SameStruct<Maintenance> S>
void code(Codec& codec, S& window) {
  auto& [nodes, from, to, why] = window;
  codec(nodes, from, to);
  if (form_of(codec) > kFormWithoutClaims) codec(why);
}

template <class Codec, SameStruct<Changes> S>
void code(Codec& codec, S& changes) {
  auto& [freed, plans, limits, links] = changes;
  codec(freed, plans, limits, links);
}

template <class Codec, SameStruct<Remembered> S>
void code(Codec& codec, S& remembered) {
  auto& [at, request, job] = remembered;
  codec(at, request, job);
}

template <class Codec, SameStruct<Limits> S>
void code(Codec& codec, S& limits) {
  auto& [cap, supply] = limits;
  codec(cap, supply);
}

template <class Codec, SameStruct<Parts> S>
void code(Codec& codec, S& parts) {
  auto& [requests, links, limits, recent, plans] = parts;
  codec(requests, links, limits, recent, plans);
}

template <class Codec, SameStruct<State> S>
void StateCodec::code(Codec& codec, S& s) {
  code(codec, s,
       std::tie(s.nodes_, s.closed_.windows_, s.risk_, s.slots_, s.idle_, s.ledger_, s.claims_));
}

template <class Codec, SameStruct<State> S, class OfFleetFields>
void StateCodec::code(Codec& codec, S& s, const OfFleetFields& of_fleet) {
  const auto& [nodes, maintenance, risk, slots, idle, ledger, claims] = of_fleet;
  codec(s.now_, s.version_, s.texts_.policy, s.texts_.tenants);
  codec(s.jobs_.slots_, s.running_.jobs_, s.after_, nodes);
  codec(s.ghosts_, maintenance, s.usage_until_, s.compiled_, risk, slots);
  codec(s.changes_, s.passes_.last, s.passes_.count, s.ended_, idle, s.total_, s.by_tenant_);
  codec(ledger.begin_);
  for (auto& type : ledger.cells_) {
    for (std::size_t use = 0; use < uses_of(form_of(codec)); ++use) {
      auto& cell = type[use];
      codec(cell.count, cell.since, cell.sum);
    }
  }
  if (form_of(codec) > kFormWithoutClaims) codec(claims);
  if (form_of(codec) > kFormWithoutShares) codec(s.share_period_);
  if (form_of(codec) > kFormOfOneFleet)
    codec(s.fleet_changes_.numbers, s.fleet_changes_.last, ledger.changed_);
  if (form_of(codec) <= kFormWithoutForeign) return;
  codec(s.bills_.totals_, s.bills_.open_, s.bills_.newest_, s.bills_.billed_, s.bills_.forgotten_);
  if (form_of(codec) > kFormWithoutReplicas) codec(s.services_.services_, s.services_.memberships_);
  if (form_of(codec) > kFormWithoutScaling) codec(s.services_.scalings_);
}

Parts StateCodec::parts_of(const State& state) {
  Parts parts;
  parts.requests.reserve(state.requests_.ages.size());
  for (const auto& [at, request] : state.requests_.ages) {
    parts.requests.push_back({at, request, state.requests_.jobs.at(request).first});
  }
  const FleetView view = state.fleet_.view();
  for (std::uint32_t l = 0; l < view.topology().link_count(); ++l) {
    const LinkState& link = view.link(LinkId(l));
    if (!(link == LinkState{})) parts.links.emplace_back(LinkId(l), link);
  }
  if (state.caps_) {
    const std::size_t domains = view.topology().power_domains().size();
    parts.limits.reserve(domains);
    for (std::size_t d = 0; d < domains; ++d) {
      const PowerDomainId id = PowerDomainId::at(d);
      parts.limits.push_back({state.caps_->cap(id), state.caps_->supply(id)});
    }
  }
  const TenantTree& tenants = *state.tenants_;
  parts.recent.reserve(std::size_t{tenants.size()} * tenants.columns());
  for (std::uint32_t t = 0; t < tenants.size(); ++t) {
    for (std::uint32_t c = 0; c < tenants.columns(); ++c) {
      const FleetTypeId type = c < tenants.type_count() ? FleetTypeId(c) : kAllTypes;
      parts.recent.push_back(state.usage_->recent(TenantId(t), type));
    }
  }
  parts.plans.reserve(state.plans_.size());
  state.plans_.for_each([&](const PlanKey& key, const PlanEntry&) { parts.plans.push_back(key); });
  return parts;
}

void StateCodec::encode_changed(const State& state, const FleetMap& map, const ControlSetup& next,
                                Encoder& out) {
  const OfFleet changed = changed_fields(state, map, next);
  const auto& [nodes, maintenance, risk, slots, idle, ledger, claims] = changed;
  out.translate(map);
  code(out, state, std::tie(nodes, maintenance, risk, slots, idle, ledger, claims));
  out(changed_parts(state, map, next));
}

// Reservations are made anew by the next pass.
OfFleet StateCodec::changed_fields(const State& state, const FleetMap& map,
                                   const ControlSetup& next) {
  OfFleet changed{.nodes = {},
                  .maintenance = state.closed_.windows(),
                  .risk = {},
                  .slots = {},
                  .idle = {},
                  .ledger = changed_ledger(state, map, next),
                  .claims = state.claims_};
  std::uint32_t number = state.fleet_changes_.numbers;
  for (const NodeId before : map.nodes_before) {
    const bool added = !before.valid();
    changed.nodes.push_back(added ? NodeRecord{.number = number++, .health = next.nodes_begin}
                                  : state.nodes_[before.value()]);
    if (state.risk_.empty()) continue;
    changed.risk.push_back(added ? 1 : state.risk_[before.value()]);
  }
  for (const FleetTypeId before : map.types_before) {
    changed.idle.push_back(before.valid() ? state.idle_[before.value()] : DeviceUse::kNoDemand);
  }
  const auto is_retired = [&](NodeId node) { return !map.nodes[node.value()].valid(); };
  for (auto& [window, plan] : changed.maintenance) std::erase_if(plan.nodes, is_retired);
  std::erase_if(changed.maintenance, [](const auto& entry) { return entry.second.nodes.empty(); });
  std::erase_if(changed.claims, [&](const Claim& claim) { return is_retired(claim.node); });
  return changed;
}

Ledger StateCodec::changed_ledger(const State& state, const FleetMap& map,
                                  const ControlSetup& next) {
  Ledger left = state.ledger_;
  const Topology& before = state.fleet_.topology();
  for (const NodeId node : map.retired()) {
    const NodeGroup& group = before.group(node);
    left.change_fleet(group.type, state.free_use(node), -std::int64_t{group.devices}, state.now_);
  }
  Ledger ledger = left;
  ledger.cells_.clear();
  ledger.changed_.assign(map.types_before.size(), 0);
  left.changed_.resize(left.cells_.size());
  for (std::size_t t = 0; t < map.types_before.size(); ++t) {
    ledger.set_types(t + 1);
    if (!map.types_before[t].valid()) continue;
    ledger.cells_[t] = left.cells_[map.types_before[t].value()];
    ledger.changed_[t] = left.changed_[map.types_before[t].value()];
  }
  for (const NodeId node : map.added()) {
    const NodeGroup& group = next.topology->group(node);
    const FleetTypeId type = map.types_before[group.type.value()];
    const DeviceUse idle = type.valid() ? state.idle_[type.value()] : DeviceUse::kNoDemand;
    const DeviceUse use = next.nodes_begin == NodeHealth::kReady ? idle : DeviceUse::kDown;
    ledger.change_fleet(group.type, use, group.devices, state.now_);
  }
  return ledger;
}

// Links count as healthy until they are observed again; limits go with their power domains.
Parts StateCodec::changed_parts(const State& state, const FleetMap& map, const ControlSetup& next) {
  const Parts before = parts_of(state);
  Parts parts{
      .requests = before.requests, .links = {}, .limits = {}, .recent = {}, .plans = before.plans};
  if (next.power != nullptr) {
    for (const PowerDomainId id : map.power_before) {
      const bool known = id.valid() && !before.limits.empty();
      parts.limits.push_back(known ? before.limits[id.value()] : Limits());
    }
  }
  const TenantTree& tenants = *state.tenants_;
  for (std::uint32_t t = 0; t < tenants.size(); ++t) {
    for (const FleetTypeId type : map.types_before) {
      parts.recent.push_back(type.valid() ? state.usage_->recent(TenantId(t), type) : 0);
    }
    parts.recent.push_back(state.usage_->recent(TenantId(t), kAllTypes));
  }
  return parts;
}

void StateCodec::finish_change(State& state, std::size_t added) {
  state.fleet_changes_.numbers += static_cast<std::uint32_t>(added);
  for (Job& job : state.jobs_) {
    for (std::vector<NodeDevices>& gang : job.placed) {
      std::erase_if(gang, [](const NodeDevices& at) { return !at.node.valid(); });
    }
    for (Attempt& attempt : job.attempts) {
      std::erase_if(attempt.nodes, [](NodeId node) { return !node.valid(); });
    }
  }
}

void StateCodec::number_nodes(State& state) {
  for (std::uint32_t n = 0; n < state.nodes_.size(); ++n) state.nodes_[n].number = n;
}

void StateCodec::lay_sums_at_the_type(State& state) {
  if (state.setup().topology->type_count() != 1) return;
  const auto lay = [](JobUsage& usage) {
    for (TypeTimes::Entry& entry : usage.devices.entries) entry.type = FleetTypeId(0);
  };
  for (Job& job : state.jobs_) lay(job.usage);
  for (JobUsage& usage : state.by_tenant_) lay(usage);
  lay(state.total_);
}

namespace {

struct Head {
  std::uint32_t form = kForm;
  std::uint32_t nodes = 0;
  std::uint32_t devices = 0;
  std::uint32_t types = 0;
  std::uint32_t links = 0;
  std::uint32_t power_domains = 0;  ///< only those that are limited

  friend bool operator==(const Head&, const Head&) = default;
};

template <class Codec, SameStruct<Head> S>
void code(Codec& codec, S& head) {
  auto& [form, nodes, devices, types, links, power_domains] = head;
  codec(form, nodes, devices, types, links, power_domains);
}

Head head_of(const ControlSetup& setup) {
  const Topology& topology = *setup.topology;
  const std::size_t domains = setup.power == nullptr ? 0 : topology.power_domains().size();
  return {.nodes = topology.node_count(),
          .devices = topology.device_count(),
          .types = topology.type_count(),
          .links = topology.link_count(),
          .power_domains = static_cast<std::uint32_t>(domains)};
}

void encode_all(const State& state, Encoder& out) {
  out(head_of(state.setup()));
  out(state.setup().fleets.text);
  StateCodec::code(out, state);
  out(StateCodec::parts_of(state));
}

}  // namespace

std::string snapshot_of(const State& state) {
  Encoder out;
  encode_all(state, out);
  out.fixed(xxh3(out.bytes()));
  return std::string(out.bytes());
}

std::uint64_t digest_of(const State& state) {
  Encoder out;
  encode_all(state, out);
  return checksum(out.bytes(), 0);
}

namespace {

/// Makes a new state that of the fleet that a snapshot names. Errors: the fleet's text.
Status take_fleet(State& state, const std::string& fleet) {
  if (fleet == state.setup().fleets.text) return {};
  if (!state.setup().fleets.source)
    return environment_error("the snapshot is of a fleet that changed");
  Result<const ControlSetup*> setup = state.setup().fleets.source(fleet);
  if (!setup) return forward_error(setup);
  state = State(**setup);
  return {};
}

}  // namespace

namespace {

/// Whether ids that stay keep their order: ranks and sums are kept by ascending id.
template <class Id>
bool in_order(std::vector<Id> ids) {
  std::erase_if(ids, [](Id id) { return !id.valid(); });
  return std::ranges::is_sorted(ids);
}

Status check_fits(const State& state, const FleetMap& map) {
  const Topology& topology = *state.setup().topology;
  for (const NodeId node : map.retired()) {
    const std::vector<JobId> jobs = state.jobs_on(node);
    if (!jobs.empty()) {
      return infeasible(fmt::format("node {} is not in the new fleet and has job {}",
                                    topology.node_name(node), jobs.front().value()));
    }
    const auto left = [node](const Ghost& ghost) { return ghost.at.node == node; };
    if (std::ranges::none_of(state.ghosts(), left)) continue;
    return infeasible(
        fmt::format("node {} is not in the new fleet and may still run ranks of a "
                    "lost job: fence it first",
                    topology.node_name(node)));
  }
  if (!in_order(map.nodes)) {
    return input_error({},
                       "nodes that stay are in another order than before: expected the order "
                       "that they had, new ones between or after them");
  }
  if (!in_order(map.types)) {
    return input_error({},
                       "accelerator types come in another order than before: expected the order "
                       "that they had, new ones between or after them");
  }
  return {};
}

}  // namespace

Result<State> with_fleet(const State& state, const ControlSetup& next) {
  const Result<FleetMap> map = fleet_map(*state.setup().topology, *next.topology);
  if (!map) return tl::unexpected(map.error());
  if (Status fits = check_fits(state, *map); !fits) return forward_error(fits);
  Encoder out;
  StateCodec::encode_changed(state, *map, next, out);
  Decoder decoder(out.bytes());
  decoder.read_as(kForm);
  State changed(next);
  StateCodec::code(decoder, changed);
  Parts parts;
  decoder(parts);
  if (const std::optional<DecodingFault> fault = decoder.finish()) {
    return environment_error(fmt::format("byte {}: {}", fault->offset, fault->what));
  }
  StateCodec::finish_change(changed, map->added().size());
  if (Status made = StateCodec::make_again(changed, parts); !made) return forward_error(made);
  return changed;
}

Status check_replay(const State& state, const Event& event) {
  const auto* set = std::get_if<FleetSet>(&event);
  if (set == nullptr) return {};
  const FleetSource& fleets = state.setup().fleets.source;
  if (!fleets) return environment_error("the log changes the fleet, which is fixed here");
  const Result<const ControlSetup*> next = fleets(set->yaml);
  if (!next) {
    return environment_error("the fleet that the log changes to cannot be built any more: " +
                             next.error().text());
  }
  const Result<State> changed = with_fleet(state, **next);
  if (changed) return {};
  return environment_error("the fleet that the log changes to does not fit any more: " +
                           changed.error().text());
}

Status restore(State& state, std::string_view bytes) {
  ORRERY_ASSERT(state.version() == 0, "a snapshot is restored into a new state");
  if (bytes.size() < sizeof(std::uint64_t)) return environment_error("the snapshot is cut short");
  const std::string_view fields = bytes.substr(0, bytes.size() - sizeof(std::uint64_t));
  const auto found = load_little_endian<std::uint64_t>(fields.data() + fields.size());
  // Earlier versions wrote a checksum of base/format/checksum.hpp.
  if (found != xxh3(fields) && found != checksum(fields, 0)) {
    return environment_error("the snapshot is damaged: its checksum is another");
  }
  Decoder decoder(fields);
  Head head;
  decoder(head);
  if (head.form < kFormOfAllJobs || head.form > kForm) {
    return environment_error(
        fmt::format("the snapshot is of form {}, expected {}", head.form, kForm));
  }
  const std::uint32_t form = std::exchange(head.form, kForm);
  std::string fleet;
  if (form > kFormOfOneFleet) decoder(fleet);
  if (Status taken = take_fleet(state, fleet); !taken) return taken;
  if (!(head == head_of(state.setup()))) {
    return environment_error("the snapshot is of another fleet");
  }
  decoder.read_as(form);
  StateCodec::code(decoder, state);
  Parts parts;
  decoder(parts);
  if (const std::optional<DecodingFault> fault = decoder.finish()) {
    return environment_error(
        fmt::format("the snapshot at byte {}: {}", fault->offset, fault->what));
  }
  if (form <= kFormOfOneSum) StateCodec::lay_sums_at_the_type(state);
  if (form <= kFormOfOneFleet) StateCodec::number_nodes(state);
  return StateCodec::make_again(state, parts);
}

}  // namespace orrery
