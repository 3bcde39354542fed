// scheduler/tenants/tenants_spec.hpp - the tenants of a fleet as a user writes them (kind:
// Tenants).
//
// Read from YAML by read_tenants_spec, which checks what does not need a fleet;
// scheduler/tenants/tenant_tree.hpp resolves it against one. Every struct stores its position.
// docs/formats.md describes the keys.
// Invariant of a spec that was read: paths are unique, every parent exists, weights are positive,
// counts are not negative.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"

namespace orrery {

/// A number of accelerators and its position in the file.
struct DeviceCount {
  std::int64_t devices = 0;
  SourcePosition where;
};

[[nodiscard]] Status read_value(const DocumentNode& node, DeviceCount& out,
                                FieldReader::Options options);

/// By accelerator type (an id or alias of the catalog), or "*" for all types together.
using DeviceCounts = std::vector<std::pair<std::string, DeviceCount>>;

struct TenantSpec {
  std::string name;    ///< its path below `parent`: "vision", "research/vision"
  std::string parent;  ///< path of another tenant; empty: the fleet
  double weight = 1;   ///< weight of its share relative to its siblings'
  DeviceCounts guarantee;
  DeviceCounts limit;
  bool borrow = true;         ///< whether it may hold more than is guaranteed
  DeviceCounts borrow_limit;  ///< devices beyond its guarantee
  std::string run_as;         ///< POSIX user of its jobs; empty: its parent's, if any
  SourcePosition where;
};

template <class Visitor, SameStruct<TenantSpec> Self>
void describe(Visitor& visitor, Self& t) {
  visitor.required("name", t.name);
  visitor.optional("parent", t.parent);
  visitor.optional("weight", t.weight);
  visitor.optional("guarantee", t.guarantee);
  visitor.optional("limit", t.limit);
  visitor.optional("borrow", t.borrow);
  visitor.optional("borrow_limit", t.borrow_limit);
  visitor.optional("run_as", t.run_as);
}

struct TenantsSpec {
  std::string api_version = "orrery/v1";
  std::string kind = "Tenants";
  std::string name;
  std::string description;
  Seconds half_life{7 * 86400.0};  ///< time in which past usage loses half its weight
  std::vector<TenantSpec> tenants;
  SourcePosition where;
};

template <class Visitor, SameStruct<TenantsSpec> Self>
void describe(Visitor& visitor, Self& t) {
  visitor.required("apiVersion", t.api_version);
  visitor.required("kind", t.kind);
  visitor.required("name", t.name);
  visitor.optional("description", t.description);
  visitor.optional("half_life", t.half_life);
  visitor.required("tenants", t.tenants);
}

/// Errors with file:line:column and the field. Types are not checked, since that needs a fleet.
[[nodiscard]] Result<TenantsSpec> read_tenants_spec(const Document& document);

/// One tenant's place in the tree.
struct TenantPlace {
  std::string path;        ///< "research/vision"; "" for the root
  std::size_t parent = 0;  ///< position among the places
  std::size_t entry = 0;   ///< position in TenantsSpec::tenants; meaningless for the root
};

/// The tree that names and parents describe: the root first, then level by level, so that parents
/// come before their children and siblings are adjacent, in the order of the file. Errors: a bad
/// name, a duplicate path, an unknown parent, a cycle, a tree too deep or too large. O(n log n).
[[nodiscard]] Result<std::vector<TenantPlace>> place_tenants(const TenantsSpec& spec);

}  // namespace orrery
