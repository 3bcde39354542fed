#include "tests/scenarios/scenario_job.hpp"

#include <algorithm>

namespace orrery {

double ScenarioLife::done_at(Instant time) const {
  if (ends == Instant::max() || time <= begins) return begun_at;
  if (time >= ends) return 1;
  return begun_at +
         (1 - begun_at) * ((time - begins).count_seconds() / (ends - begins).count_seconds());
}

Instant ScenarioLife::checkpoint_before(Instant time) const {
  const Duration every = request.checkpoint_interval;
  if (every == Duration::max() || time < run.started) return run.started;
  return run.started + every * ((time - run.started).count_ns() / every.count_ns());
}

double ScenarioLife::saved_at(Instant time) const {
  const Instant checkpoint = checkpoint_before(time);
  return checkpoint > begins ? done_at(checkpoint) : saved;
}

double ScenarioLife::attained_at(Instant time) const {
  const Duration held = std::max(time - run.started, Duration());
  return attained + held.count_seconds() * run.devices();
}

void ScenarioLife::begin(Instant now, std::optional<Duration> expected) {
  run.checkpoint = request.checkpoint_interval;
  begins = now;
  begun_at = saved;
  if (runs) {
    const std::optional<Duration> whole = request.estimate ? request.estimate : request.time_limit;
    const double left =
        expected && whole ? expected->count_seconds() / whole->count_seconds() : 1 - saved;
    ends = now + Duration::from_seconds(runs->count_seconds() * left);
  } else {
    ends = expected ? now + *expected : Instant::max();
  }
}

void ScenarioLife::stretch(Instant now, double factor) {
  saved = saved_at(now);
  begun_at = done_at(now);
  if (ends != Instant::max()) {
    ends = now + Duration::from_seconds((ends - now).count_seconds() * factor);
  }
  if (run.expected_end != Instant::max()) {
    const double left = std::max((run.expected_end - now).count_seconds(), 0.0);
    run.expected_end = now + Duration::from_seconds(left * factor);
  }
  begins = now;
}

RunningJob ScenarioLife::seen_at(Instant now) const {
  RunningJob seen = run;
  seen.done = done_at(now);
  seen.attained = attained_at(now);
  seen.since = now;
  if (leaves) {
    seen.stopping = true;
    seen.expected_end = *leaves;
  }
  return seen;
}

}  // namespace orrery
