// hardware/node_type.hpp - one type of server, tray or host, and what it holds.
//
// A row of catalog/nodes*.yaml. An unpublished power stays null; an `assumed_watts` range may
// replace it, and code that uses that range reports it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"
#include "hardware/provenance.hpp"

namespace orrery {

/// A range that had to be assumed, and why it is plausible.
struct AssumedPower {
  Watts low;
  Watts high;
  std::string basis;
};

template <class Visitor, SameStruct<AssumedPower> Self>
void describe(Visitor& visitor, Self& a) {
  visitor.required("low", a.low);
  visitor.required("high", a.high);
  visitor.required("basis", a.basis);
}

struct NodeType {
  std::string id;
  std::vector<std::string> aliases;
  std::string accelerator;  ///< id of an Accelerator
  int accelerators_per_node = 0;
  int scale_up_domain_accelerators = 1;
  std::optional<std::string> cpu;
  std::optional<int> cpu_cores;  ///< physical, of all sockets
  std::optional<Bytes> host_memory;
  std::optional<Bytes> cxl_memory;  ///< in addition to host_memory
  std::optional<Bytes> local_nvme;
  int compute_nics = 0;
  BitsPerSecond compute_nic_rate;
  BytesPerSecond compute_bandwidth;  ///< all NICs, per direction
  std::optional<BitsPerSecond> storage_nic_rate;
  std::optional<Watts> max_power;  ///< the rating for which breakers are planned
  std::optional<Watts> typical_training_power;
  std::optional<Watts> idle_power;
  std::optional<AssumedPower> assumed_power;
  std::optional<int> rack_units;
  std::string cooling;  ///< "air" or "direct-liquid"
  std::string scheduling_granularity;
  std::string like;  ///< id of the row from which this one was copied
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<NodeType> Self>
void describe(Visitor& visitor, Self& n) {
  visitor.required("id", n.id);
  visitor.optional("aliases", n.aliases);
  visitor.required("accelerator", n.accelerator);
  visitor.required("accelerators_per_node", n.accelerators_per_node);
  visitor.required("scaleup_domain_accelerators", n.scale_up_domain_accelerators);
  visitor.optional("cpu", n.cpu);
  visitor.optional("cpu_cores", n.cpu_cores);
  visitor.optional("host_dram_bytes", n.host_memory);
  visitor.optional("cxl_memory_bytes", n.cxl_memory);
  visitor.optional("local_nvme_bytes", n.local_nvme);
  visitor.required("compute_nics", n.compute_nics);
  visitor.required("compute_nic_bits_per_s", n.compute_nic_rate);
  visitor.required("compute_bandwidth_per_direction_bytes_per_s", n.compute_bandwidth);
  visitor.optional("storage_nic_bits_per_s", n.storage_nic_rate);
  visitor.optional("max_power_watts", n.max_power);
  visitor.optional("typical_training_power_watts", n.typical_training_power);
  visitor.optional("idle_power_watts", n.idle_power);
  visitor.optional("assumed_watts", n.assumed_power);
  visitor.optional("rack_units", n.rack_units);
  visitor.required("cooling", n.cooling);
  visitor.optional("scheduling_granularity", n.scheduling_granularity);
  visitor.optional("like", n.like);
  describe_inline(visitor, n.provenance);
}

}  // namespace orrery
