// scheduler/forecast/waiting_queue.hpp - the waiting jobs in the order of a policy, kept from pass
// to pass.
//
// Belongs to a scheduler's memory. What a pass needs of every waiting job is read from the job's
// request once, when the job arrives, and is stored here in the order in which the pass goes
// through it.
// Invariant: after update() the order is that of in_order(), whatever was kept. A request changes
// only with Changes::plans.
// Cost of an update: O(waiting) sequential steps, and a sort of the jobs that arrived or changed
// places.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "scheduler/plans/class_table.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {

/// A waiting job, as a pass sees it. 104 bytes.
struct QueuedJob {
  static constexpr std::uint32_t kNone = 0xffffffff;

  OrderKey key;
  double service = 0;           ///< service_of
  Duration ran;                 ///< ran_for
  std::optional<Duration> run;  ///< of the whole job, if its length is known
  std::uint32_t at = 0;         ///< position among the situation's waiting jobs
  TenantId tenant;
  ClassId class_id;         ///< invalid: none
  ClassId placement_class;  ///< jobs of one are placed alike; invalid where there is no class_id
  std::uint32_t asker = 0;  ///< the same for jobs of one tenant and rank_of
  std::uint32_t group =
      0;              ///< the same for jobs of one tenant and placement class; kNone without one
  bool ages = false;  ///< the second figure of its key is its aged service
  bool serves = false;
  bool planned = false;  ///< an option has a plan, so the worth of a place depends on its links
  bool dated = false;    ///< it has a deadline
};

class WaitingQueue {
 public:
  void update(const Situation& situation, const Policy& policy);

  /// The first job to consider comes first. Valid until the next update.
  [[nodiscard]] std::span<const QueuedJob> order() const {
    return passed_.empty() ? order_ : passed_;
  }
  /// Places in order(), by position among the situation's waiting jobs.
  [[nodiscard]] std::vector<std::uint32_t> places() const;
  /// Askers and groups have numbers below these counts.
  [[nodiscard]] std::size_t askers() const { return askers_.size(); }
  [[nodiscard]] std::size_t groups() const { return groups_.size(); }

  void forget();

 private:
  /// What keys depend on besides the job and the time.
  struct Rules {
    QueueOrder order{};
    TenantOrder inside{};
    double ageing = 0;
    double unknown_run = 0;
    double attained_step = 0;
    double max_stretch = 0;
    std::vector<double> queue_limits;
    std::uint64_t plans = 0;  ///< Changes::plans

    friend bool operator==(const Rules&, const Rules&) = default;
  };

  void match(std::span<const WaitingJob> waiting);
  void reorder(const Situation& situation, const Policy& policy);
  void join_loose();
  void let_dated_pass(const Situation& situation, const Policy& policy);
  [[nodiscard]] QueuedJob queued(std::uint32_t at, const Situation& situation,
                                 const Policy& policy);

  Rules rules_;
  std::vector<WaitingJob> waiting_;  ///< waiting jobs of the last update
  std::vector<QueuedJob> order_;     ///< by key
  std::vector<QueuedJob> passed_;    ///< empty: no deadline changes the order
  std::vector<std::uint32_t>
      moved_to_;  ///< by position in waiting_: position in the new list, or kNone
  std::vector<std::uint32_t> fresh_;         ///< positions of jobs that arrived
  std::vector<QueuedJob> loose_;             ///< jobs whose place has to be found
  ClassTable placement_classes_;             ///< with ids of its own
  std::vector<ClassId> placement_class_of_;  ///< by class_id; invalid: not determined yet
  std::map<std::pair<TenantId, std::int32_t>, std::uint32_t> askers_;
  std::map<std::pair<TenantId, ClassId>, std::uint32_t> groups_;
};

}  // namespace orrery
