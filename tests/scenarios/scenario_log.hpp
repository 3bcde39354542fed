// scenarios/scenario_log.hpp - the history of a scenario in words: a line for each event that shows
// what was decided and why.
//
// One for a scenario; gets each event before `state` applies it. Remembers only what it last wrote
// of a job, so that nothing is repeated.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "control/state/state.hpp"
#include "tests/scenarios/scenario_parts.hpp"

namespace orrery {

class ScenarioLog {
 public:
  /// `state` applies each event after it was given to this log.
  ScenarioLog(const ScenarioParts& parts, const State& state) : parts_(parts), state_(state) {}

  /// `decided` holds the decisions of the last pass.
  void tell(Instant at, const Event& event, std::span<const Decision> decided);
  /// Called after a pass: writes why each job waits, if that is new.
  void tell_waiting(Instant at, const Core& core);
  /// Writes the jobs refused before they reached control, up to an instant.
  void tell_refused(Instant until);
  /// Writes the results of all jobs, and the use of device time if the scenario shows that.
  void tell_end(Instant at);

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void on(const JobStarted& event);
  void on(const JobResized& event);
  void on(const ClockSet& event);
  void on(const JobStopping& event);
  void on(const JobRequeued& event);
  void on(const JobEnded& event);
  void on(const NodeChanged& event);
  void on(const SpareSet& event);
  void on(const LinkChanged& event);
  void on(const PowerLimitSet& event);
  void on(const TenantsSet& event);
  void on(const FleetSet& event);
  void on(const SlotsReserved& event);
  void on(const PlanFound& event);
  void on(const DecisionDropped& event);
  void on(const LemonFound& event);
  template <class Other>
  void on(const Other&) {}

  void tell_ledger(Instant at);
  template <class Decided>
  [[nodiscard]] const Decided* decided_for(JobId job) const;
  [[nodiscard]] std::string done_text(std::optional<Instant> end) const;
  void write(std::string_view what, std::string_view who, std::string_view text);

  const ScenarioParts& parts_;
  const State& state_;
  std::span<const Decision> decided_;
  Instant now_;
  std::size_t refused_ = 0;
  std::map<JobId, Refusal> shown_;  ///< last written reason to wait
  std::map<JobId, Instant> slots_;  ///< last written reservation
  std::optional<std::pair<Instant, LinkState>> links_;
  int day_ = 1;
  int preempted_ = 0;  ///< stops in favour of another job or for lack of power
  std::string text_;
};

}  // namespace orrery
