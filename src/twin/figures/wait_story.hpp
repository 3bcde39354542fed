// twin/figures/wait_story.hpp - the history of one job of a simulation, and why it waited at each
// point.
//
// Observes the events of a run and what passes report of the job. A line for each change.
#pragma once

#include <span>
#include <string>

#include "twin/simulation.hpp"

namespace orrery {

class WaitStory {
 public:
  /// An invalid id: the story of no job.
  explicit WaitStory(JobId job) : job_(job) {}

  void look(Instant at, const Simulation& simulation, std::span<const Event> events);

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void tell(Instant at, const std::string& what);
  void tell_clock(Instant at, const State& state);
  void tell_refusal(Instant at, const Simulation& simulation);

  JobId job_;
  std::string last_;       ///< last reported reason to wait
  bool planning_ = false;  ///< that reason was a missing plan
  std::string slowed_;     ///< last report of its clock; empty: full clock
  std::string text_;
};

}  // namespace orrery
