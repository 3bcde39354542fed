#include "control/recorder.hpp"

#include <utility>

#include "base/assert.hpp"
#include "control/core/held_situation.hpp"
#include "control/state/snapshot.hpp"

namespace orrery {

void Recorder::begin(const Input& input) {
  ORRERY_ASSERT(input.at >= now_, "inputs do not go back in time");
  now_ = input.at;
  outcome_.events.clear();
  outcome_.actions.clear();
  outcome_.answer = {};
  request_id_ = input.request_id;
}

void Recorder::emit(Event event) {
  state_.apply(now_, event);
  outcome_.events.push_back(std::move(event));
}

std::unique_ptr<const HeldSituation> Recorder::hold(Instant now) { return state_.hold(now); }

Status Recorder::restore(std::string_view snapshot) { return orrery::restore(state_, snapshot); }

}  // namespace orrery
