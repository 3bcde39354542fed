#include "twin/figures/fleet_bill.hpp"

namespace orrery {
namespace {

constexpr double kJoulesPerKwh = 3.6e6;
constexpr double kSecondsPerHour = 3600;

/// Means over the devices of a type.
struct TypeRates {
  double hire = 0;         ///< dollars a device-second
  double idle_watts = 0;   ///< at the meter
  double electricity = 0;  ///< dollars a second of an idle one
};

TypeRates rates_of(const ControlSetup& setup, FleetTypeId type, Instant begin, Instant now) {
  TypeRates rates;
  double devices = 0;
  const auto add = [&](const DeviceCosts* costs, double count) {
    if (costs == nullptr || count == 0) return;
    const Watts idle = costs->idle().value_or(Watts());
    const DollarsPerJoule price = setup.series.electricity != nullptr
                                      ? setup.series.electricity->mean(begin, now)
                                      : costs->electricity;
    devices += count;
    rates.hire += count * costs->hire.value_or(DollarsPerSecond()).value();
    rates.idle_watts += count * costs->metered(idle).value();
    rates.electricity += count * costs->electricity_beside(idle, price).value();
  };
  const Topology& topology = *setup.topology;
  if (setup.costs->uniform()) {
    for (const SiteFacts& site : topology.sites()) {
      add(setup.costs->find(type, site.domain), topology.device_count(site.domain, type));
    }
  } else {
    for (std::uint32_t i = 0; i < topology.node_count(); ++i) {
      const NodeGroup& group = topology.group(NodeId(i));
      if (group.type == type) add(setup.costs->at(topology, NodeId(i)), group.devices);
    }
  }
  if (devices == 0) return {};
  return {rates.hire / devices, rates.idle_watts / devices, rates.electricity / devices};
}

/// Whether devices in a use are billed to the job that holds them.
bool is_billed(DeviceUse use) { return use < DeviceUse::kExclusive; }

bool is_off(DeviceUse use) { return use == DeviceUse::kDown || use == DeviceUse::kRepair; }

}  // namespace

FleetBill fleet_bill(const State& state, const JobUsage& jobs, Instant begin, Instant now) {
  const ControlSetup& setup = state.setup();
  FleetBill bill{.energy_kwh = jobs.joules / kJoulesPerKwh, .cost_usd = jobs.dollars};
  if (setup.costs == nullptr) return bill;
  for (std::uint32_t t = 0; t < setup.topology->type_count(); ++t) {
    const FleetTypeId type(t);
    const TypeRates rates = rates_of(setup, type, begin, now);
    for (std::size_t u = 0; u < kDeviceUses; ++u) {
      const auto use = static_cast<DeviceUse>(u);
      const double seconds = device_hours(state.ledger().sum(type, use, now)) * kSecondsPerHour;
      if (is_billed(use)) continue;
      bill.cost_usd += seconds * rates.hire;
      if (is_off(use)) continue;
      bill.cost_usd += seconds * rates.electricity;
      bill.energy_kwh += seconds * rates.idle_watts / kJoulesPerKwh;
    }
  }
  return bill;
}

}  // namespace orrery
