#include "node/devices/telemetry.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/system/real_storage.hpp"
#include "node/machine/kernel_counters.hpp"

namespace orrery {

class Telemetry::Machine {
 public:
  explicit Machine(TelemetrySetup setup) : setup_(std::move(setup)) {}

  [[nodiscard]] NodeReading read() {
    RealStorage storage(Durability::kUntilBoot);
    const KernelCounters now = read_kernel_counters(storage, setup_.kernel);
    NodeReading reading{.cpu_busy = cpu_busy_between(last_, now),
                        .memory_bytes = now.memory_bytes,
                        .memory_used_bytes = now.memory_used_bytes,
                        .received_bytes = now.received_bytes,
                        .sent_bytes = now.sent_bytes,
                        .network_errors = now.network_errors,
                        .link_errors = now.link_errors};
    last_ = now;
    reading.accelerators.reserve(setup_.devices.size());
    for (const DrivenDevice& device : setup_.devices) {
      reading.accelerators.push_back(setup_.drivers.at(device.driver)->read(device.number));
    }
    return reading;
  }

  [[nodiscard]] Status set_clock(const DeviceClocks::Change& change) {
    const DrivenDevice& device = setup_.devices.at(change.device);
    return setup_.drivers.at(device.driver)->set_clock(device.number, change.clock);
  }

 private:
  TelemetrySetup setup_;
  KernelCounters last_;
};

Telemetry::Telemetry(Timers& timers, Inbox& inbox, TelemetrySetup setup, Heard heard)
    : timers_(timers),
      interval_(setup.interval),
      heard_(std::move(heard)),
      machine_(std::make_shared<Machine>(std::move(setup))),
      thread_(inbox) {
  read();
}

Telemetry::~Telemetry() {
  if (timer_) timers_.cancel(*timer_);
}

/// The next reading is due an interval after this one came, so that slow ones do not pile up.
void Telemetry::read() {
  timer_.reset();
  thread_.run([this, machine = machine_]() -> Callback {
    return [this, reading = machine->read()] {
      timer_ = timers_.call_after(interval_, [this] { read(); });
      heard_(reading);
    };
  });
}

void Telemetry::set_clock(const DeviceClocks::Change& change, ClockSetting then) {
  thread_.run([machine = machine_, change, then = std::move(then)]() -> Callback {
    return [then, answer = machine->set_clock(change)] { then(answer); };
  });
}

Signals signals_of(const NodeReading& reading) {
  double power = 0;
  double temperature = 0;
  std::uint64_t memory_errors = 0;
  std::uint64_t link_errors = reading.link_errors;
  for (const AcceleratorReading& each : reading.accelerators) {
    power += each.power_w.value_or(0);
    temperature = std::max(temperature, each.temperature_c.value_or(0));
    memory_errors += each.memory_errors.value_or(0);
    link_errors += each.link_errors.value_or(0);
  }
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  constexpr double kWattsMost = 1e9;
  constexpr double kDegreesMost = 1'000;
  return {.power_w = static_cast<std::uint32_t>(std::clamp(power, 0.0, kWattsMost)),
          .temperature_c = static_cast<std::uint16_t>(std::clamp(temperature, 0.0, kDegreesMost)),
          .xid_count = 0,
          .ecc_count = static_cast<std::uint32_t>(std::min(memory_errors, kMost)),
          .link_errors = static_cast<std::uint32_t>(std::min(link_errors, kMost))};
}

}  // namespace orrery
