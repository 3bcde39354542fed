// twin/traffic/contention.hpp - how jobs slow each other: shared links lengthen the steps of gangs,
// storage and the WAN lengthen loads, checkpoints and staging.
//
// One per world, made when the first job needs it. Takes a job's traffic and the bytes of its state
// from its training plan; a job without one neither causes nor suffers contention. Formulas:
// docs/model/contention.md. One thread. Cost: that of SharedLinks::update for what changed.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "control/state/state.hpp"
#include "twin/plan_book.hpp"
#include "twin/traffic/job_traffic.hpp"
#include "twin/traffic/max_min.hpp"
#include "twin/traffic/step_traffic.hpp"
#include "twin/world/storage_load.hpp"

namespace orrery {

enum class MoveKind : std::uint8_t {
  kStage,  ///< data to the job's site
  kLoad,   ///< the newest copy of its state from storage to its nodes
  kFetch,  ///< the newest copy of its state from the memory of its nodes
  kSave,   ///< a copy of its state to storage
};

/// Bytes of a job that have arrived.
struct Moved {
  JobId job;
  MoveKind kind = MoveKind::kStage;
};

/// How data that a job asks for gets to its site.
enum class Staging : std::uint8_t {
  kThere,      ///< the data are at the job's site, or were brought there before
  kMoving,     ///< the data are in transit, and share links and storage with other transfers
  kNoStorage,  ///< one of the sites has no storage, or no link joins them: nothing is shared
};

class Contention {
 public:
  /// The view's topology, the calibration and the book must outlive it.
  Contention(const FleetView& view, const Calibration& calibration, PlanBook& book);

  /// Whether contention can slow the job: it has a training plan, or data elsewhere.
  [[nodiscard]] static bool concerns(const RunningJob& job, const State& state, PlanBook& book);

  /// Adds the traffic of the job's gangs.
  void run(const RunningJob& job, const State& state);
  /// Replaces the traffic of the gangs if a step alone takes another time on the present links.
  /// Returns whether it did.
  [[nodiscard]] bool reprice(const RunningJob& job, const State& state);
  /// Ends the traffic of the job and its transfers.
  void leave(JobId job, Instant now);
  /// Time of a step of the job over its time without other jobs; at least 1.
  [[nodiscard]] double slowdown(JobId job) const;

  /// Whether copies of the job's state have bytes and a storage system to go to.
  [[nodiscard]] bool keeps_copies(const RunningJob& job, const State& state) const {
    return copy_of(job, state).value() > 0 && home(site_of(job)).has_value();
  }
  /// Begins to move the state (load, fetch or save). Returns false if there is nothing to move or
  /// no place for it.
  [[nodiscard]] bool move_state(MoveKind kind, const RunningJob& job, const State& state,
                                Instant now);
  /// How long a load takes without other jobs; none: there is nothing to load, or no system to load
  /// it from.
  [[nodiscard]] std::optional<Duration> time_to_load(const RunningJob& job,
                                                     const State& state) const;
  /// Begins to bring the data at that position in JobRequest::data.
  [[nodiscard]] Staging stage(const RunningJob& job, std::size_t data, Instant now);

  /// Must be called when the state of the link has changed.
  void link_changed(const FleetView& view, LinkId link) { traffic_.link_changed(view, link); }

  /// Makes all rates fair again. Returns the jobs whose slowdown changed, ascending; valid until
  /// the next call.
  std::span<const JobId> update(Instant now);

  /// When the next bytes arrive, as of the last update; max: nothing moves.
  [[nodiscard]] Instant next() const { return storage_.next_completion(); }
  /// Returns what has arrived at `now`. Precondition: not past next().
  [[nodiscard]] std::vector<Moved> advance(Instant now);

 private:
  struct Sending {
    JobId job;
    std::size_t gang = 0;
    StepTraffic traffic;
    double slowdown = 1;
  };
  /// Data of a job, by position, and the site a copy is at.
  using DataAt = std::tuple<JobId, std::size_t, std::uint32_t>;
  struct Moving {
    Moved what;
    std::optional<DataAt> data;  ///< the data being staged
  };

  /// The traffic of a gang in a step; none: it has no training plan.
  [[nodiscard]] std::optional<StepTraffic> traffic_of(const RunningJob& job, std::size_t gang,
                                                      const State& state) const;
  void send_no_more(JobId job);
  /// Size of a copy of the job's state, all gangs; 0: unknown.
  [[nodiscard]] Bytes copy_of(const RunningJob& job, const State& state) const;
  [[nodiscard]] std::uint32_t site_of(const RunningJob& job) const;
  /// The first storage system of a site that takes copies, shared systems before those in nodes.
  [[nodiscard]] std::optional<StorageId> home(std::uint32_t site) const;
  /// The transfer of the job's whole state; none: there is nothing to move, or no place for it.
  [[nodiscard]] std::optional<TransferRequest> request_of(MoveKind kind, const RunningJob& job,
                                                          const State& state) const;
  [[nodiscard]] bool move(const Moving& what, const TransferRequest& request, Instant now);

  PlanBook* book_;
  const Topology* topology_;
  SharedLinks links_;
  JobTraffic traffic_;
  StorageLoad storage_;
  std::map<FlowId, Sending> sending_;
  std::map<JobId, std::vector<FlowId>> flows_;
  std::map<TransferId, Moving> moving_;
  std::set<DataAt> brought_;
  std::vector<JobId> changed_;
};

}  // namespace orrery
