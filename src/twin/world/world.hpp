// twin/world/world.hpp - what really happens to jobs and nodes: the executor of the twin.
//
// Carries out control's actions and reports what control may see, with the delays of a real
// cluster. It knows what control does not: how long a job truly runs and when its program fails. It
// owns the parts of the world (runs of jobs, faults, silent nodes) and hands each event of the
// agenda to the part that it belongs to. One thread. Cost: O(log events) an event.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "agent/executor.hpp"
#include "control/action.hpp"
#include "control/input.hpp"
#include "control/state/state.hpp"
#include "twin/outages/active_faults.hpp"
#include "twin/outages/fault_schedule.hpp"
#include "twin/outages/node_outages.hpp"
#include "twin/outages/shared_outages.hpp"
#include "twin/outages/silent_nodes.hpp"
#include "twin/runs/job_runs.hpp"
#include "twin/runs/rounds.hpp"
#include "twin/world/agenda.hpp"
#include "twin/world/world_facts.hpp"

namespace orrery {

class World final : public Executor {
 public:
  using Facts = WorldFacts;

  World(const Topology& topology, Facts facts);

  /// Must be called before the job's submission is handled. Precondition: ids come in order.
  void add(const TrueJob& job);

  /// Takes over a job that has not ended from the history of a snapshot; the work done is what
  /// control has recorded. If the job holds devices, its ranks are as control knows them and have
  /// `left` to run at their present rate. This world knows no faults from before. Precondition: the
  /// job was added.
  void adopt(JobId id, Duration left, const State& state, Instant now) {
    runs_.adopt(id, left, state, now);
  }

  void carry_out(const Action& action, const State& state, Instant now) override;
  /// The world has no agents. Precondition: never called.
  void deliver(const Report& report, Instant now) override;
  /// Lets the next event happen. Precondition: `now` is next_due().
  void advance(const State& state, Instant now) override;
  [[nodiscard]] Instant next_due() const override { return agenda_.next(); }
  [[nodiscard]] std::vector<ExecutorEffect> take() override;

  /// Sends control an input that arrives later: a Proposal after WorldTiming::scheduler_latency, a
  /// PlanReady, whose entry is found here, after WorldTiming::plan_search, any other at once.
  void send_input(InputKind what, Instant now);

  /// In a round-based world, begins a round of all running jobs if none is under way.
  void begin_round(const State& state, Instant now) {
    rounds_.begin(*facts_.rules.round, state, now);
  }
  [[nodiscard]] bool in_round() const { return rounds_.under_way(); }

  /// Whether only faults can still happen without an action.
  [[nodiscard]] bool quiet() const { return nodes_.all_repaired() && agenda_.size() <= 1; }

  /// All faults so far.
  [[nodiscard]] std::span<const FeltFault> felt() const { return faults_.felt(); }
  /// The runs of the jobs.
  [[nodiscard]] const JobRuns& runs() const { return runs_; }

 private:
  /// Returns the input to control that the next event leads to; none: it leads to none.
  [[nodiscard]] std::optional<InputKind> step(const State& state, Instant now);
  [[nodiscard]] std::optional<InputKind> step_run(const WorldEvent& event, const State& state,
                                                  Instant now);
  /// The ranks of a job are up once no silent, dead or cut-off node keeps them apart.
  [[nodiscard]] std::optional<InputKind> come_up(const WorldEvent& event, const State& state,
                                                 Instant now);
  void await_fault();
  void strike(std::uint32_t index, const State& state, Instant now);

  const Topology* topology_;
  Facts facts_;
  Agenda agenda_;
  FaultSchedule schedule_;
  ActiveFaults faults_;
  JobRuns runs_;
  Rounds rounds_;
  SilentNodes silent_;
  NodeOutages nodes_;
  SharedOutages shared_;
  std::vector<ExecutorEffect> effects_;
};

}  // namespace orrery
