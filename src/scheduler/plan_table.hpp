// scheduler/plan_table.hpp - the plans that are known: for some work on so many accelerators of a
// type the best ways to do it, or why there is none.
//
// Filled with what plan_work (scheduler/plan_work.hpp) finds, beside the scheduler's passes; a pass
// never searches, it only reprices what stands here on the devices it has in mind. One thread.
// Invariant: entries have an order, by work, type and devices; what was put stays until it is put
// again. Cost: find is O(log entries of the work), reprice about a microsecond.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "base/rejection.hpp"
#include "fleet/ids.hpp"
#include "perf/training_step.hpp"
#include "planner/economics.hpp"
#include "planner/serving_space.hpp"
#include "scheduler/work.hpp"

namespace orrery {

struct PlanKey {
  WorkId work;
  FleetTypeId type;
  std::uint32_t devices = 1;

  friend auto operator<=>(const PlanKey&, const PlanKey&) = default;
};

struct PlannedTraining {
  ParallelPlan plan;
  std::shared_ptr<const TrainingModel> model;  ///< of the work on the canonical piece
  /// Part of a NIC's bandwidth that the canonical piece's network leaves it.
  double scale_out_quality = 1;
  Bytes checkpoint;                        ///< of one copy of the state
  std::optional<Reliability> reliability;  ///< stall of a checkpoint, restart, failures; if known
};

struct PlannedService {
  ServingPlan layout;  ///< of an instance, and how many of them
  ServingNumbers numbers;
  double requests_max = 0;  ///< a second, of all instances, within the limits on latency
  Seconds ttft;
  Seconds tpot;
};

/// One way to do the work, with its figures on the canonical piece (planner/fleet_machines.hpp).
struct PlannedWork {
  std::uint32_t devices = 1;         ///< that it takes: the key's; of a service maybe fewer
  double step_seconds = 0;           ///< of a service: of one token of a sequence
  std::optional<DevicePower> power;  ///< of one device with its share of the node, as shipped
  double clock_bound = 1;            ///< part of the time that stretches with the clock
  /// Of one device with its electricity, where the prices are known.
  std::optional<DollarsPerSecond> price;
  std::variant<PlannedTraining, PlannedService> how;

  [[nodiscard]] const PlannedTraining* training() const { return std::get_if<0>(&how); }
  [[nodiscard]] const PlannedService* service() const { return std::get_if<1>(&how); }
};

/// Plans, best first, at least one; or why there is none.
using PlanEntry = tl::expected<std::vector<PlannedWork>, Rejection>;

class PlanTable {
 public:
  /// nullptr: nobody has planned that yet. Valid until something is put.
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
  double ratio = 1;  ///< over the canonical piece's
};

/// A step on real devices. None: it cannot run there, since nothing joins the nodes, or an instance
/// of a service would leave its scale-up domain. That a training plan's ranks fit is for
/// check_ranks (fleet/rank_map.hpp) to say. No allocation.
[[nodiscard]] std::optional<Repriced> reprice(const PlannedWork& work, const Placement& placement);

}  // namespace orrery
