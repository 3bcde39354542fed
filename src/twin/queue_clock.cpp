#include "twin/queue_clock.hpp"

#include <variant>

namespace orrery {

void QueueClock::look(std::span<const Event> events, const State& state, Instant now) {
  for (const Event& event : events) {
    std::visit(
        [&](const auto& what) {
          if constexpr (requires { JobId(what.job); }) look_at(what.job, state, now);
        },
        event);
  }
}

void QueueClock::look_at(JobId job, const State& state, Instant now) {
  if (!job.valid()) return;
  if (times_.size() <= job.value()) times_.resize(job.value() + 1);
  Times& times = times_[job.value()];
  const bool queues = state.has(job) && state.job(job).phase == JobPhase::kQueued;
  if (queues == (times.since != Instant::max())) return;
  if (queues) {
    times.since = now;
  } else {
    times.before += now - times.since;
    times.since = Instant::max();
  }
}

Duration QueueClock::queued(JobId job, Instant now) const {
  if (job.value() >= times_.size()) return {};
  const Times& times = times_[job.value()];
  return times.since == Instant::max() ? times.before : times.before + (now - times.since);
}

}  // namespace orrery
