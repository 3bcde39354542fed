// fleet/spec/builder.hpp - builds the topology of a fleet from its spec.
#pragma once

#include <string>
#include <unordered_set>

#include "base/error.hpp"
#include "fleet/spec/spec.hpp"
#include "fleet/topology.hpp"
#include "hardware/catalog.hpp"

namespace orrery {

/// Builds the tree, the power and cooling tree and the fabrics, and checks every reference and
/// limit. `catalog` must outlive the topology. Errors name the line of the spec: unknown types,
/// racks over their cooling limit, domains whose limit is below their idle load, accelerators of
/// unknown power, scale-up domains that do not fit their rack or pod, networks too large for their
/// switches. Cost O(nodes + links).
[[nodiscard]] Result<Topology> build_topology(const FleetSpec& spec, const Catalog& catalog);

class TopologyBuilder {
 public:
  TopologyBuilder(const FleetSpec& spec, const Catalog& catalog);
  [[nodiscard]] Result<Topology> build();

 private:
  static constexpr std::size_t kLevels = 5;

  /// A rack while it is being built: the values that the power tree needs.
  struct RackPlan {
    const RackSpec* spec;
    const HallSpec* hall;
    const NodeType* type;  ///< type of its first nodes
    const CoolingClass* cooling;
    Watts max_power;
    Watts typical_power;
    Watts idle_power;
  };

  // The tree (builder.cpp).
  [[nodiscard]] Status check_size() const;
  [[nodiscard]] Status add_site(const SiteSpec& site);
  [[nodiscard]] Status add_hall(const HallSpec& hall);
  [[nodiscard]] Status add_pod(const PodSpec& pod, std::span<const std::uint32_t> groups);
  [[nodiscard]] Status add_rack(const RackSpec& rack, std::span<const std::uint32_t> groups);
  void add_node(std::uint32_t group);
  [[nodiscard]] Result<std::uint32_t> add_group(const NodeGroupSpec& spec, const PodSpec& pod,
                                                const RackSpec& rack);
  [[nodiscard]] Status set_power(const NodeGroupSpec& spec, const NodeType& type,
                                 NodeGroup& group) const;
  [[nodiscard]] Status set_scale_up(const RackSpec& rack, const PodSpec& pod, const NodeType& type,
                                    NodeGroup& group) const;
  [[nodiscard]] Status set_names(const NodeGroupSpec& spec, std::uint64_t expected,
                                 NodeGroup& group);
  void open_domain(Level at, const std::string& name, std::uint32_t ordinal);
  void close_domain(Level at);
  std::vector<Domain>& level(Level at) { return levels_[static_cast<std::size_t>(at)]; }
  void number_domains();
  void place_scale_up_domains();
  void count_types();
  [[nodiscard]] bool pod_has_torus(std::uint32_t group) const { return pod_torus_[group]; }
  FleetTypeId type_id(const NodeType& type);
  std::uint32_t name_id(const std::string& name);

  // Power and cooling (power_builder.cpp).
  [[nodiscard]] Status plan_rack(const RackSpec& rack, std::span<const std::uint32_t> groups);
  [[nodiscard]] Result<const CoolingClass*> cooling_of(const RackSpec& rack,
                                                       const NodeType& first_type) const;
  [[nodiscard]] Status check_rack(const RackPlan& plan) const;
  [[nodiscard]] Status build_power();
  [[nodiscard]] Status build_site_power(const SiteSpec& site, std::uint32_t site_index);
  [[nodiscard]] Status build_hall_power(const HallSpec& hall, const std::string& path,
                                        PowerDomainId above);
  [[nodiscard]] Result<PowerDomainId> loop_of(const RackPlan& rack, const HallSpec& hall,
                                              std::span<const PowerDomainId> loops) const;
  void add_rack_power(std::size_t rack, PowerDomainId above, PowerDomainId loop);
  [[nodiscard]] Status set_site_facts(const SiteSpec& site, std::uint32_t site_index);
  void add_shared_power();
  [[nodiscard]] std::vector<Watts> idle_loads() const;
  [[nodiscard]] Status check_power_limits() const;
  PowerDomainId add_power(PowerDomain domain);

  // Networks (fabric_builder.cpp).
  [[nodiscard]] Status build_fabrics();
  [[nodiscard]] Status add_fabric(const FabricSpec& spec, std::uint32_t site_index);
  [[nodiscard]] Status select_nodes(const FabricSpec& spec, const SiteSpec& site_spec,
                                    FabricInstance& instance) const;
  [[nodiscard]] Result<Fabric> build_graph(const FabricSpec& spec,
                                           const FabricInstance& instance) const;

  const FleetSpec& spec_;
  const Catalog& catalog_;
  Topology topology_;
  std::array<std::vector<Domain>, kLevels> levels_;  ///< parent: position in the level above
  std::array<std::uint32_t, kLevels> first_of_level_{};
  std::vector<RackPlan> racks_;
  std::vector<std::uint32_t> group_sizes_;  ///< nodes so far, by group
  std::vector<bool> pod_torus_;             ///< by group: its scale-up domain is the pod
  std::unordered_set<std::string> node_names_;
  const SiteSpec* site_ = nullptr;  ///< the site being built
  const HallSpec* hall_ = nullptr;  ///< the hall being built
};

}  // namespace orrery
