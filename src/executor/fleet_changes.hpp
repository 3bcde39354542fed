// executor/fleet_changes.hpp - changes the fleet of a running controller to that of another file:
// the log gets the text, and everything beside the state that has ids of the fleet follows.
//
// Owned by the controller, on its loop. Running jobs and the sessions of agents go on. Jobs that
// wait are resolved again afterwards, some in each turn of the loop, so that they may use new
// accelerators.
// Invariant: a node that may have ranks of a job is not retired. Cost of a change: building the
// fleet, O(state).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "base/log.hpp"
#include "executor/agents/agent_sessions.hpp"
#include "executor/holds/live_holds.hpp"
#include "executor/live/config_drift.hpp"
#include "executor/live/live_host.hpp"
#include "executor/live/live_setup.hpp"
#include "executor/side_decisions.hpp"

namespace orrery {

enum class FleetApply : std::uint8_t { kDryRun, kApply };

/// A request to change the fleet.
struct NewFleet {
  std::string yaml;  ///< of a Fleet file
  FleetApply how = FleetApply::kApply;
  std::string request_id;
  std::string from;  ///< FleetChange::from of the fleet that it is to change; empty: any
};

/// What a new fleet file changes.
struct FleetChange {
  struct Busy {
    std::string node;
    std::vector<JobId> jobs;  ///< jobs with devices there, ascending
  };
  std::vector<std::string> added;  ///< names of nodes
  std::vector<std::string> retired;
  std::vector<std::string> moved;  ///< nodes that stay, in a rack of another name
  std::vector<Busy> busy;  ///< retired nodes that jobs still hold: the fleet cannot change yet
  bool applied = false;    ///< false: a dry run, or nodes are busy
  std::string from;        ///< digest of the text of the fleet that is changed
};

class FleetChanges {
 public:
  /// Everything that has ids of the fleet beside the state.
  struct Followers {
    LiveSetup& setup;
    AgentSessions& sessions;
    SideDecisions& side;
    LiveHolds& holds;
  };
  FleetChanges(const Env& env, const Log& log, LiveHost& host, const Followers& followers)
      : log_(log), host_(host), followers_(followers), drift_(env, log) {}

  using Answered = std::function<void(Result<FleetChange>)>;
  /// Changes the fleet to that of a Fleet file; `answered` is called when the change is durable.
  /// Errors: those of the text ("fleet.yaml:3:5: ..."); a site or accelerator type of before that
  /// is gone or in another order; the fleet was changed by another request since `from`.
  void apply(const NewFleet& next, Answered answered);
  /// The texts that the log was begun with.
  [[nodiscard]] const SetupTexts& begun_with() const;
  /// The text of the fleet that holds now.
  [[nodiscard]] const std::string& text() const;

  /// Notes an event that the state has applied: a job that waits again is resolved again.
  void note(const Event& event);
  /// Adds all jobs that wait if the log has had another fleet before.
  void renew_waiting();
  /// Returns why the fleet in use can never run a job that waits; none: it may run.
  [[nodiscard]] std::optional<std::string> why_never(JobId job) const {
    return followers_.setup.renewal().why_never(job);
  }
  /// Whether jobs are to be resolved again now; a halted host changes none.
  [[nodiscard]] bool renews() const {
    return !host_.is_halted() && !followers_.setup.renewal().empty();
  }
  /// Resolves the next of them; the caller calls LiveHost::changed().
  void renew(Instant now);

  /// Where the configuration files differ from what the cluster runs with.
  [[nodiscard]] ConfigDrift& drift() { return drift_; }
  [[nodiscard]] const ConfigDrift& drift() const { return drift_; }

 private:
  [[nodiscard]] Result<FleetChange> change_to(const std::string& yaml) const;
  [[nodiscard]] std::string digest() const;
  void use(const FleetMap& map);
  [[nodiscard]] const State& state() const { return host_.state(); }
  [[nodiscard]] bool changed_before() const { return !state().setup().fleets.text.empty(); }

  Log log_;
  LiveHost& host_;
  Followers followers_;
  ConfigDrift drift_;
};

}  // namespace orrery
