// twin/contention.hpp - what jobs take of each other: links that gangs share make their steps
// longer, storage and the WAN make loads, checkpoints and staging longer.
//
// One per world, made when the first job needs it. Knows a job's traffic and the bytes of its state
// from its training plan; a job without one neither takes nor loses anything. Formulas:
// docs/model/contention.md. One thread. Cost: that of SharedLinks::update for what changed.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "control/state.hpp"
#include "twin/job_traffic.hpp"
#include "twin/max_min.hpp"
#include "twin/plan_book.hpp"
#include "twin/step_traffic.hpp"
#include "twin/storage_load.hpp"

namespace orrery {

enum class MoveKind : std::uint8_t {
  kStage,  ///< data to the job's site
  kLoad,   ///< the newest copy of its state from storage to its nodes
  kFetch,  ///< the same from the memory of its nodes
  kSave,   ///< a copy of its state to storage
};

/// Bytes of a job that have arrived.
struct Moved {
  JobId job;
  MoveKind kind = MoveKind::kStage;
};

/// What becomes of data that a job asks for.
enum class Staging : std::uint8_t {
  kThere,      ///< they are at the job's site, or were brought there before
  kMoving,     ///< they are on their way, and share links and storage with others
  kNoStorage,  ///< one of the sites has no storage, or no link joins them: nothing is shared
};

class Contention {
 public:
  /// The view's topology, the calibration and the book must outlive it.
  Contention(const FleetView& view, const Calibration& calibration, PlanBook& book);

  /// Whether a job has anything that others may hinder: a training plan, or data elsewhere.
  [[nodiscard]] static bool concerns(const RunningJob& job, const State& state, PlanBook& book);

  /// Its gangs begin to send.
  void run(const RunningJob& job, const State& state);
  /// A step of its gangs alone takes another time on the links as they are now: they send anew.
  [[nodiscard]] bool reprice(const RunningJob& job, const State& state);
  /// They send no more, and nothing of it moves.
  void leave(JobId job, Instant now);
  /// Of a step of the job over one with nobody around; at least 1.
  [[nodiscard]] double slowdown(JobId job) const;

  /// Whether copies of its state have bytes and somewhere to go.
  [[nodiscard]] bool keeps_copies(const RunningJob& job, const State& state) const {
    return copy_of(job, state).value() > 0 && home(site_of(job)).has_value();
  }
  /// Begins to move (load, fetch or save); false: there is nothing to move, or nowhere.
  [[nodiscard]] bool move_state(MoveKind kind, const RunningJob& job, const State& state,
                                Instant now);
  /// How long a load takes alone; none: there is nothing to load, or nowhere.
  [[nodiscard]] std::optional<Duration> time_to_load(const RunningJob& job,
                                                     const State& state) const;
  /// Begins to bring the data at that position in JobRequest::data.
  [[nodiscard]] Staging stage(const RunningJob& job, std::size_t data, Instant now);

  /// The link is in another state than when this was last told.
  void link_changed(const FleetView& view, LinkId link) { traffic_.link_changed(view, link); }

  /// Makes all rates fair again; the jobs whose slowdown changed, ascending. Valid until the next.
  std::span<const JobId> update(Instant now);

  /// When the next bytes have arrived, as of the last update; max: none move.
  [[nodiscard]] Instant next() const { return storage_.next_completion(); }
  /// What has arrived at `now`. Precondition: not past next().
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
    std::optional<DataAt> data;  ///< that is staged
  };

  /// The traffic of a gang in a step; none: it has no training plan.
  [[nodiscard]] std::optional<StepTraffic> traffic_of(const RunningJob& job, std::size_t gang,
                                                      const State& state) const;
  void send_no_more(JobId job);
  /// Of the job's state, all gangs; 0: nobody knows.
  [[nodiscard]] Bytes copy_of(const RunningJob& job, const State& state) const;
  [[nodiscard]] std::uint32_t site_of(const RunningJob& job) const;
  /// Where a site keeps copies: its first system that takes them, shared ones before those in
  /// nodes.
  [[nodiscard]] std::optional<StorageId> home(std::uint32_t site) const;
  /// Of its state, whole; none: there is nothing to move, or nowhere.
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
