// twin/protocol/protocol_reports.hpp - old and false reports: keeps reports of agents and inputs of
// executors, which are repeated later or changed into impossible ones.
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

  /// Keeps the report; once 64 are kept, it replaces a random one.
  void remember(const Report& report);
  /// Keeps the input if it is about ranks.
  void remember(const InputKind& what);
  [[nodiscard]] std::size_t inputs() const { return inputs_.size(); }
  /// Forgets the inputs after the first `count`.
  void forget_after(std::size_t count) { inputs_.resize(count); }

  /// Returns a random kept report; none: none was kept yet.
  [[nodiscard]] std::optional<Report> draw_report();
  /// Returns a random kept input; none: none was kept yet.
  [[nodiscard]] std::optional<InputKind> draw_input();
  /// Returns a random impossible report of an executor. Precondition: there is a job.
  [[nodiscard]] InputKind draw_contradiction(const State& state);
  /// Returns a random kept report that was changed: it names another attempt or epoch, a random one
  /// of the first `jobs` jobs, or impossible progress. None: the report drawn is not about ranks
  /// that start or run.
  [[nodiscard]] std::optional<Report> draw_misleading(std::size_t jobs);

 private:
  ProtocolContext& context_;
  std::vector<Report> reports_;
  std::vector<InputKind> inputs_;
};

}  // namespace orrery
