// scenarios/scenario_job.hpp - one job of a scenario and how far it has come.
#pragma once

#include <optional>
#include <string>

#include "scheduler/decision.hpp"

namespace orrery {

struct ScenarioLife {
  enum class Stage { kToCome, kWaiting, kRunning, kStopping, kOver };

  JobRequest request;
  std::optional<Duration> runs;  ///< on what it asks for; none: as expected
  Instant arrives;
  Stage stage = Stage::kToCome;
  double saved = 0;     ///< part of the work in its last checkpoint
  double attained = 0;  ///< device-seconds of earlier attempts
  std::uint32_t attempts = 0;
  std::optional<Refusal> shown;  ///< reason to wait that was last written down
  std::optional<Instant> slot;   ///< reservation that was last written down

  // While it runs. `done` grows evenly from `begun_at` to 1.
  RunningJob run;
  Instant begins;
  Instant ends;
  double begun_at = 0;
  std::optional<Instant> leaves;  ///< when it has stopped
  std::optional<ResizeJob> next;  ///< what it goes on with then, if not nothing

  [[nodiscard]] bool holds() const { return stage == Stage::kRunning || stage == Stage::kStopping; }
  /// Part of the work that is finished.
  [[nodiscard]] double done_at(Instant time) const;
  /// The last checkpoint before a time; the start of the attempt where there was none.
  [[nodiscard]] Instant checkpoint_before(Instant time) const;
  /// Part of the work that survives a stop.
  [[nodiscard]] double saved_at(Instant time) const;
  [[nodiscard]] double attained_at(Instant time) const;
  /// Begins, with what is left to do taking `expected` by the scheduler's reckoning.
  void begin(Instant now, std::optional<Duration> expected);
  /// Goes on at another speed.
  void stretch(Instant now, double factor);
  /// As the scheduler is told.
  [[nodiscard]] RunningJob seen_at(Instant now) const;
};

}  // namespace orrery
