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

#include "control/state.hpp"
#include "tests/scenarios/scenario_parts.hpp"

namespace orrery {

class ScenarioLog {
 public:
  /// `state`: the one that takes up each event after it was told.
  ScenarioLog(const ScenarioParts& parts, const State& state) : parts_(parts), state_(state) {}

  /// `decided`: by the last pass.
  void tell(Instant at, const Event& event, std::span<const Decision> decided);
  /// After a pass: why each job waits, where that is news.
  void tell_waiting(Instant at, const Core& core);
  /// Jobs that never came to control, up to an instant.
  void tell_refused(Instant until);
  /// What became of all jobs, and where the devices' time went if the scenario shows that.
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
  std::map<JobId, Refusal> shown_;  ///< reason to wait that was last written
  std::map<JobId, Instant> slots_;  ///< reservation that was last written
  std::optional<std::pair<Instant, LinkState>> links_;
  int day_ = 1;
  int preempted_ = 0;  ///< stops in favour of another or for want of power
  std::string text_;
};

}  // namespace orrery
