// hardware/link.hpp - what carries bytes: scale-out fabrics, scale-up links, host links, memory
// tiers.
//
// Rows of catalog/fabrics.yaml and catalog/memory-tiers.yaml. Bandwidths are per direction.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"
#include "hardware/provenance.hpp"

namespace orrery {

enum class FabricKind { kInfiniband, kRoce, kSlingshot, kEfa, kEthernet, kOmniPath };

inline std::array<EnumWord<FabricKind>, 6> enum_words(FabricKind) {
  return {{{"infiniband", FabricKind::kInfiniband},
           {"roce", FabricKind::kRoce},
           {"slingshot", FabricKind::kSlingshot},
           {"efa", FabricKind::kEfa},
           {"ethernet", FabricKind::kEthernet},
           {"omni-path", FabricKind::kOmniPath}}};
}

/// How packets choose among equal paths, which determines the cost of collisions.
enum class Routing { kAdaptive, kEcmp, kSpray, kStatic };

inline std::array<EnumWord<Routing>, 4> enum_words(Routing) {
  return {{{"adaptive", Routing::kAdaptive},
           {"ecmp", Routing::kEcmp},
           {"spray", Routing::kSpray},
           {"static", Routing::kStatic}}};
}

struct ScaleOutFabric {
  std::string id;
  std::string name;
  std::vector<std::string> aliases;
  FabricKind kind = FabricKind::kEthernet;
  BitsPerSecond port_rate;
  BytesPerSecond port_bandwidth;
  std::optional<int> switch_radix;
  std::optional<BitsPerSecond> switch_capacity;  ///< ports x rate, one direction
  std::optional<Nanoseconds> switch_latency;
  std::optional<Microseconds> small_message_latency;  ///< one way, under one leaf
  std::optional<Watts> switch_power;
  std::optional<std::string> in_network_reduction;  ///< "SHARPv3", or none
  std::optional<Routing> routing;
  std::optional<bool> rdma;
  std::optional<bool> gpudirect;
  std::vector<std::string> typical_topologies;
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<ScaleOutFabric> Self>
void describe(Visitor& visitor, Self& f) {
  visitor.required("id", f.id);
  visitor.required("name", f.name);
  visitor.optional("aliases", f.aliases);
  visitor.required("kind", f.kind);
  visitor.required("port_bits_per_s", f.port_rate);
  visitor.required("port_bandwidth_per_direction_bytes_per_s", f.port_bandwidth);
  visitor.optional("switch_radix_ports", f.switch_radix);
  visitor.optional("switch_capacity_bits_per_s", f.switch_capacity);
  visitor.optional("switch_latency_ns", f.switch_latency);
  visitor.optional("end_to_end_small_message_latency_us", f.small_message_latency);
  visitor.optional("switch_power_watts", f.switch_power);
  visitor.optional("in_network_reduction", f.in_network_reduction);
  visitor.optional("routing", f.routing);
  visitor.optional("rdma", f.rdma);
  visitor.optional("gpudirect", f.gpudirect);
  visitor.optional("typical_topologies", f.typical_topologies);
  describe_inline(visitor, f.provenance);
}

struct ScaleUpLink {
  std::string id;
  BytesPerSecond link_bandwidth;
  int links_per_accelerator = 0;
  std::optional<BytesPerSecond> inter_node_link_bandwidth;
  std::optional<int> inter_node_links_per_accelerator;
  BytesPerSecond accelerator_bandwidth;
  std::optional<int> switch_ports;  ///< none: the accelerators are connected directly
  int domain_max = 0;
  Microseconds small_message_latency;
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<ScaleUpLink> Self>
void describe(Visitor& visitor, Self& l) {
  visitor.required("id", l.id);
  visitor.required("link_bandwidth_per_direction_bytes_per_s", l.link_bandwidth);
  visitor.required("links_per_accelerator", l.links_per_accelerator);
  visitor.optional("inter_node_link_bandwidth_per_direction_bytes_per_s",
                   l.inter_node_link_bandwidth);
  visitor.optional("inter_node_links_per_accelerator", l.inter_node_links_per_accelerator);
  visitor.required("accelerator_bandwidth_per_direction_bytes_per_s", l.accelerator_bandwidth);
  visitor.optional("switch_ports", l.switch_ports);
  visitor.required("max_domain_accelerators", l.domain_max);
  visitor.required("small_message_latency_us", l.small_message_latency);
  describe_inline(visitor, l.provenance);
}

struct HostLink {
  std::string id;
  std::optional<BytesPerSecond> bandwidth;
  std::optional<Nanoseconds> latency;
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<HostLink> Self>
void describe(Visitor& visitor, Self& l) {
  visitor.required("id", l.id);
  visitor.optional("bandwidth_per_direction_bytes_per_s", l.bandwidth);
  visitor.optional("latency_ns", l.latency);
  describe_inline(visitor, l.provenance);
}

/// Where bytes are stored: an HBM stack, a DRAM socket, a CXL expander, a drive.
struct MemoryTier {
  std::string id;
  std::string name;
  std::string kind;
  std::optional<Bytes> capacity;
  std::optional<BytesPerSecond> read_bandwidth;
  std::optional<BytesPerSecond> write_bandwidth;
  std::optional<Nanoseconds> latency;
  std::string attach;
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<MemoryTier> Self>
void describe(Visitor& visitor, Self& m) {
  visitor.required("id", m.id);
  visitor.required("name", m.name);
  visitor.required("kind", m.kind);
  visitor.optional("capacity_bytes", m.capacity);
  visitor.optional("read_bandwidth_bytes_per_s", m.read_bandwidth);
  visitor.optional("write_bandwidth_bytes_per_s", m.write_bandwidth);
  visitor.optional("latency_ns", m.latency);
  visitor.required("attach", m.attach);
  describe_inline(visitor, m.provenance);
}

}  // namespace orrery
