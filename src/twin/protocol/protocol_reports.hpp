// twin/protocol/protocol_reports.hpp - old and false reports: what agents and executors have said,
// to be said again or changed into what cannot be true.
//
// Owned by the ProtocolWorld. Control believes what only executors and agents can know (that ranks
// of the present attempt are up, have ended or are gone); no false report here concerns that. One
// thread. Cost: O(1) a call.
#pragma once

#include <optional>
#include <vector>

#include "agent/message.hpp"
#include "control/input.hpp"
#include "control/state/state.hpp"
#include "twin/protocol/protocol_context.hpp"

namespace orrery {

class ProtocolReports {
 public:
  /// The context must outlive it.
  explicit ProtocolReports(ProtocolContext& context) : context_(context) {}

  /// Keeps some of the reports, at random.
  void remember(const Report& report);
  /// Keeps the input if it is about ranks.
  void remember(const InputKind& what);
  [[nodiscard]] std::size_t inputs() const { return inputs_.size(); }
  /// Forgets the inputs after the first `count`.
  void forget_after(std::size_t count) { inputs_.resize(count); }

  /// An old report; none: there is none yet.
  [[nodiscard]] std::optional<Report> draw_report();
  /// An old input about ranks; none: there is none yet.
  [[nodiscard]] std::optional<InputKind> draw_input();
  /// An impossible report of an executor. Precondition: there is a job.
  [[nodiscard]] InputKind draw_contradiction(const State& state);
  /// A report of an agent on another attempt, epoch or job than runs there, of so many jobs; none:
  /// the report drawn cannot be changed that way.
  [[nodiscard]] std::optional<Report> draw_misleading(std::size_t jobs);

 private:
  ProtocolContext& context_;
  std::vector<Report> reports_;
  std::vector<InputKind> inputs_;
};

}  // namespace orrery
