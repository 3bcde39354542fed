// scheduler/plans/plan_table.hpp - the known plans: for some work on so many accelerators of a type
// the best ways to do it, or why there is none.
//
// Filled with what plan_work (scheduler/plans/plan_work.hpp) finds, outside the scheduler's passes.
// A pass never searches; it only reprices the entries on the devices it considers. One thread.
// Invariant: entries are ordered by work, type and devices; an entry stays until it is replaced.
// Cost: find is O(log entries of the work), reprice about a microsecond.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "base/rejection.hpp"
#include "fleet/ids.hpp"
#include "perf/training/training_step.hpp"
#include "planner/economics.hpp"
#include "planner/serving/serving_space.hpp"
#include "scheduler/plans/work.hpp"

namespace orrery {

struct PlanKey {
  WorkId work;
  FleetTypeId type;
  std::uint32_t devices = 1;

  friend auto operator<=>(const PlanKey&, const PlanKey&) = default;
};

struct PlannedTraining {
  ParallelPlan plan;
  std::shared_ptr<const TrainingModel> model;  ///< model of the work on the canonical piece
  /// Fraction of a NIC's bandwidth that the network of the canonical piece leaves it.
  double scale_out_quality = 1;
  Bytes checkpoint;                        ///< size of one copy of the state
  std::optional<Reliability> reliability;  ///< checkpoint stall, restart, failures; if known
};

struct PlannedService {
  ServingPlan layout;  ///< layout of an instance, and the number of instances
  ServingNumbers numbers;
  double requests_max = 0;  ///< requests a second of all instances within the latency limits
  Seconds ttft;
  Seconds tpot;
};

/// One way to do the work, with its figures on the canonical piece (planner/fleet_machines.hpp).
struct PlannedWork {
  std::uint32_t devices = 1;         ///< devices it takes: the key's; a service may take fewer
  double step_seconds = 0;           ///< seconds a step; for a service: a token of a sequence
  std::optional<DevicePower> power;  ///< power of one device with its share of the node, as shipped
  double clock_bound = 1;            ///< fraction of the time that stretches with the clock
  /// Price of one device with its electricity, where prices are known.
  std::optional<DollarsPerSecond> price;
  std::variant<PlannedTraining, PlannedService> how;

  [[nodiscard]] const PlannedTraining* training() const { return std::get_if<0>(&how); }
  [[nodiscard]] const PlannedService* service() const { return std::get_if<1>(&how); }
};

/// Plans, best first, at least one; or why there is none.
using PlanEntry = tl::expected<std::vector<PlannedWork>, Rejection>;

class PlanTable {
 public:
  /// Returns nullptr if the key has not been planned yet. Valid until the next put().
  [[nodiscard]] const PlanEntry* find(const PlanKey& key) const;

  /// Adds an entry, or replaces it. O(entries of the work).
  void put(const PlanKey& key, PlanEntry entry);

  [[nodiscard]] std::size_t size() const { return size_; }

  /// Calls visit(key, entry) in ascending order of the keys.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const std::vector<Slot>& slots : by_work_) {
      for (const Slot& slot : slots) visit(slot.key, slot.entry);
    }
  }

 private:
  struct Slot {
    PlanKey key;
    PlanEntry entry;
  };

  std::vector<std::vector<Slot>> by_work_;  ///< each ascending by key
  std::size_t size_ = 0;
};

struct Repriced {
  double step_seconds = 0;
  double ratio = 1;  ///< step time over that on the canonical piece
};

/// Reprices a step for real devices. No value if the work cannot run there because nothing connects
/// the nodes, or because an instance of a service would leave its scale-up domain. Whether the
/// ranks of a training plan fit is checked by check_ranks (fleet/rank_map.hpp). No allocation.
[[nodiscard]] std::optional<Repriced> reprice(const PlannedWork& work, const Placement& placement);

}  // namespace orrery
