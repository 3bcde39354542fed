// Clocks of accelerators that have a driver: orders of attempts are requested from the drivers, and
// the results are added to the attempts' reports. Where devices are processors the keepers do this.
#include "node/agent/agent_process.hpp"

namespace orrery {

void AgentProcess::note_clocks(const AttemptId& id, const std::vector<RankShare>& shares) {
  if (!has_clocks()) return;
  clocks_.want(id, shares);
  set_clocks();
}

void AgentProcess::set_clocks() {
  const std::vector<DeviceClocks::Change> changes = clocks_.take_changes();
  if (changes.empty()) return;
  write_clocks();  // First, so that the next agent finds which clocks to lift.
  for (const DeviceClocks::Change& change : changes) {
    telemetry_->set_clock(change,
                          [this, change](const Status& answer) { note_clock(change, answer); });
  }
}

void AgentProcess::write_clocks() {
  const auto written = real_.env().storage.write_file(clocks_file(), clocks_.text());
  if (written) return;
  log_.error(wall(), "clocks are not written down", {{"why", written.error().message}});
}

void AgentProcess::note_clock(const DeviceClocks::Change& change, const Status& answer) {
  const std::string refusal = answer ? "" : answer.error().message;
  const bool news = refusal != clocks_.refusal();
  clocks_.note(change, refusal);
  write_clocks();
  if (!refusal.empty() && news) {
    log_.error(wall(), "a clock is not set",
               {{"device", change.device}, {"clock", change.clock}, {"why", refusal}});
  }
  for (auto& [id, attempt] : attempts_) {
    // Before a keeper's first report there is nothing to correct, and after its end nothing runs.
    const bool runs = attempt.step == Attempt::Step::kRanks &&
                      attempt.report.stage > RankStage::kUnknown &&
                      attempt.report.stage < RankStage::kGone;
    AttemptReport report = with_clocks(attempt.report);
    if (!runs || report.clocks == attempt.report.clocks) continue;
    attempt.report = std::move(report);
    agent_->on_keeper_report(attempt.report, now());
  }
  tell_reading();
  act();
}

AttemptReport AgentProcess::with_clocks(AttemptReport report) const {
  if (has_clocks()) report.clocks = clocks_.held(report.token.id);
  return report;
}

}  // namespace orrery
