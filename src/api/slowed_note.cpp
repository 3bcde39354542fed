#include "api/slowed_note.hpp"

#include "scheduler/slowed_text.hpp"

namespace orrery {

std::string slowed_note(const Controller& controller, const Job& job) {
  if (!holds_devices(job.phase)) return {};
  const State& state = controller.state();
  return slowed_text(state.situation(controller.now()), state.running(job.id));
}

}  // namespace orrery
