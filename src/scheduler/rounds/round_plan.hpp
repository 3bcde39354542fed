// scheduler/rounds/round_plan.hpp - the plan of a round: which jobs go on, which leave, and where
// the others get their turns.
//
// Belongs to one full pass, as a round begins. Devices of jobs that may go on count as free until
// the turns are known. The power of jobs that do not go on is available to others, as are their
// devices. Invariants:
// 1. Each job has at most one place, and places do not overlap.
// 2. While the plan is made, the pass's power is that of the planned round; then it is that of now.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/pass/start_search.hpp"
#include "scheduler/rounds/round_turns.hpp"

namespace orrery {

/// Free devices of a view, by type.
[[nodiscard]] std::vector<std::uint32_t> free_by_type(const FleetView& view);

class RoundPlan {
 public:
  /// `jobs` take turns, and must outlive the plan.
  RoundPlan(PassContext& pass, StartSearch& search, ThroughputShares& shares,
            std::span<const RoundJob> jobs);

  /// Plans the round and begins it. `first`: jobs that take no turns and found no room; they get
  /// devices of others at the end of their turns.
  void begin(std::span<const WaitingJob* const> first);

 private:
  /// A place for a job that is to start or to move.
  struct Place {
    const WaitingJob* job = nullptr;
    bool moves = false;  ///< the job runs, elsewhere
    PlannedStart start;
  };
  struct JobState {
    std::size_t turn = 0;  ///< index of the turn it was chosen for
    bool has_place = false;
    bool goes_on = false;  ///< it keeps the devices that it has
  };

  [[nodiscard]] const GangRequest& gang_of(const Turn& turn) const {
    return options_of(jobs_[turn.job])[turn.option].gang;
  }
  void open();
  void leave_devices(const RunningJob& job);
  void choose_turns();
  void go_on(std::uint32_t job);
  [[nodiscard]] bool may_go_on(std::uint32_t job) const;
  void take_place(Place place);
  void take_turn(const Turn& turn, PlannedStart start);
  bool place_turn(const Turn& turn);
  bool make_place(const Turn& turn, const Refusal& refusal);
  [[nodiscard]] std::vector<std::uint32_t> who_makes_place(const Turn& turn,
                                                           const Refusal& refusal) const;
  void place_rest();
  void end_turns();
  void begin_turns();
  [[nodiscard]] bool starts_in_full(const WaitingJob& job, PlannedStart& start) const;

  PassContext& pass_;
  const Situation& s_;
  const Policy& policy_;
  StartSearch& search_;
  ThroughputShares& shares_;
  std::span<const RoundJob> jobs_;
  FleetOverlay after_;  ///< the fleet once all jobs that do not go on have left
  std::vector<Turn> turns_;
  std::vector<JobState> states_;  ///< by job
  std::vector<Place> places_;
};

}  // namespace orrery
