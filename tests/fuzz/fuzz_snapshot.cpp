// tests/fuzz/fuzz_snapshot.cpp - any bytes as a snapshot of a small fleet's state: what is taken is
// written again, and is then the same state. The first byte says whether the bytes are whole (w) or
// lack their checksum. In the second case they reach the decoder of every field, but bytes that are
// left over keep them from being taken: restore() trusts what a good checksum covers.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "base/checksum.hpp"
#include "control/encoder.hpp"
#include "control/snapshot.hpp"
#include "fleet/builder.hpp"
#include "hardware/builtin_catalog.hpp"

namespace orrery {
namespace {

constexpr std::string_view kFleet = R"(
apiVersion: orrery/v1
kind: Fleet
name: small
sites:
- name: site
  halls:
  - pods:
    - name: su
      racks:
      - count: 2
        cooling: in-row-or-dense-air
        nodes: [{type: dgx-h100, count: 2}]
  fabrics: [{type: ib-ndr, topology: fat-tree}]
)";

const Topology& fleet() {
  static const Topology kTopology = [] {
    static const Result<Catalog> kCatalog = Catalog::load(builtin_catalog(), "");
    ORRERY_ASSERT(kCatalog, "the built-in catalog loads");
    const Result<Document> document = Document::parse(kFleet, "fleet.yaml");
    ORRERY_ASSERT(document, "the fleet is YAML");
    const Result<FleetSpec> spec = read_fleet_spec(*document);
    ORRERY_ASSERT(spec, "the fleet is one");
    Result<Topology> topology = build_topology(*spec, *kCatalog);
    ORRERY_ASSERT(topology, "the fleet builds");
    return *std::move(topology);
  }();
  return kTopology;
}

const ControlSetup& setup() {
  static const PlaceTree kTree(fleet());
  static const TenantTree kTenants = default_tenant_tree(fleet());
  static const ControlSetup kSetup = [] {
    ControlSetup setup;
    setup.topology = &fleet();
    setup.tree = &kTree;
    setup.tenants = &kTenants;
    setup.policy = *policy_named("easy");
    setup.plans = [](const PlanKey&) {
      return std::make_shared<const PlanEntry>(
          tl::unexpected(Rejection{.kind = RejectionKind::kMemory, .reason = "too large"}));
    };
    return setup;
  }();
  return kSetup;
}

void check_whole(std::string_view bytes) {
  State state(setup());
  if (const Status read = restore(state, bytes); !read) {
    ORRERY_ASSERT(!read.error().message.empty(), "a refusal says why");
    return;
  }
  const std::string written = snapshot_of(state);
  State again(setup());
  ORRERY_ASSERT(restore(again, written), "what is written is read");
  ORRERY_ASSERT(digest_of(again) == digest_of(state), "and is the same state");
}

// No number and no end of a list is 0xff sixteen times.
void check_fields(std::string_view bytes) {
  Encoder out;
  out.raw(bytes);
  out.raw(std::string(16, '\xff'));
  out.fixed(checksum(out.bytes(), 0));
  State state(setup());
  const Status read = restore(state, out.bytes());
  ORRERY_ASSERT(!read && !read.error().message.empty(), "left over bytes are refused");
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.starts_with('w')) {
    orrery::check_whole(bytes.substr(1));
  } else {
    orrery::check_fields(bytes.substr(std::min<std::size_t>(1, size)));
  }
  return 0;
}
