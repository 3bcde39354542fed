// twin/holds/manager_commands.hpp - the way from a controller to a virtual resource manager: its
// commands take their time, their answers are lost, and lists lie.
//
// Owned by the LentFleet. Commands belong to the controller that gave them: they are lost with it,
// except that the one under way may still take effect. One at a time. One thread.
// Invariant: after a list that is empty and says that it is complete, the next complete one of the
// same controller is true: two that agree, ten seconds apart, are the proof that HoldLink takes.
#pragma once

#include <deque>
#include <functional>
#include <optional>

#include "executor/managers/resource_manager.hpp"
#include "twin/holds/virtual_manager.hpp"

namespace orrery {

class ManagerCommands final : public ResourceManager {
 public:
  struct Outside {
    std::function<std::uint64_t()> term;  ///< of the living controller; 0: none lives
    std::function<void(const ManagerReport&)> report;
  };

  /// The context and the manager must outlive it.
  ManagerCommands(ProtocolContext& context, VirtualManager& manager, const AnswerFaults& faults,
                  Outside outside)
      : context_(context), manager_(manager), faults_(faults), outside_(std::move(outside)) {}
  ManagerCommands(const ManagerCommands&) = delete;
  ManagerCommands& operator=(const ManagerCommands&) = delete;

  /// Precondition: a controller lives; the order is its own.
  void carry_out(const ManagerOrder& order) override;
  void make_calm() { faults_ = {}; }

 private:
  struct Command {
    std::uint64_t term = 0;
    ManagerOrder order;
  };

  [[nodiscard]] bool chance(double share) { return share > 0 && context_.chance(share); }
  void begin_next();
  /// Has the effect of a command, and returns the report of it; none: it has no answer.
  [[nodiscard]] std::optional<ManagerReport> run(const Command& command);
  [[nodiscard]] std::optional<HoldAnswer> ensure(const EnsureHold& hold);
  [[nodiscard]] ManagerListing list(const ListHolds& question);

  ProtocolContext& context_;
  VirtualManager& manager_;
  AnswerFaults faults_;
  Outside outside_;
  std::deque<Command> waiting_;
  bool busy_ = false;
  bool lied_ = false;  ///< the newest complete list was empty and false
};

}  // namespace orrery
