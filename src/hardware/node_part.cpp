#include "hardware/node_part.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/assert.hpp"

namespace orrery {
namespace {

template <class Q>
void scale(std::optional<Q>& amount, double part) {
  if (amount) amount = *amount * part;
}

void scale_power(NodeType& node, double part) {
  scale(node.max_power, part);
  scale(node.typical_training_power, part);
  scale(node.idle_power, part);
  if (!node.assumed_power) return;
  node.assumed_power->low = node.assumed_power->low * part;
  node.assumed_power->high = node.assumed_power->high * part;
}

}  // namespace

NodeType part_of_node(const NodeType& node, int accelerators) {
  const int all = node.accelerators_per_node;
  ORRERY_ASSERT(accelerators >= 1 && accelerators < all, "a part is less than the whole");
  const double part = static_cast<double>(accelerators) / static_cast<double>(all);
  NodeType made = node;
  made.id = fmt::format("{}-{}", node.id, accelerators);
  made.aliases.clear();
  made.like = node.id;
  made.accelerators_per_node = accelerators;
  made.scale_up_domain_accelerators =
      node.scale_up_domain_accelerators >= accelerators
          ? accelerators
          : std::gcd(node.scale_up_domain_accelerators, accelerators);
  if (node.cpu_cores) made.cpu_cores = std::max(1, *node.cpu_cores * accelerators / all);
  scale(made.host_memory, part);
  scale(made.cxl_memory, part);
  scale(made.local_nvme, part);
  if (made.storage_nic_rate)
    made.storage_nic_rate->quantity = made.storage_nic_rate->quantity * part;
  scale_power(made, part);
  if (node.rack_units) made.rack_units = std::max(1, *node.rack_units * accelerators / all);
  made.provenance.confidence = Confidence::kAssumed;
  made.provenance.source = fmt::format(
      "{} of the {} accelerators of {} and as large a part of all "
      "else",
      accelerators, all, node.id);
  if (node.compute_nics < 1) return made;
  return with_nics(std::move(made), (node.compute_nics * accelerators + all - 1) / all);
}

NodeType with_nics(NodeType node, int nics) {
  ORRERY_ASSERT(node.compute_nics >= 1 && nics >= 1, "a rate is known from a NIC");
  node.compute_bandwidth = node.compute_bandwidth / node.compute_nics * nics;
  node.compute_nics = nics;
  return node;
}

}  // namespace orrery
