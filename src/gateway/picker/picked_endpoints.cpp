#include "gateway/picker/picked_endpoints.hpp"

#include <algorithm>

#include "base/system/socket_address.hpp"

namespace orrery {
namespace {

/// Endpoints that Envoy is told of; it tries them in their order.
constexpr std::size_t kEndpointsMax = 4;

bool is_eligible(const std::string& endpoint,
                 const std::optional<std::vector<std::string>>& subset) {
  if (subset && std::ranges::find(*subset, endpoint) == subset->end()) return false;
  return SocketAddress::parse("tcp:" + endpoint).has_value();
}

/// The replica that is chosen, then those behind it.
bool is_before(const RouteCandidate& a, const RouteCandidate& b) {
  const bool a_chosen = a.verdict == CandidateVerdict::kChosen;
  const bool b_chosen = b.verdict == CandidateVerdict::kChosen;
  if (a_chosen != b_chosen) return a_chosen;
  if (a.expected.wait_s != b.expected.wait_s) return a.expected.wait_s < b.expected.wait_s;
  return a.tokens != b.tokens ? a.tokens < b.tokens : a.replica < b.replica;
}

}  // namespace

std::string PickedEndpoints::text() const {
  std::string joined;
  for (const PickedEndpoint& each : endpoints) {
    if (!joined.empty()) joined.push_back(',');
    joined.append(each.address);
  }
  return joined;
}

PickedEndpoints pick_endpoints(const RouterState& router, RouteQuery query,
                               const std::optional<std::vector<std::string>>& subset) {
  PickedEndpoints picked;
  const std::span<const std::uint32_t> slots = router.slots_of(query.service);
  std::vector<ReplicaKey> excluded;
  for (const std::uint32_t slot : slots) {
    const RouterReplica& replica = router.replica(slot);
    const bool eligible = is_eligible(replica.endpoint, subset);
    picked.any_eligible = picked.any_eligible || eligible;
    if (!eligible) excluded.push_back(replica.key);
  }
  query.excluded = excluded;
  picked.decision = choose(router, query);
  if (picked.decision.outcome != RouteOutcome::kReplica) return picked;
  std::vector<RouteCandidate> usable;
  for (const RouteCandidate& each : picked.decision.candidates) {
    if (could_take(each.verdict)) usable.push_back(each);
  }
  std::ranges::sort(usable, is_before);
  usable.resize(std::min(usable.size(), kEndpointsMax));
  for (const RouteCandidate& each : usable) {
    const auto slot = std::ranges::find_if(
        slots, [&](std::uint32_t at) { return router.replica(at).key == each.replica; });
    picked.endpoints.push_back({each.replica, router.replica(*slot).endpoint});
  }
  return picked;
}

}  // namespace orrery
