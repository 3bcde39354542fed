// control/jobs/node_replacement.hpp - how jobs continue after they lost nodes.
//
// 1. A running job of one elastic gang continues with a replacement for the lost node, or smaller.
// 2. Another job restarts where it was, with other nodes in place of the missing ones. If there are
//    none the job waits, and is tried again whenever nodes become free, unless a pass starts it
//    elsewhere.
// 3. Spares become ordinary nodes before a job is placed on them. The nodes that they replace
//    become spares once these are repaired or free.
// The scheduler chooses (scheduler/replace/replacement.hpp); this carries out what it chose.
#pragma once

#include <span>
#include <vector>

#include "control/jobs/job_starts.hpp"
#include "control/jobs/last_places.hpp"
#include "control/recorder.hpp"

namespace orrery {

struct SpareTaken;

class NodeReplacement {
 public:
  NodeReplacement(Recorder& recorder, LastPlaces& places, JobStarts& starts)
      : recorder_(recorder), state_(recorder.state()), places_(places), starts_(starts) {}

  /// Continues a running job without its lost node, in a new epoch; false: it cannot.
  [[nodiscard]] bool continue_without(JobId id, NodeId node);

  /// Remembers where a job runs that stops because of the infrastructure.
  void remember(JobId id) { places_.remember(id, state_.running(id).gangs); }
  /// Forgets the last place of a job that ended.
  void forget(JobId id) { places_.forget(id); }
  /// Recalls the last place of a job whose request has changed.
  void recall(const Job& job);

  /// Restarts a job at its last place at once, if it has one and can.
  void restart(JobId id) { restart_at_its_place(id, Restart::kAtOnce); }
  /// Restarts jobs that found no replacement for a lost node, by priority: they may take spares,
  /// and repaired nodes before a pass gives these to other jobs.
  void restart_waiting();

 private:
  /// How a job restarts in place: after a wait, what the nodes held in memory is gone.
  enum class Restart { kAtOnce, kAfterWait };
  void restart_at_its_place(JobId id, Restart restart);
  [[nodiscard]] bool can_resize_running(JobId id) const;
  [[nodiscard]] bool replace_part(JobId id, NodeId node);
  [[nodiscard]] bool shrink_away(JobId id, NodeId node);
  [[nodiscard]] std::vector<NodeId> ready_spares(JobId job) const;
  void take_spares(std::span<const SpareTaken> spares);
  void return_spares(std::span<const SpareTaken> spares);

  Recorder& recorder_;
  const State& state_;
  LastPlaces& places_;
  JobStarts& starts_;
};

}  // namespace orrery
