#include "twin/figures/wait_story.hpp"

#include <fmt/format.h>

#include "base/format/field_writer.hpp"
#include "scheduler/explain/explain.hpp"
#include "scheduler/price/slowed_text.hpp"
#include "twin/world/attempt_log.hpp"

namespace orrery {
void WaitStory::tell(Instant at, const std::string& what) {
  text_ += fmt::format("{}  {}\n", at.text(), what);
}

void WaitStory::look(Instant at, const Simulation& simulation, std::span<const Event> events) {
  const State& state = simulation.state();
  const Topology& topology = state.fleet().topology();
  for (const Event& event : events) {
    if (const auto* submitted = std::get_if<JobSubmitted>(&event)) {
      if (submitted->job == job_) tell(at, "submitted");
    } else if (const auto* started = std::get_if<JobStarted>(&event)) {
      if (started->job != job_) continue;
      tell(at,
           fmt::format(
               "starts: {}{}", place_text(topology, place_of(started->gangs)),
               started->expected ? fmt::format(", for about {}", started->expected->text()) : ""));
      last_.clear();
      tell_clock(at, state);
    } else if (const auto* clock = std::get_if<ClockSet>(&event)) {
      if (clock->job == job_) tell_clock(at, state);
    } else if (const auto* resized = std::get_if<JobResized>(&event)) {
      if (resized->job == job_)
        tell(at, "continues on " + place_text(topology, place_of(resized->gangs)));
    } else if (const auto* stopping = std::get_if<JobStopping>(&event)) {
      if (stopping->job != job_) continue;
      std::string why(word_of(stopping->reason));
      if (stopping->in_favour_of.valid()) {
        why += fmt::format(" in favour of {}", state.job(stopping->in_favour_of).name);
      }
      if (!stopping->blame.evidence.empty()) why += ": " + stopping->blame.evidence;
      tell(at, "stops: " + why);
    } else if (const auto* again = std::get_if<JobRequeued>(&event)) {
      if (again->job != job_) continue;
      tell(at, fmt::format("queued again: {:.1f} % done, {} of work lost",
                           again->progress.done * 100, again->progress.lost.text()));
    } else if (const auto* end = std::get_if<JobEnded>(&event)) {
      if (end->job == job_) tell(at, std::string(word_of(end->phase)));
    }
  }
  tell_refusal(at, simulation);
}

// Checks the state, as a later event of the instant may have stopped the job.
void WaitStory::tell_clock(Instant at, const State& state) {
  if (!state.has(job_) || !holds_devices(state.job(job_).phase)) return;
  const std::string slowed = slowed_text(state.situation(at), state.running(job_));
  if (slowed == slowed_) return;
  slowed_ = slowed;
  tell(at, slowed.empty() ? "runs at its full clock" : slowed);
}

// Writes the full explanation, with what would help, at the first refusal of a kind. Waiting for a
// plan in preparation and for better hardware counts as one kind.
void WaitStory::tell_refusal(Instant at, const Simulation& simulation) {
  const State& state = simulation.state();
  if (!state.has(job_) || state.job(job_).phase != JobPhase::kQueued) return;
  // A pass of this very instant may still start it.
  if (last_.empty() && state.job(job_).since == at) return;
  std::string why = "behind other jobs in the queue";
  for (const StillWaits& waits : simulation.core().still_waiting()) {
    if (waits.job != job_) continue;
    why = std::string(name_of(waits.refusal.kind));
    if (waits.refusal.missing > 0) {
      why += fmt::format(", {} accelerators missing in the {}", waits.refusal.missing,
                         word_of(waits.refusal.level));
    }
  }
  if (why == last_ && !planning_) return;
  const ExplainNames names{[&](JobId id) { return state.job(id).name; }};
  const Explanation explained = explain(state.situation(at), state.policy(), job_, names);
  if (why == last_ && explained.waits_for_plan) return;
  last_ = why;
  planning_ = explained.waits_for_plan;
  tell(at, "waits: " + why);
  const std::string told = explained.text();
  for (std::size_t line = 0; line < told.size();) {
    const std::size_t end = std::min(told.find('\n', line), told.size());
    text_ += "    " + told.substr(line, end - line) + "\n";
    line = end + 1;
  }
}

}  // namespace orrery
