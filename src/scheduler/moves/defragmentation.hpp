// scheduler/moves/defragmentation.hpp - makes room for blocked jobs for which enough devices are
// free, but not together (scheduler/moves/defragment.hpp).
//
// Belongs to one full pass, after the queue. Jobs that may be preempted or write checkpoints may be
// moved, where starting the blocked job sooner is worth more than the moves cost.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/moves/defragment.hpp"
#include "scheduler/pass/start_search.hpp"

namespace orrery {

class Defragmentation {
 public:
  Defragmentation(PassContext& pass, StartSearch& search);

  void make_room();

 private:
  /// Seconds by which a blocked job starts sooner if room is made for it: until its reservation, if
  /// it has one, and at most the policy's horizon.
  [[nodiscard]] double sooner(const WaitingJob& job) const;
  void carry_out(RoomPlan& plan, std::span<const std::uint32_t> who, const WaitingJob& job);

  PassContext& pass_;
  const Situation& s_;
  const Policy& policy_;
  StartSearch& search_;
};

}  // namespace orrery
