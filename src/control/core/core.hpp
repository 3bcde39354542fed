// control/core/core.hpp - the one deterministic machine that runs jobs: inputs in, events and
// actions out.
//
// Used by the daemon with a real clock and a durable log, by the twin with a virtual clock and log.
// handle() decides, applies the decisions at once, and returns them; the host makes the events
// durable, then carries out the actions and sends the answer. Two cores with the same setup and
// inputs produce the same events. Whatever is not in State (requested plans, timers) follows from
// it and from the inputs.
// The core hands each input to the class whose idea it is (jobs/, nodes/, passes/); they share a
// Recorder. Inputs that belong to none of them, or to several, it handles itself.
// One thread. Cost: that of the events, and of a pass on a Tick when something changed.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "control/core/core_timers.hpp"
#include "control/input.hpp"
#include "control/jobs/job_life.hpp"
#include "control/jobs/job_starts.hpp"
#include "control/jobs/last_places.hpp"
#include "control/jobs/node_replacement.hpp"
#include "control/jobs/plan_searches.hpp"
#include "control/nodes/claims.hpp"
#include "control/nodes/emptying_nodes.hpp"
#include "control/nodes/node_condition.hpp"
#include "control/nodes/node_service.hpp"
#include "control/passes/full_passes.hpp"
#include "control/passes/passes.hpp"
#include "control/recorder.hpp"
#include "control/services/service_updates.hpp"

namespace orrery {

class Core {
 public:
  explicit Core(const ControlSetup& setup);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /// Returns what follows from an input; valid until the next one. Precondition: `input.at` is not
  /// before that of the previous input.
  const Outcome& handle(const Input& input);

  /// Loads a snapshot (control/state/snapshot.hpp) into a new core. After an error the core is
  /// unusable. Events of the log after the snapshot may follow; then call resume().
  [[nodiscard]] Status restore(std::string_view snapshot);
  /// Applies an event of a log, in a core that has handled no input yet. After the last event call
  /// resume().
  void replay(Instant at, const Event& event) { recorder_.replay(at, event); }
  void resume();

  [[nodiscard]] const State& state() const { return recorder_.state(); }
  /// Returns the state as a full pass beside the core needs it.
  [[nodiscard]] std::unique_ptr<const HeldSituation> hold(Instant now);

  /// When the core needs a Tick even if nothing else happens; none: never.
  [[nodiscard]] Instant wake() const;

  using PassCounts = orrery::PassCounts;
  [[nodiscard]] const PassCounts& passes() const { return passes_.decisions().counts(); }
  /// Whether a job waits by choice until a certain time, according to the core's own last pass.
  [[nodiscard]] bool waits_by_choice() const { return passes_.waits_by_choice(); }
  /// Why each waiting job still waits, according to the last pass.
  [[nodiscard]] std::span<const StillWaits> still_waiting() const {
    return passes_.decisions().last().waiting;
  }
  /// The decisions of the last pass, with the prices and gains that events do not keep.
  [[nodiscard]] std::span<const Decision> decisions() const {
    return passes_.decisions().last().decisions;
  }

 private:
  /// Hands an input to the class that handles inputs of its kind.
  template <class Each>
  void dispatch(const Each& each);

  void on(const SetPowerCap& command);
  void on(const SetTenants& command);
  void on(const SetPolicy& command);
  void on(const SetFleet& command);
  void on(const ResolveJob& command);
  void on(const ArchiveJobs& command);
  void on(const UpdateService& command) { update_service({recorder_, jobs_}, command); }
  void on(const CanaryVerdict& verdict) { judge_canary({recorder_, jobs_}, verdict); }
  void on(const ScaleOrder& order) { scale_service({recorder_, jobs_}, order); }
  void on(const SupplyObserved& seen);
  void on(const Tick& tick);

  void take_up_fleet();
  void fire_timers();

  Recorder recorder_;
  CoreTimers timers_;
  PlanSearches plans_;
  EmptyingNodes emptying_;
  Claims claims_;
  LastPlaces places_;
  JobStarts starts_;
  NodeReplacement replacement_;
  JobLife jobs_;
  NodeService service_;
  NodeCondition condition_;
  Passes passes_;
};

}  // namespace orrery
