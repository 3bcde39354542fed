// scheduler/tenants/tenants_test.hpp - a fleet of two types and trees of tenants on it, for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/numbers/rng.hpp"
#include "fleet/fleet_test.hpp"
#include "scheduler/tenants/tenant_tree.hpp"

namespace orrery {

inline constexpr FleetTypeId kH100{0};
inline constexpr FleetTypeId kA100{1};

/// 128 H100 and 64 A100.
inline const Topology& two_types() {
  static const Topology kTopology = built(
      one_hall("    - name: pod\n      racks:\n      - count: 4\n        cooling: "
               "in-row-or-dense-air\n        nodes:\n"
               "        - {type: dgx-h100, count: 4}\n        - {type: dgx-a100-80g, count: 2}\n"));
  return kTopology;
}

inline Result<TenantTree> tree_of_yaml(const std::string& tenants) {
  Result<Document> document = Document::parse(
      "apiVersion: orrery/v1\nkind: Tenants\nname: lab\nhalf_life: 1 h\ntenants:\n" + tenants,
      "tenants.yaml");
  if (!document) return forward_error(document);
  Result<TenantsSpec> spec = read_tenants_spec(*document);
  if (!spec) return forward_error(spec);
  return build_tenant_tree(*spec, two_types());
}

/// A tree that must build; its first tenant stands in line 6.
inline TenantTree tree_of(const std::string& tenants) {
  Result<TenantTree> tree = tree_of_yaml(tenants);
  EXPECT_TRUE(tree) << (tree ? "" : tree.error().text());
  return tree ? *std::move(tree) : default_tenant_tree(two_types());
}

inline TenantId tenant(const TenantTree& tree, const std::string& path) {
  const std::optional<TenantId> id = tree.find(path);
  EXPECT_TRUE(id) << path;
  return id.value_or(TenantTree::root());
}

/// A tree of `size` tenants with random parents and weights; half of the leaves have guarantees,
/// all of which fit into the fleet.
inline TenantTree random_tree(Rng& rng, std::uint64_t size) {
  std::string yaml;
  std::vector<std::string> paths{""};
  std::vector<std::uint64_t> parents{0};
  std::vector<bool> leaf(size + 1, true);
  for (std::uint64_t i = 1; i <= size; ++i) {
    const std::uint64_t parent = rng.below(2) == 0 ? 0 : rng.below(i);
    const bool deep = std::count(paths[parent].begin(), paths[parent].end(), '/') > 4;
    parents.push_back(deep ? 0 : parent);
    leaf[parents[i]] = false;
    paths.push_back((parents[i] == 0 ? "" : paths[parents[i]] + "/") + "t" + std::to_string(i));
  }
  const std::uint64_t h100_most = 128 / size;
  const std::uint64_t a100_most = 64 / size;
  for (std::uint64_t i = 1; i <= size; ++i) {
    yaml += "- {name: " + paths[i] + ", weight: " + std::to_string(1 + rng.below(4));
    if (leaf[i] && rng.below(2) == 0) {
      const std::uint64_t h100 = rng.below(h100_most + 1);
      const std::uint64_t spare = rng.below(a100_most + 1);
      yaml += ", guarantee: {h100: " + std::to_string(h100);
      if (rng.below(2) == 0) yaml += ", '*': " + std::to_string(h100 + spare);
      yaml += "}";
    }
    yaml += "}\n";
  }
  return tree_of(yaml);
}

}  // namespace orrery
