// hardware/fat_tree_vector.hpp - switch and cable counts published by vendors, to check fabric
// builders.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/format/field_reader.hpp"
#include "hardware/provenance.hpp"

namespace orrery {

struct FatTreeCount {
  int nodes = 0;
  int accelerators = 0;
  int leaves = 0;
  int spines = 0;
  std::optional<int> cores;
  std::optional<int> leaf_spine_cables;
  std::optional<int> spine_core_cables;
};

template <class Visitor, SameStruct<FatTreeCount> Self>
void describe(Visitor& visitor, Self& c) {
  visitor.required("nodes", c.nodes);
  visitor.required("gpus", c.accelerators);
  visitor.required("leaf", c.leaves);
  visitor.required("spine", c.spines);
  visitor.optional("core", c.cores);
  visitor.optional("leaf_spine_cables", c.leaf_spine_cables);
  visitor.optional("spine_core_cables", c.spine_core_cables);
}

/// The table of one reference architecture.
struct FatTreeVector {
  int switch_radix = 0;
  int nics_per_node = 0;
  std::vector<FatTreeCount> rows;
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<FatTreeVector> Self>
void describe(Visitor& visitor, Self& v) {
  visitor.required("switch_radix_ports", v.switch_radix);
  visitor.required("nics_per_node", v.nics_per_node);
  visitor.required("rows", v.rows);
  describe_inline(visitor, v.provenance);
}

}  // namespace orrery
