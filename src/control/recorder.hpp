// control/recorder.hpp - what follows from one input: events, actions and an answer.
//
// The classes of the core share one. It owns the state and applies each event to it at once, so
// that whatever is decided next for the same input rests on the events before it. One thread.
// Invariant: the state is changed by emit(), and in a new core by restore() and replay(), only.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "control/action.hpp"
#include "control/input.hpp"
#include "control/state/state.hpp"

namespace orrery {

struct Outcome {
  std::vector<Event> events;
  std::vector<Action> actions;
  Answer answer;
};

class Recorder {
 public:
  explicit Recorder(const ControlSetup& setup) : state_(setup), now_(setup.begin) {}

  /// Begins an outcome for an input. Precondition: `input.at` is not before that of the previous
  /// input.
  void begin(const Input& input);
  [[nodiscard]] const Outcome& outcome() const { return outcome_; }
  /// The time of the input.
  [[nodiscard]] Instant now() const { return now_; }
  /// The id that the client gave the command; empty: none.
  [[nodiscard]] const std::string& request_id() const { return request_id_; }

  void emit(Event event);
  void act(const Action& action) { outcome_.actions.push_back(action); }
  void answer(Status status) { outcome_.answer.status = std::move(status); }
  void answer(JobId job) { outcome_.answer.job = job; }
  void refuse(std::string why) { answer(Status(input_error({}, std::move(why)))); }

  [[nodiscard]] const State& state() const { return state_; }
  [[nodiscard]] bool has_node(NodeId node) const {
    return node.value() < state_.setup().topology->node_count();
  }
  [[nodiscard]] std::unique_ptr<const HeldSituation> hold(Instant now);

  // What a new core does before its first input; see Core.
  [[nodiscard]] Status restore(std::string_view snapshot);
  void replay(Instant at, const Event& event) { state_.apply(at, event); }
  void resume() { now_ = state_.now(); }

 private:
  State state_;
  Outcome outcome_;
  Instant now_;
  std::string request_id_;
};

}  // namespace orrery
