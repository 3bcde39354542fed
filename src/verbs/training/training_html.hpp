// verbs/training/training_html.hpp - a training as a page: loss, step times, ranks, and where the
// time went.
//
// Values in, text out.
#pragma once

#include <optional>
#include <string>

#include "verbs/training/training_log.hpp"

namespace orrery {

/// A deliberate kill of ranks in a run.
struct DeliberateKill {
  std::vector<std::int64_t> pids;
  std::uint64_t step = 0;
  double at = 0;  ///< seconds since 1970
  std::string node;
};

/// The cost model's prediction for the steps of `ranks` ranks.
struct PredictedStep {
  std::uint32_t ranks = 0;
  double seconds = 0;
};

struct TrainingStory {
  std::string title;
  TrainingLog run;
  std::optional<TrainingLog> unbroken;
  std::optional<DeliberateKill> kill;
  std::vector<std::pair<std::string, std::string>> bill;  ///< what, how much
  std::optional<PredictedStep> predicted;

  /// Returns the time from the kill until a peer missed the killed rank.
  [[nodiscard]] std::optional<double> detect_s() const;
  /// Whether both runs came to an end, and to the same one.
  [[nodiscard]] bool ended_equal() const;
  /// Returns the predicted step over the mean of the measured ones, less 1: 0.1 is a tenth too
  /// long.
  [[nodiscard]] std::optional<double> prediction_error() const;
};

[[nodiscard]] std::string training_html(const TrainingStory& story);

}  // namespace orrery
