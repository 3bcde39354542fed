// scheduler/power/power_test.hpp - small fleets with every kind of power domain, for the tests of
// power.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/numbers/rng.hpp"
#include "fleet/fleet_test.hpp"
#include "scheduler/power/power_budget.hpp"

namespace orrery {

/// One site at PUE 1.25 with storage of 2200 W; a UPS, a row, two cooling loops and three racks of
/// two DGX H100 (2 kW idle, 8 kW typical), the third of which is on loop "b".
inline std::string powered_site() {
  return "apiVersion: orrery/v1\nkind: Fleet\nname: f\nsites:\n- name: s\n  pue: 1.25\n"
         "  power_cap: 100 kW\n"
         "  feeds: [{name: a, capacity: 50 kW, units: 4, redundancy: N+1}]\n"
         "  storage: [{name: d, system: ddn-ai400x2-lustre, units: 1}]\n"
         "  halls:\n  - name: h\n    ups: {name: u, capacity: 20 kW, units: 4, redundancy: N+1}\n"
         "    rows: {racks: 2, capacity: 45 kW}\n"
         "    cooling_loops: [{name: a, capacity: 20 kW, units: 3, redundancy: N+1},\n"
         "                    {name: b, capacity: 10 kW, units: 3}]\n"
         "    pods:\n    - racks:\n"
         "      - {count: 2, loop: a, cooling: in-row-or-dense-air,\n"
         "         nodes: [{type: dgx-h100, count: 2}]}\n"
         "      - {name: last, loop: b, cooling: in-row-or-dense-air, power_limit: 25 kW,\n"
         "         nodes: [{type: dgx-h100, count: 2}]}\n";
}

/// The power domain of the kind at index `which` in the topology's order; the first by default.
inline PowerDomainId power_domain(const Topology& topology, PowerKind kind, int which = 0) {
  for (std::size_t i = 0; i < topology.power_domains().size(); ++i) {
    const PowerDomainId id = PowerDomainId::at(i);
    if (topology.power(id).kind == kind && which-- == 0) return id;
  }
  ADD_FAILURE() << "no such power domain";
  return PowerDomainId(0);
}

/// A site of one or two halls with random depth: caps, feeds, UPS, rows and loops are present or
/// not at random.
inline std::string random_site(Rng& rng) {
  const auto often = [&] { return rng.below(3) > 0; };
  std::string yaml = "apiVersion: orrery/v1\nkind: Fleet\nname: f\nsites:\n- name: s\n";
  if (often()) yaml += "  pue: 1.3\n";
  if (often()) yaml += "  power_cap: 1 MW\n";
  if (often()) yaml += "  feeds: [{name: a, capacity: 1 MW}, {name: b, capacity: 1 MW}]\n";
  if (often()) yaml += "  storage: [{name: d, system: ddn-ai400x2-lustre}]\n";
  yaml += "  halls:\n";
  for (std::uint64_t hall = 0, halls = 1 + rng.below(2); hall < halls; ++hall) {
    yaml += "  - name: h" + std::to_string(hall) + "\n";
    if (often()) yaml += "    ups: {name: u, capacity: 200 kW, units: 3, redundancy: N+1}\n";
    if (often()) yaml += "    rows: {racks: 2, capacity: 150 kW}\n";
    const bool loops = often();
    if (loops) {
      yaml += "    cooling_loops: [{name: a, capacity: 200 kW}, {name: b, capacity: 200 kW}]\n";
    }
    yaml += "    pods:\n    - racks:\n";
    for (std::uint64_t rack = 0, racks = 1 + rng.below(3); rack < racks; ++rack) {
      yaml += "      - {name: r" + std::to_string(rack) + ", cooling: in-row-or-dense-air, ";
      if (loops) yaml += rng.below(2) == 0 ? "loop: a, " : "loop: b, ";
      yaml += "nodes: [{type: ";
      yaml += rng.below(2) == 0 ? "dgx-h100" : "dgx-a100-80g";
      yaml += ", count: " + std::to_string(1 + rng.below(2)) + "}]}\n";
    }
  }
  return yaml;
}

}  // namespace orrery
