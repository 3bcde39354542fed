// verbs/fork/fork_text.hpp - the predicted course of jobs without and with a change, side by
// side, as text for people or as JSON.
#pragma once

#include <string>
#include <vector>

#include "base/format/field_writer.hpp"
#include "verbs/fork/live_fork.hpp"

namespace orrery {

/// One fork played twice. `as_is` has every job of the fork, `changed` those of the change as well.
struct ForkPair {
  const State& state;
  const ForkChange& change;
  Instant now;
  Duration span;
  std::vector<JobFate> as_is = {};
  std::vector<JobFate> changed = {};
};

/// Returns a row for each job that has not ended at the fork, then sums over waiting jobs.
[[nodiscard]] std::string fork_text(const ForkPair& pair);

/// `{now, span_s, jobs: [{id, name, state, as_is: {start_s, end_s}, changed: {..}}], ..}`;
/// times in seconds from now, null: not within the span.
[[nodiscard]] Json fork_json(const ForkPair& pair);

}  // namespace orrery
