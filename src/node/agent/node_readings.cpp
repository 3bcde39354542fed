#include "node/agent/node_readings.hpp"

#include <utility>

namespace orrery {

void NodeReadings::begin(RealLoop& loop, TelemetrySetup setup) {
  telemetry_ = std::make_unique<Telemetry>(loop, loop, std::move(setup),
                                           [this](const NodeReading& reading) { note(reading); });
}

void NodeReadings::note(const NodeReading& reading) {
  newest_ = reading;
  if (agent_.begun()) agent_.signals(signals_of(reading));
  send();
}

void NodeReadings::send() {
  if (!newest_ || !session_.welcomed()) return;
  NodeReading reading = *newest_;
  reading.unwell = health_.complaint();
  reading.burn_in = health_.burn_in_state();
  clocks_.add_to(reading);
  session_.send(std::move(reading));
}

void NodeReadings::set_clock(const DeviceClocks::Change& change, Telemetry::ClockSetting then) {
  telemetry_->set_clock(change, std::move(then));
}

}  // namespace orrery
