// scheduler/policy.hpp - how the scheduler decides: one set of rules, from which every named policy
// selects.
//
// Made by policy_named from a name with options ("fifo:blocking=true,node_fit=best") or read from a
// file (kind: Policy). A value. docs/scheduling.md describes the rules and the weights.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"
#include "scheduler/place/placer.hpp"

namespace orrery {

/// The order in which waiting jobs are considered.
enum class QueueOrder : std::uint8_t {
  kSubmitted,
  kPriority,          ///< priority, then submission
  kShortest,          ///< SJF: shortest estimated run time
  kRemaining,         ///< SRTF: shortest remaining estimated run time
  kRemainingService,  ///< SRSF: shortest remaining run time x devices
  kAttained,          ///< LAS: fewest device-seconds so far
  kAttainedQueues,    ///< Tiresias: by the queue of device-seconds so far, then submission
  kFair,    ///< tenants by share; inside a tenant Serve jobs, then by priority, then `inside`
  kMaxMin,  ///< Gavel: the job with the least of its share of the device types (round_turns.hpp)
  kFinishTime,      ///< Themis: largest finish-time fairness (round_turns.hpp)
  kGoodput,         ///< Sia: by the assignment with the most goodput (round_turns.hpp)
  kDeadlineShares,  ///< ElasticFlow: the least shares that keep deadlines (round_turns.hpp)
};

inline std::array<EnumWord<QueueOrder>, 12> enum_words(QueueOrder) {
  return {{{"submitted", QueueOrder::kSubmitted},
           {"priority", QueueOrder::kPriority},
           {"shortest", QueueOrder::kShortest},
           {"remaining", QueueOrder::kRemaining},
           {"remaining-service", QueueOrder::kRemainingService},
           {"attained", QueueOrder::kAttained},
           {"attained-queues", QueueOrder::kAttainedQueues},
           {"fair", QueueOrder::kFair},
           {"max-min", QueueOrder::kMaxMin},
           {"finish-time", QueueOrder::kFinishTime},
           {"goodput", QueueOrder::kGoodput},
           {"deadline-shares", QueueOrder::kDeadlineShares}}};
}

/// The order of the jobs of one tenant and one rank under `fair`.
enum class TenantOrder : std::uint8_t {
  kSubmitted,
  /// The fewest device-seconds left if the length is known, else the lowest class of device-seconds
  /// so far (Policy::attained_step); both shrink while a job waits (Policy::ageing).
  kService,
};

inline std::array<EnumWord<TenantOrder>, 2> enum_words(TenantOrder) {
  return {{{"submitted", TenantOrder::kSubmitted}, {"service", TenantOrder::kService}}};
}

/// What a job that cannot start does to the jobs behind it.
enum class Blocked : std::uint8_t {
  kStops,        ///< no job may pass it
  kSkipped,      ///< every job may pass it
  kReservesOne,  ///< EASY: the first gets a reservation that no job may delay
  kReserves,     ///< conservative: every job gets a reservation
};

inline std::array<EnumWord<Blocked>, 4> enum_words(Blocked) {
  return {{{"stops", Blocked::kStops},
           {"skipped", Blocked::kSkipped},
           {"reserves-one", Blocked::kReservesOne},
           {"reserves", Blocked::kReserves}}};
}

/// Which jobs may take devices from which.
enum class PreemptionRule : std::uint8_t {
  kNone,
  kByOrder,   ///< a job earlier in the order
  kEntitled,  ///< guarantees, then priorities: only what raises the potential
  kAnew,      ///< all jobs are placed anew, in the order, whenever something changes
  kRounds,    ///< a full pass begins a round; the jobs whose turn it is run until the next one
};

inline std::array<EnumWord<PreemptionRule>, 5> enum_words(PreemptionRule) {
  return {{{"none", PreemptionRule::kNone},
           {"by-order", PreemptionRule::kByOrder},
           {"entitled", PreemptionRule::kEntitled},
           {"anew", PreemptionRule::kAnew},
           {"rounds", PreemptionRule::kRounds}}};
}

/// Which of a job's possible starts is chosen.
enum class OptionChoice : std::uint8_t {
  kFirst,     ///< the first that fits
  kCheapest,  ///< by scheduler/price/price.hpp
};

inline std::array<EnumWord<OptionChoice>, 2> enum_words(OptionChoice) {
  return {{{"first", OptionChoice::kFirst}, {"cheapest", OptionChoice::kCheapest}}};
}

/// Whether guarantees and limits of tenants are enforced.
enum class Quotas : std::uint8_t { kIgnored, kHeld };

inline std::array<EnumWord<Quotas>, 2> enum_words(Quotas) {
  return {{{"ignored", Quotas::kIgnored}, {"held", Quotas::kHeld}}};
}

/// Weights of the parts of a price, in dollars a dollar unless stated otherwise.
struct PriceWeights {
  double hire = 1;            ///< cost of the devices while the job runs
  double energy = 1;          ///< electricity, where it is paid in addition to the hire
  double carbon_tonne = 100;  ///< dollars a tonne of CO2
  /// A job's time until it is done, x the hire of its devices on demand; by goal below.
  double time = 4;
  double time_cost_goal = 0.025;  ///< weight of time for jobs whose goal is cost or energy
  double fragmentation = 1;       ///< devices left stranded by a placement, x hire x the horizon
  double lost_work = 1;           ///< lost work of victims, x hire
  double data = 1;                ///< copying to a cold site: egress and time
  double failure = 1;             ///< expected lost work and restarts
  double lateness = 5;            ///< seconds beyond the deadline, x hire
  double headroom = 0.05;         ///< share of the tightest power limit that it takes
};

template <class Visitor, SameStruct<PriceWeights> Self>
void describe(Visitor& visitor, Self& w) {
  visitor.optional("hire", w.hire);
  visitor.optional("energy", w.energy);
  visitor.optional("carbon_tonne", w.carbon_tonne);
  visitor.optional("time", w.time);
  visitor.optional("time_cost_goal", w.time_cost_goal);
  visitor.optional("fragmentation", w.fragmentation);
  visitor.optional("lost_work", w.lost_work);
  visitor.optional("data", w.data);
  visitor.optional("failure", w.failure);
  visitor.optional("lateness", w.lateness);
  visitor.optional("headroom", w.headroom);
}

struct Policy {
  std::string api_version = "orrery/v1";
  std::string kind = "Policy";
  std::string name = "fifo";
  /// Version of the built-in policy that it starts from, with the rules of that version; 0: the
  /// newest.
  std::uint32_t version = 0;
  QueueOrder order = QueueOrder::kSubmitted;
  Blocked blocked = Blocked::kStops;
  NodeFit node_fit = NodeFit::kBest;
  OptionChoice choice = OptionChoice::kFirst;
  PreemptionRule preemption = PreemptionRule::kNone;
  Quotas quotas = Quotas::kIgnored;
  TenantOrder inside = TenantOrder::kSubmitted;
  /// Waiting time in which `inside: service` halves what a job counts for; 0: never.
  Seconds ageing{0};
  /// `inside: service` counts a job of known length for half once it has waited for max_stretch /
  /// 10 times its run, then for less and less, and for nothing once its waiting time and its run
  /// together are max_stretch times its run. Before that, where jobs of its tenant can make room,
  /// it keeps a reservation only if devices are empty for a short part of its run, or after
  /// `ageing`. 0: never.
  double max_stretch = 0;
  /// `inside: service` rounds the device-seconds so far of a job of unknown length up to the end of
  /// their class: one device-hour, then attained_step times the previous end; 1: no rounding.
  double attained_step = 1;
  /// A job takes devices from jobs of its rank that have at least yield_ratio times its service and
  /// belong to its tenant or to one that borrows more; 0: never.
  double yield_ratio = 0;
  Seconds min_run{600};             ///< run time before a job is preempted or moved again
  Seconds plan_wait{2};             ///< maximum wait for a plan, before a job is placed without one
  Seconds horizon{3600};            ///< time over which stranded devices cost
  Seconds patience{6 * 3600};       ///< maximum time that a job waits for better hardware by choice
  Seconds unknown_run{3600};        ///< assumed run of a job without an estimate
  Seconds pass_interval{0};         ///< least time between passes, while any job runs
  Seconds full_interval{600};       ///< time between full passes, a round; 0: every pass is full
  std::optional<Watts> start_ramp;  ///< maximum rise of the draw in a second by starts
  double estimate_sigma = 0.5;      ///< sigma of ln(run time / estimate)
  double oversubscription = 1;      ///< of a device, by preemptible shares
  std::uint32_t offers = 3;         ///< placements priced for each option
  std::uint32_t budget = 100'000;   ///< candidates an incremental pass prices
  std::uint32_t reserve_devices = 16;    ///< gangs of this size or larger get a reservation
  std::uint32_t reserve_jobs = 100'000;  ///< only so many jobs get one; the others may be passed
  /// kAttainedQueues: device-seconds at which a job falls to the next queue.
  std::vector<double> queue_limits{3600.0 * 8};
  PriceWeights weights;
  SourcePosition where;
};

template <class Visitor, SameStruct<Policy> Self>
void describe(Visitor& visitor, Self& p) {
  visitor.required("apiVersion", p.api_version);
  visitor.required("kind", p.kind);
  visitor.required("name", p.name);
  visitor.optional("version", p.version);
  visitor.optional("order", p.order);
  visitor.optional("blocked", p.blocked);
  visitor.optional("node_fit", p.node_fit);
  visitor.optional("choice", p.choice);
  visitor.optional("preemption", p.preemption);
  visitor.optional("quotas", p.quotas);
  visitor.optional("inside", p.inside);
  visitor.optional("ageing", p.ageing);
  visitor.optional("max_stretch", p.max_stretch);
  visitor.optional("attained_step", p.attained_step);
  visitor.optional("yield_ratio", p.yield_ratio);
  visitor.optional("min_run", p.min_run);
  visitor.optional("plan_wait", p.plan_wait);
  visitor.optional("horizon", p.horizon);
  visitor.optional("patience", p.patience);
  visitor.optional("unknown_run", p.unknown_run);
  visitor.optional("pass_interval", p.pass_interval);
  visitor.optional("full_interval", p.full_interval);
  visitor.optional("start_ramp", p.start_ramp);
  visitor.optional("estimate_sigma", p.estimate_sigma);
  visitor.optional("oversubscription", p.oversubscription);
  visitor.optional("offers", p.offers);
  visitor.optional("budget", p.budget);
  visitor.optional("reserve_devices", p.reserve_devices);
  visitor.optional("reserve_jobs", p.reserve_jobs);
  visitor.optional("queue_limits", p.queue_limits);
  visitor.optional("weights", p.weights);
}

/// Names of the built-in policies: fifo, sjf, srtf, srsf, las, tiresias, easy, conservative,
/// capacity, hardware-aware, gavel, themis, sia, elasticflow.
[[nodiscard]] std::vector<std::string_view> policy_names();

/// "NAME[:key=value,..]", where a key is one of a policy file's, or `blocking` (true: blocked is
/// `stops`, false: `skipped`). `unstated` is the version of the built-in policy if the text states
/// none, as read from a record; 0: the newest. Errors: an unknown name, key or word, with the
/// nearest known one.
[[nodiscard]] Result<Policy> policy_named(std::string_view text, std::uint32_t unstated = 0);

/// Reads a policy file; what it does not state is as in the built-in policy of its `name`, else as
/// in hardware-aware. Errors with file:line:column.
[[nodiscard]] Result<Policy> read_policy(const Document& document, std::uint32_t unstated = 0);

}  // namespace orrery
