// node/agent/node_readings.hpp - a node's readings of itself on their way to the controller: what
// the machine and its drivers read, with what the node's checks and clocks add.
//
// Owned by the agent's process, used on its loop. A reading is sent when it comes; send() sends the
// newest one again, with what is to be added to it by then.
#pragma once

#include <memory>
#include <optional>

#include "node/agent/agent_driver.hpp"
#include "node/agent/controller_session.hpp"
#include "node/agent/node_clocks.hpp"
#include "node/devices/telemetry.hpp"
#include "node/health/node_fitness.hpp"

namespace orrery {

class NodeReadings {
 public:
  /// All borrowed.
  NodeReadings(ControllerSession& session, AgentDriver& agent, const NodeClocks& clocks,
               const NodeFitness& health)
      : session_(session), agent_(agent), clocks_(clocks), health_(health) {}
  NodeReadings(const NodeReadings&) = delete;
  NodeReadings& operator=(const NodeReadings&) = delete;

  /// Reads the machine from now on.
  void begin(RealLoop& loop, TelemetrySetup setup);
  void end() { telemetry_.reset(); }
  /// Notes a reading and sends it; heartbeats have its signals.
  void note(const NodeReading& reading);
  /// Sends the newest reading, if there is one, with what is to be added now.
  void send();
  /// Sets the clock of a device through its driver. Precondition: between begin() and end().
  void set_clock(const DeviceClocks::Change& change, Telemetry::ClockSetting then);

 private:
  ControllerSession& session_;
  AgentDriver& agent_;
  const NodeClocks& clocks_;
  const NodeFitness& health_;
  std::unique_ptr<Telemetry> telemetry_;  ///< while it runs
  std::optional<NodeReading> newest_;
};

}  // namespace orrery
