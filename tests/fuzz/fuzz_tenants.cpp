// tests/fuzz/fuzz_tenants.cpp - any text as the tenants of a small fleet: a tree that builds keeps
// its promises, under any usage.
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/assert.hpp"
#include "base/numbers/rng.hpp"
#include "scheduler/forecast/guaranteed_potential.hpp"
#include "scheduler/tenants/fair_order.hpp"
#include "tests/fuzz/fleet_of_text.hpp"

namespace orrery {
namespace {

const Topology& fleet() {
  static const Topology kTopology = fleet_of_text(kTwoTypes);
  return kTopology;
}

std::vector<std::int64_t> capacity() {
  std::vector<std::int64_t> devices;
  for (std::uint32_t i = 0; i < fleet().type_count(); ++i) {
    devices.push_back(fleet().device_count(Topology::root(), FleetTypeId(i)));
  }
  return devices;
}

// Guarantees of siblings fit into their parent's, or the fleet, and none is above a limit.
void check_promises(const TenantTree& tree) {
  std::vector<FleetTypeId> columns{kAllTypes};
  for (std::uint32_t i = 0; i < tree.type_count(); ++i) columns.push_back(FleetTypeId(i));
  for (const FleetTypeId column : columns) {
    std::vector<std::int64_t> promised(tree.size(), 0);
    for (std::uint32_t i = 1; i < tree.size(); ++i) {
      const TenantId id(i);
      const std::int64_t guarantee = tree.guarantee(id, column).value_or(0);
      ORRERY_ASSERT(tree.parent(id) < id, "parents come before their children");
      ORRERY_ASSERT(tree.find(tree.path(id)) == id, "a tenant is found by its path");
      ORRERY_ASSERT(guarantee <= tree.limit(id, column), "a guarantee is within its limit");
      promised[tree.parent(id).value()] += guarantee;
    }
    const auto all = static_cast<std::int64_t>(fleet().device_count());
    ORRERY_ASSERT(promised[0] <= (column.valid() ? capacity()[column.value()] : all),
                  "the fleet has what is guaranteed");
    for (std::uint32_t i = 1; i < tree.size(); ++i) {
      const auto guarantee = tree.guarantee(TenantId(i), column);
      ORRERY_ASSERT(!guarantee || promised[i] <= *guarantee, "a guarantee holds its children's");
    }
  }
}

// Starts random jobs in the fair order.
void check_usage(const TenantTree& tree, std::uint64_t seed) {
  Rng rng(seed);
  TenantUsage usage(tree);
  std::vector<Waiting> waiting;
  for (std::uint32_t i = 1; i < tree.size(); ++i) {
    for (std::uint32_t t = 0; t < tree.type_count() && tree.is_leaf(TenantId(i)); ++t) {
      if (rng.below(2) == 0) waiting.push_back({TenantId(i), FleetTypeId(t)});
    }
  }
  FairOrder order(usage, capacity(), waiting);
  for (int step = 0; step < 64; ++step) {
    const std::optional<TenantId> next = order.next();
    if (!next) break;
    const FleetTypeId type(static_cast<std::uint32_t>(rng.below(tree.type_count())));
    const std::int64_t room = usage.room(*next, type).devices;
    const auto devices = static_cast<std::int64_t>(1 + rng.below(8));
    if (room < devices) {
      order.exhausted(*next);
      continue;
    }
    const bool right = usage.entitled(*next, type, devices);
    const UsageChange start{*next, type, static_cast<std::int32_t>(rng.below(3)), devices};
    ORRERY_ASSERT(judge_preemption(usage, {&start, 1}) == PreemptionVerdict::kAccepted,
                  "a start takes nothing from anybody");
    usage.apply(start);
    ORRERY_ASSERT(room == kUnlimited || usage.room(*next, type).devices == room - devices,
                  "room shrinks by what is taken");
    ORRERY_ASSERT(!right || usage.above_guarantee(*next, type) == 0,
                  "what is a right is not reclaimed by anybody");
    order.usage_changed(*next);
  }
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<Document> document = Document::parse(text, "tenants.yaml");
  if (!document) return 0;
  const Result<TenantsSpec> spec = read_tenants_spec(*document);
  if (!spec) return 0;
  const Result<TenantTree> tree = build_tenant_tree(*spec, fleet());
  if (!tree) return 0;
  check_promises(*tree);
  check_usage(*tree, size);
  return 0;
}
