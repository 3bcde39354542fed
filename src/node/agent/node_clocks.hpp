// node/agent/node_clocks.hpp - sets the clocks of the node's accelerators: what attempts order
// (devices/device_clocks.hpp) is requested from the drivers, and written down for the next agent.
//
// Owned by the agent's process, used on its loop. Where devices are processors, or only declared,
// keepers limit CPUs instead, and the reports of attempts are left as they are.
// Invariant: a change is in the file before a driver is asked for it, so that the next agent finds
// which clocks to lift.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "base/log.hpp"
#include "node/devices/device_clocks.hpp"
#include "node/devices/telemetry.hpp"

namespace orrery {

class NodeClocks {
 public:
  struct Setup {
    std::string file;           ///< holds DeviceClocks::text()
    std::uint32_t devices = 0;  ///< that have a driver
    bool by_driver = true;      ///< whether attempts' clocks are set by drivers, and not by keepers
  };
  struct Events {
    /// Requests a change from the device's driver, which answers later, on the loop.
    std::function<void(const DeviceClocks::Change&, Telemetry::ClockSetting)> set;
    /// A driver has answered, so that add_to() may add another clock or refusal.
    std::function<void()> answered;
  };

  /// Reads the file; nothing is requested before the first call.
  NodeClocks(const Env& env, const Log& log, Setup setup, Events events);
  NodeClocks(const NodeClocks&) = delete;
  NodeClocks& operator=(const NodeClocks&) = delete;

  /// Adds an attempt that was found and whose order is not known.
  void adopt(const AttemptId& id) { clocks_.adopt(id); }
  /// Requests the clocks of an attempt's newest order.
  void want(const AttemptId& id, const std::vector<RankShare>& shares);
  /// Requests the clocks that are right without the attempt.
  void forget(const AttemptId& id);
  /// Requests every clock that is not the wanted one.
  void request();

  /// Puts the clocks that the devices run at into an attempt's report.
  void add_to(AttemptReport& report) const;
  /// Puts the clocks and a refused change into a reading.
  void add_to(NodeReading& reading) const;

 private:
  void write() const;
  void note(const DeviceClocks::Change& change, const Status& answer);

  Env env_;
  Log log_;
  Setup setup_;
  Events events_;
  DeviceClocks clocks_;
};

}  // namespace orrery
