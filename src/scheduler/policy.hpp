// scheduler/policy.hpp - how the scheduler decides: one set of rules, of which every named policy
// is a choice.
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
#include "base/field_reader.hpp"
#include "base/quantity.hpp"
#include "scheduler/placer.hpp"

namespace orrery {

/// Who goes first.
enum class QueueOrder : std::uint8_t {
  kSubmitted,
  kPriority,          ///< then submitted
  kShortest,          ///< SJF: estimated run time
  kRemaining,         ///< SRTF: estimated run time that is left
  kRemainingService,  ///< SRSF: times devices
  kAttained,          ///< LAS: fewest device-seconds had so far
  kAttainedQueues,    ///< Tiresias: by the queue of device-seconds had, then submitted
  kFair,              ///< tenants by share; inside one Serve first, by priority, then `inside`
  kMaxMin,            ///< Gavel: least of its share of unlike devices had (round_turns.hpp)
  kFinishTime,        ///< Themis: largest finish-time fairness (round_turns.hpp)
  kGoodput,           ///< Sia: by the assignment of most goodput (round_turns.hpp)
  kDeadlineShares,    ///< ElasticFlow: least shares that keep deadlines (round_turns.hpp)
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

/// Of the jobs of one tenant and one rank, who goes first under `fair`.
enum class TenantOrder : std::uint8_t {
  kSubmitted,
  /// The fewest device-seconds left where the length is known, else the lowest class of those had
  /// (Policy::attained_step); either shrinks while a job waits (Policy::ageing).
  kService,
};

inline std::array<EnumWord<TenantOrder>, 2> enum_words(TenantOrder) {
  return {{{"submitted", TenantOrder::kSubmitted}, {"service", TenantOrder::kService}}};
}

/// What a job that cannot start does to those behind it.
enum class Blocked : std::uint8_t {
  kStops,        ///< nobody passes it
  kSkipped,      ///< everybody may
  kReservesOne,  ///< EASY: the first gets a slot that nobody may delay
  kReserves,     ///< conservative: everybody gets one
};

inline std::array<EnumWord<Blocked>, 4> enum_words(Blocked) {
  return {{{"stops", Blocked::kStops},
           {"skipped", Blocked::kSkipped},
           {"reserves-one", Blocked::kReservesOne},
           {"reserves", Blocked::kReserves}}};
}

/// Who may take devices from whom.
enum class PreemptionRule : std::uint8_t {
  kNone,
  kByOrder,   ///< whoever comes first in the order
  kEntitled,  ///< guarantees, then priorities: only what raises the potential
  kAnew,      ///< everybody is placed anew, in the order, whenever something changes
  kRounds,    ///< a full pass begins a round; the jobs whose turn it is run until the next
};

inline std::array<EnumWord<PreemptionRule>, 5> enum_words(PreemptionRule) {
  return {{{"none", PreemptionRule::kNone},
           {"by-order", PreemptionRule::kByOrder},
           {"entitled", PreemptionRule::kEntitled},
           {"anew", PreemptionRule::kAnew},
           {"rounds", PreemptionRule::kRounds}}};
}

/// Which of the ways a job could start is taken.
enum class OptionChoice : std::uint8_t {
  kFirst,     ///< the first that fits
  kCheapest,  ///< by scheduler/price.hpp
};

inline std::array<EnumWord<OptionChoice>, 2> enum_words(OptionChoice) {
  return {{{"first", OptionChoice::kFirst}, {"cheapest", OptionChoice::kCheapest}}};
}

/// Whether guarantees and limits of tenants hold.
enum class Quotas : std::uint8_t { kIgnored, kHeld };

inline std::array<EnumWord<Quotas>, 2> enum_words(Quotas) {
  return {{{"ignored", Quotas::kIgnored}, {"held", Quotas::kHeld}}};
}

/// What the parts of a price weigh, in dollars a dollar unless said otherwise.
struct PriceWeights {
  double hire = 1;            ///< what the devices cost while the job runs
  double energy = 1;          ///< electricity, where it is paid beside the hire
  double carbon_tonne = 100;  ///< dollars a tonne of CO2
  /// A job's time until it is done, x what its devices cost to hire on demand; by goal below.
  double time = 4;
  double time_cost_goal = 0.025;  ///< the same for jobs whose goal is cost or energy
  double fragmentation = 1;       ///< devices a placement leaves stranded, x hire x the horizon
  double lost_work = 1;           ///< of victims, x hire
  double data = 1;                ///< copying to a cold site: egress and the time it takes
  double failure = 1;             ///< expected lost work and restarts
  double lateness = 5;            ///< seconds beyond the deadline, x hire
  double headroom = 0.05;         ///< of the share of the tightest power limit that it takes
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
  /// Of the built-in policy that it begins with: its rules of that time; 0: its newest ones.
  std::uint32_t version = 0;
  QueueOrder order = QueueOrder::kSubmitted;
  Blocked blocked = Blocked::kStops;
  NodeFit node_fit = NodeFit::kBest;
  OptionChoice choice = OptionChoice::kFirst;
  PreemptionRule preemption = PreemptionRule::kNone;
  Quotas quotas = Quotas::kIgnored;
  TenantOrder inside = TenantOrder::kSubmitted;
  /// Time of waiting in which `inside: service` halves what a job counts for; 0: never.
  Seconds ageing{0};
  /// `inside: service` counts a job of known length for half once it has waited for a tenth of so
  /// many times its run, then for ever less, and for nothing once the time it waited and its run
  /// are so many times its run; before, where jobs of its tenant can make room, it keeps a slot
  /// only if devices are empty for a short part of its run, or after `ageing`. 0: never.
  double max_stretch = 0;
  /// `inside: service` counts the device-seconds that a job of unknown length has had as the end of
  /// their class: one device-hour, then so many times the end before; 1: as they are.
  double attained_step = 1;
  /// A job takes devices from jobs of its rank that have at least so many times its service, of its
  /// tenant or of one that borrows more; 0: never.
  double yield_ratio = 0;
  Seconds min_run{600};                  ///< no second preemption or move within it
  Seconds plan_wait{2};                  ///< for a plan, before a job is placed without one
  Seconds horizon{3600};                 ///< over which stranded devices cost
  Seconds patience{6 * 3600};            ///< for which a job may wait for better hardware by choice
  Seconds unknown_run{3600};             ///< assumed of a job without an estimate
  Seconds pass_interval{0};              ///< at least between passes, while anything runs
  Seconds full_interval{600};            ///< between full passes, a round; 0: every pass is one
  std::optional<Watts> start_ramp;       ///< by which starts may raise the draw in a second
  double estimate_sigma = 0.5;           ///< of the logarithm of a run time over its estimate
  double oversubscription = 1;           ///< of a device, by preemptible shares
  std::uint32_t offers = 3;              ///< placements priced an option
  std::uint32_t budget = 100'000;        ///< candidates an incremental pass prices
  std::uint32_t reserve_devices = 16;    ///< gangs from this size on get a reservation
  std::uint32_t reserve_jobs = 100'000;  ///< the first so many of them; others may be passed
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
/// `stops`, false: `skipped`). `unstated`: the version of the built-in policy where the text states
/// none, as a record knows it; 0: the newest. Errors: an unknown name, key or word, with the
/// nearest.
[[nodiscard]] Result<Policy> policy_named(std::string_view text, std::uint32_t unstated = 0);

/// A policy file; what it does not say is as in the built-in policy of its `name`, else as in
/// hardware-aware. Errors with file:line:column.
[[nodiscard]] Result<Policy> read_policy(const Document& document, std::uint32_t unstated = 0);

}  // namespace orrery
