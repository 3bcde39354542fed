// twin/wait_story.hpp - what became of one job of a simulation, and why it waited at each point.
//
// Looks on at the events of a run and at what passes say of the job. A line for each change.
#pragma once

#include <span>
#include <string>

#include "twin/simulation.hpp"

namespace orrery {

class WaitStory {
 public:
  /// None: of nobody.
  explicit WaitStory(JobId job) : job_(job) {}

  void look(Instant at, const Simulation& simulation, std::span<const Event> events);

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void tell(Instant at, const std::string& what);
  void tell_clock(Instant at, const State& state);
  void tell_refusal(Instant at, const Simulation& simulation);

  JobId job_;
  std::string last_;    ///< reason to wait that was told last
  std::string slowed_;  ///< what was told last of its clock; empty: it is the full one
  std::string text_;
};

}  // namespace orrery
