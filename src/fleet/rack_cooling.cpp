#include "fleet/rack_cooling.hpp"

#include <algorithm>
#include <cmath>

namespace orrery {

Watts planned_power(const NodeType& type) {
  if (type.max_power) return *type.max_power;
  return type.assumed_power ? type.assumed_power->high : Watts(0);
}

bool suits(const CoolingClass& cooling, const NodeType& type) {
  if (type.cooling != "air") return cooling.id.starts_with("direct-liquid");
  return cooling.id.starts_with("air") || cooling.id == "in-row-or-dense-air";
}

const CoolingClass* least_cooling(const Catalog& catalog, const NodeType& type, Watts load) {
  const CoolingClass* least = nullptr;
  for (const CoolingClass& each : catalog.all<CoolingClass>()) {
    if (!suits(each, type) || each.max_rack < load) continue;
    if (least == nullptr || each.max_rack < least->max_rack) least = &each;
  }
  return least;
}

const CoolingClass* densest_cooling(const Catalog& catalog, const NodeType& type) {
  const CoolingClass* densest = nullptr;
  for (const CoolingClass& each : catalog.all<CoolingClass>()) {
    if (!suits(each, type)) continue;
    if (densest == nullptr || each.max_rack > densest->max_rack) densest = &each;
  }
  return densest;
}

int rack_nodes_max(const Catalog& catalog, const NodeType& type, int most) {
  const CoolingClass* densest = densest_cooling(catalog, type);
  const Watts room = densest == nullptr ? Watts(0) : densest->max_rack;
  int fit = most;
  if (const Watts each = planned_power(type); each > Watts(0)) {
    fit = static_cast<int>(std::min<double>(most, std::floor(room / each)));
  }
  if (type.scale_up_domain_accelerators > type.accelerators_per_node) {
    fit = std::min(fit, type.scale_up_domain_accelerators / type.accelerators_per_node);
  }
  return std::max(fit, 1);
}

}  // namespace orrery
