// twin/protocol/protocol_controller.hpp - the controllers of a protocol world, one after the other:
// each is the real control core with its fleet link and its link to resource managers, and may die
// at each point that an input passes.
//
// Owned by the ProtocolWorld. A controller starts from the durable log of the ones before. One
// thread. Invariant: at most one lives; the orders of an earlier one may still be on their way.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "executor/control_host.hpp"
#include "executor/holds/hold_host.hpp"
#include "twin/protocol/protocol_context.hpp"
#include "twin/protocol/protocol_disk.hpp"
#include "twin/protocol/protocol_promises.hpp"
#include "twin/protocol/protocol_reports.hpp"

namespace orrery {

inline constexpr std::uint64_t kProtocolCluster = 7;

class ProtocolController final : private HostOutlet {
 public:
  struct Parts {
    const ControlSetup& setup;
    ProtocolContext& context;
    ProtocolDisk& disk;
    ProtocolReports& reports;
    ProtocolPromises& promises;
    std::function<void(const Order&)> send;  ///< orders for agents
    std::function<void(const ManagerOrder&)> order;
    std::function<void(std::span<const Event>)> applied;
    /// For a term; none: there is no manager.
    std::function<std::optional<HoldSetup>(std::uint64_t)> holds;
  };
  /// The parts must outlive it.
  explicit ProtocolController(Parts parts) : parts_(std::move(parts)) {}

  /// No effect while one lives.
  void start();
  /// No effect while none lives.
  void kill(const std::string& where);
  [[nodiscard]] bool lives() const { return host_ != nullptr; }
  [[nodiscard]] std::uint64_t crashes() const { return started_ - (lives() ? 1 : 0); }
  /// Controllers so far.
  [[nodiscard]] std::uint64_t started() const { return started_; }
  /// The number of the one that lives; 0: none does.
  [[nodiscard]] std::uint64_t term() const { return lives() ? started_ : 0; }
  /// Precondition: one lives.
  [[nodiscard]] const State& state() const { return host_->state(); }
  /// Its link to resource managers; nullptr: none lives, or there is no manager.
  [[nodiscard]] const HoldLink* holds() const { return holds_ ? &holds_->link() : nullptr; }
  /// Attempts that its link knows of; 0: none lives.
  [[nodiscard]] std::size_t linked_attempts() const;

  /// Instant::max(): none lives.
  [[nodiscard]] Instant next_due() const;
  /// Lets one thing happen that is due. Precondition: one lives.
  void advance(Instant now);
  /// Handles an input; it is lost if none lives.
  void handle(const Input& input, ControlHost::Answered answered = {});
  void deliver(const Report& report);
  void deliver(const ManagerReport& report);
  /// See HoldHost::admit(). Precondition: one lives.
  [[nodiscard]] Status admit(NodeId node, const AgentHold& agent);
  /// The agent of a node says that the manager ends its hold.
  void end_hold(NodeId node);
  /// A write of the log is complete.
  void written();

 private:
  void note(const Input& input) override { parts_.reports.remember(input.what); }
  std::uint64_t append(Instant at, std::span<const Event> events) override;
  void send(const Order& order) override { parts_.send(order); }
  void run_full_pass(Core& core, Instant now) override;
  void search_plan(const PlanKey&) override {}
  /// It dies in the midst of what it did.
  void die_if_doomed() {
    if (doomed_) kill("writing its log");
  }

  Parts parts_;
  std::unique_ptr<AgentHost> host_;  ///< nullptr: none lives
  std::unique_ptr<HoldHost> holds_;  ///< nullptr: none lives, or there is no manager
  std::optional<Scheduler> passes_;  ///< full passes, beside the controller
  std::uint64_t started_ = 0;
  bool doomed_ = false;  ///< it dies once it has handled its present input
};

}  // namespace orrery
