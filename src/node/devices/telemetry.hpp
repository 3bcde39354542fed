// node/devices/telemetry.hpp - reads this machine and its accelerators periodically, and sets the
// accelerators' clocks, off the loop.
//
// Owned by NodeReadings (node/agent/node_readings.hpp), used on its loop. Drivers are read on a
// thread of their own (node/devices/driver_thread.hpp): while one of them hangs there are no
// readings, and nothing else changes.
// Cost of a reading: some tens of files, and milliseconds a device.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/env.hpp"
#include "node/agent_wire.hpp"
#include "node/devices/accelerator_driver.hpp"
#include "node/devices/device_clocks.hpp"
#include "node/devices/driver_thread.hpp"
#include "node/machine/kernel_directories.hpp"

namespace orrery {

/// A device that the node offers, as its driver knows it.
struct DrivenDevice {
  std::size_t driver = 0;
  std::uint32_t number = 0;
};

struct TelemetrySetup {
  Duration interval = Duration::seconds(10);
  KernelDirectories kernel = {};
  std::vector<std::unique_ptr<AcceleratorDriver>> drivers = {};
  std::vector<DrivenDevice> devices = {};  ///< by device of the node; empty: there is no driver to
                                           ///< read them
};

class Telemetry {
 public:
  using Heard = std::function<void(const NodeReading&)>;
  using ClockSetting = std::function<void(const Status&)>;

  /// `heard` is called on the loop, for the first time as soon as possible. `timers` and `inbox`
  /// are of the loop, and outlive this object.
  Telemetry(Timers& timers, Inbox& inbox, TelemetrySetup setup, Heard heard);
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;
  ~Telemetry();

  /// Sets the clock of a device that is read, through its driver, after earlier requests. `then` is
  /// called on the loop, with the result.
  void set_clock(const DeviceClocks::Change& change, ClockSetting then);

 private:
  class Machine;

  void read();

  Timers& timers_;
  Duration interval_;
  Heard heard_;
  std::shared_ptr<Machine> machine_;  ///< touched by the thread alone
  std::optional<TimerId> timer_;
  DriverThread thread_;
};

/// Returns what fits into every heartbeat. Power is the sum of the reported values, temperature the
/// highest.
[[nodiscard]] Signals signals_of(const NodeReading& reading);

}  // namespace orrery
