#include "twin/protocol/protocol_site.hpp"

#include <fmt/format.h>

#include "base/format/document.hpp"
#include "fleet/spec/builder.hpp"
#include "perf/builtin_calibration.hpp"
#include "perf/calibration.hpp"

namespace orrery {
namespace {

constexpr const char* kFleet = R"(apiVersion: orrery/v1
kind: Fleet
name: small
sites:
- name: lab
  power_cap: 1 MW
  halls:
  - name: hall
    pods:
    - name: pod
      racks:
      - count: {}
        nodes: [{{type: dgx-h100, count: 1}}]
)";

}  // namespace

Result<std::unique_ptr<ProtocolSite>> ProtocolSite::make(const Catalog& catalog,
                                                         std::size_t nodes) {
  Result<Document> document =
      Document::parse(fmt::format(fmt::runtime(kFleet), nodes), "small.yaml");
  if (!document) return forward_error(document);
  Result<FleetSpec> spec = read_fleet_spec(*document);
  if (!spec) return forward_error(spec);
  Result<Topology> topology = build_topology(*spec, catalog);
  if (!topology) return forward_error(topology);
  Result<Calibration> calibration = Calibration::load(builtin_calibration(), {});
  if (!calibration) return forward_error(calibration);
  auto site = std::make_unique<ProtocolSite>(*std::move(topology));
  Result<FleetCosts> costs = FleetCosts::make({catalog, *calibration}, site->topology_, {});
  if (!costs) return forward_error(costs);
  site->costs_ = *std::move(costs);
  return site;
}

ProtocolSite::ProtocolSite(Topology topology)
    : topology_(std::move(topology)),
      tree_(topology_),
      power_(topology_),
      tenants_(default_tenant_tree(topology_)) {}

ControlSetup ProtocolSite::setup(const Policy& policy) const {
  ControlSetup setup;
  setup.topology = &topology_;
  setup.tree = &tree_;
  setup.tenants = &tenants_;
  setup.policy = policy;
  setup.timing.grace = Duration::seconds(10);
  return setup;
}

void ProtocolSite::limit_power(ControlSetup& setup) const {
  setup.power = &power_;
  setup.costs = &costs_;
}

}  // namespace orrery
