// twin/replicas/replica_world.hpp - several controllers on one log in a virtual world: the real
// standbys and leaders, a virtual etcd that lies, agents with their nodes, and clients.
//
// Made once a seed; the caller injects faults, lets time pass, and asks whether a promise was
// broken. Everything follows from the seed and the calls. It owns the parts and connects them. One
// thread. Cost: that of the controllers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "twin/nodes/protocol_nodes.hpp"
#include "twin/replicas/replica.hpp"
#include "twin/replicas/replica_clients.hpp"

namespace orrery {

struct ReplicaRules {
  NetworkRules network;  ///< between controllers, agents and clients
  EtcdRules etcd;
  Duration claims_after = Duration::milliseconds(2200);
};

class ReplicaWorld {
 public:
  using Trace = ProtocolContext::Trace;

  /// The facts outlive it.
  ReplicaWorld(const Facts& facts, const ReplicaRules& rules, std::uint64_t seed, Trace trace = {});
  ReplicaWorld(const ReplicaWorld&) = delete;
  ReplicaWorld& operator=(const ReplicaWorld&) = delete;
  /// Ends the processes while everything that they may still write to is there.
  ~ReplicaWorld() { replicas_.clear(); }

  /// Stops early when a promise is broken.
  void run(Duration span);
  /// Ends all faults.
  void make_calm();

  [[nodiscard]] ProtocolContext& context() { return context_; }
  [[nodiscard]] VirtualEtcd& etcd() { return etcd_; }
  [[nodiscard]] ReplicaPromises& promises() { return promises_; }
  [[nodiscard]] ReplicaClients& clients() { return clients_; }
  [[nodiscard]] ProtocolNodes& nodes() { return nodes_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Replica>>& replicas() const { return replicas_; }
  /// The controller that says that it leads; nullptr: none does.
  [[nodiscard]] Replica* leader();
  /// Whether every submission was answered and every job has ended.
  [[nodiscard]] bool settled() const;
  [[nodiscard]] const std::string& failure() const { return context_.failure(); }

 private:
  void step();
  void deliver(const Report& report);

  ControllerSettings settings_;
  SetupTexts setup_;
  ProtocolContext context_;
  VirtualEtcd etcd_;
  ReplicaPromises promises_;
  ReplicaParts parts_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  ReplicaClients clients_;
  ProtocolNodes nodes_;  ///< behind the others, as agents send reports while it is built
};

}  // namespace orrery
