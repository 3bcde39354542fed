// hardware/system_type.hpp - a reference system, from which `fleet generate` builds a fleet.
//
// A row of catalog/systems.yaml. Sizes are given the way the source gives them (accelerators,
// nodes, scalable units, cubes); fleet/spec/generate.hpp turns them into a fleet spec.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"
#include "hardware/provenance.hpp"

namespace orrery {

struct SystemType {
  std::string id;
  std::vector<std::string> aliases;
  std::string node;  ///< id of a NodeType
  std::optional<int> nodes;
  std::optional<int> reference_nodes;
  std::optional<int> accelerators;
  std::optional<int> scalable_unit_nodes;
  std::optional<int> max_scalable_units;
  std::optional<int> scalable_unit_racks;
  std::optional<int> scalable_unit_accelerators;
  std::optional<int> nodes_per_rack;
  std::optional<int> rack_trays;
  std::optional<int> rack_accelerators;
  std::optional<int> racks_per_pod;
  std::optional<int> pod_accelerators;
  std::optional<int> pods;
  std::optional<int> segment_accelerators;
  std::optional<int> segments;
  std::optional<int> servers_per_tor_set;
  std::optional<std::string> fabric;  ///< id of a ScaleOutFabric
  std::optional<int> switch_radix;    ///< set if it differs from the fabric's
  std::string topology;
  std::optional<double> oversubscription;
  std::optional<double> core_oversubscription;
  std::optional<std::string> oversubscribed_tier;
  std::optional<int> nics_per_node;
  std::optional<BitsPerSecond> scale_out_rate;
  std::vector<int> torus_shape;
  std::vector<int> cube_shape;
  std::optional<int> cubes;
  std::optional<int> optical_switches;
  std::optional<int> max_slice_accelerators;
  std::vector<int> max_slice_shape;
  std::optional<int> multislice_max_accelerators;
  std::vector<std::vector<int>> slice_shapes;
  std::vector<std::vector<int>> twisted_shapes;
  std::optional<BytesPerSecond> documented_bisection;
  std::optional<BytesPerSecond> documented_all_reduce;
  std::optional<Watts> rack_power;
  std::optional<Watts> rack_power_max;
  std::optional<Watts> power;
  std::optional<std::string> cooling;
  std::optional<std::string> storage;
  std::optional<double> availability;
  std::optional<double> failures_per_1000_node_days;
  std::string like;  ///< id of the row from which this one was copied
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<SystemType> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.required("id", s.id);
  visitor.optional("aliases", s.aliases);
  visitor.required("node", s.node);
  visitor.optional("nodes", s.nodes);
  visitor.optional("reference_nodes", s.reference_nodes);
  visitor.optional("accelerators", s.accelerators);
  visitor.optional("scalable_unit_nodes", s.scalable_unit_nodes);
  visitor.optional("max_scalable_units", s.max_scalable_units);
  visitor.optional("scalable_unit_racks", s.scalable_unit_racks);
  visitor.optional("scalable_unit_accelerators", s.scalable_unit_accelerators);
  visitor.optional("nodes_per_rack", s.nodes_per_rack);
  visitor.optional("rack_trays", s.rack_trays);
  visitor.optional("rack_accelerators", s.rack_accelerators);
  visitor.optional("racks_per_pod", s.racks_per_pod);
  visitor.optional("pod_accelerators", s.pod_accelerators);
  visitor.optional("pods", s.pods);
  visitor.optional("segment_accelerators", s.segment_accelerators);
  visitor.optional("segments", s.segments);
  visitor.optional("servers_per_tor_set", s.servers_per_tor_set);
  visitor.optional("fabric", s.fabric);
  visitor.optional("switch_radix", s.switch_radix);
  visitor.required("topology", s.topology);
  visitor.optional("oversubscription", s.oversubscription);
  visitor.optional("core_oversubscription", s.core_oversubscription);
  visitor.optional("oversubscribed_tier", s.oversubscribed_tier);
  visitor.optional("nics_per_node", s.nics_per_node);
  visitor.optional("scaleout_bits_per_s", s.scale_out_rate);
  visitor.optional("torus_shape", s.torus_shape);
  visitor.optional("cube_shape", s.cube_shape);
  visitor.optional("cubes", s.cubes);
  visitor.optional("optical_switches", s.optical_switches);
  visitor.optional("max_slice_accelerators", s.max_slice_accelerators);
  visitor.optional("max_slice_shape", s.max_slice_shape);
  visitor.optional("multislice_max_accelerators", s.multislice_max_accelerators);
  visitor.optional("slice_shapes", s.slice_shapes);
  visitor.optional("twisted_shapes", s.twisted_shapes);
  visitor.optional("documented_bisection_bytes_per_s", s.documented_bisection);
  visitor.optional("documented_all_reduce_bytes_per_s", s.documented_all_reduce);
  visitor.optional("rack_power_watts", s.rack_power);
  visitor.optional("rack_power_max_watts", s.rack_power_max);
  visitor.optional("power_watts", s.power);
  visitor.optional("cooling", s.cooling);
  visitor.optional("storage", s.storage);
  visitor.optional("availability", s.availability);
  visitor.optional("failures_per_1000_node_days", s.failures_per_1000_node_days);
  visitor.optional("like", s.like);
  describe_inline(visitor, s.provenance);
}

}  // namespace orrery
