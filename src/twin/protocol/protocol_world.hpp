// twin/protocol/protocol_world.hpp - the whole protocol of running jobs in a virtual world: the
// real control core and fleet link, agents and keepers, with an unreliable network and log between
// them.
//
// Made once a seed; the caller injects faults, lets time pass, and asks whether a promise was
// broken. Everything follows from the seed and the calls. It owns the parts and connects them.
// ProtocolPromises checks control after every input, ProtocolProcesses the processes. One thread.
// Cost: O(nodes + keepers + log events) a step.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "twin/holds/lent_fleet.hpp"
#include "twin/nodes/protocol_nodes.hpp"
#include "twin/protocol/protocol_clients.hpp"
#include "twin/protocol/protocol_context.hpp"
#include "twin/protocol/protocol_controller.hpp"
#include "twin/protocol/protocol_disk.hpp"
#include "twin/protocol/protocol_promises.hpp"
#include "twin/protocol/protocol_reports.hpp"
#include "twin/protocol/protocol_service.hpp"
#include "twin/protocol/protocol_site.hpp"

namespace orrery {

class ProtocolWorld {
 public:
  using Trace = ProtocolContext::Trace;

  /// The site must outlive it.
  ProtocolWorld(const ProtocolSite& site, const ProtocolRules& rules, std::uint64_t seed,
                Trace trace = {});

  /// Stops early when a promise is broken.
  void run(Duration span);
  [[nodiscard]] ProtocolContext& context() { return context_; }
  [[nodiscard]] ProtocolNodes& nodes() { return nodes_; }
  [[nodiscard]] ProtocolDisk& disk() { return disk_; }
  [[nodiscard]] ProtocolClients& clients() { return clients_; }
  [[nodiscard]] ProtocolService& service() { return service_; }
  [[nodiscard]] ProtocolReports& reports() { return reports_; }
  [[nodiscard]] ProtocolController& controller() { return controller_; }

  void submit(const ProtocolJob& job) { clients_.submit(job); }
  /// Sends a command of the operator or a decision of a pass; it is lost if no controller lives.
  void operate(const InputKind& command) { controller_.handle({context_.now(), command, {}}); }
  /// Delivers a report to the controller, if that hears the agent.
  void deliver(const Report& report);
  /// Sets the power cap of the whole site; none removes it.
  void cap_power(std::optional<Watts> cap);

  // --- Faults

  void kill_controller(const std::string& where) { controller_.kill(where); }
  void start_controller() { controller_.start(); }
  void cut(NodeId node) { cut_[node.value()] = true; }
  void join(NodeId node) { cut_[node.value()] = false; }
  /// Delivers an impossible report of an executor: control must refuse it without any effect.
  void contradict();
  /// Ends all faults and repairs what is broken.
  void make_calm();

  // --- Results

  /// Lets an operator look after lost nodes that a resource manager lends, and the owner of the
  /// service end it.
  void tend();
  /// Whether every job has ended, with nothing left of any, and no node is held for nothing.
  [[nodiscard]] bool settled() const;
  /// Describes what is not settled.
  [[nodiscard]] std::string unsettled() const;
  /// The first promise that was broken; empty: none.
  [[nodiscard]] const std::string& failure() const { return context_.failure(); }
  /// Precondition: a controller lives.
  [[nodiscard]] const State& state() const { return controller_.state(); }

 private:
  /// Lets one thing happen that is due.
  void step();
  void send(const Report& report);
  void send(const Order& order);
  [[nodiscard]] LentFleet::Parts lent_parts(const Topology& topology);

  ControlSetup setup_;
  ProtocolContext context_;
  std::vector<bool> cut_;  ///< nodes without a network
  ProtocolReports reports_;
  ProtocolDisk disk_;
  ProtocolClients clients_;
  ProtocolService service_;
  ProtocolPromises promises_;
  ProtocolController controller_;
  ProtocolNodes nodes_;  ///< behind the others, as agents send reports while it is built
  std::unique_ptr<LentFleet> lent_;  ///< nullptr: all nodes are the cluster's own
};

}  // namespace orrery
