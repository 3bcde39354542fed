#include "control/nodes/claims.hpp"

#include <algorithm>

namespace orrery {
namespace {

/// Returns the top-level tenant above `tenant`, or the root itself. A top-level tenant may create
/// any number of tenants below it. O(depth).
TenantId top_level(const TenantTree& tenants, TenantId tenant) {
  while (tenant != TenantTree::root() && tenants.parent(tenant) != TenantTree::root()) {
    tenant = tenants.parent(tenant);
  }
  return tenant;
}

bool same_attempt(const Claim& claim, const NodeAccused& other) {
  return claim.job == other.job && claim.attempt == other.attempt && claim.node == other.node;
}

/// Whether the job has already used up the effect of a claim.
bool used_up(const State& state, const NodeAccused& claim, Instant now) {
  const auto claims = state.claims();
  return std::any_of(claims.begin(), claims.end(), [&](const Claim& each) {
    const bool refuted = each.verdict == ClaimVerdict::kCleared;
    if (each.job != claim.job || (same_attempt(each, claim) && !refuted)) return false;
    const bool believed = refuted || each.verdict == ClaimVerdict::kExcused ||
                          each.verdict == ClaimVerdict::kSuspected;
    const bool forever =
        claim.verdict == ClaimVerdict::kSuspected && each.verdict != ClaimVerdict::kExcused;
    return believed && (forever || now - each.at <= state.setup().timing.claim_window);
  });
}

/// Whether a claim of a job may take that node out of service.
bool may_suspect(const State& state, const NodeAccused& claim, Instant now) {
  const NodeHealth health = state.node(claim.node).health;
  const bool in_service = health == NodeHealth::kReady || health == NodeHealth::kSuspect ||
                          health == NodeHealth::kDraining || health == NodeHealth::kDrained;
  if (!in_service) return false;
  const ControlTiming& timing = state.setup().timing;
  const TenantId tenant = top_level(state.tenants(), state.job(claim.job).tenant);
  std::uint32_t cleared = 0;
  for (const Claim& each : state.claims()) {
    if (top_level(state.tenants(), each.tenant) != tenant) continue;
    if (each.verdict == ClaimVerdict::kSuspected) return false;
    const bool recent = now - each.at <= timing.claim_window;
    cleared += each.verdict == ClaimVerdict::kCleared && recent ? 1 : 0;
  }
  return cleared < timing.claims_cleared;
}

}  // namespace

ClaimVerdict Claims::judge(const NodeAccused& claim) {
  const auto claims = state_.claims();
  const auto before = std::find_if(claims.begin(), claims.end(), [&](const Claim& each) {
    return same_attempt(each, claim) && each.verdict != ClaimVerdict::kCleared;
  });
  const bool heard = before != claims.end();
  if (heard && (before->verdict == ClaimVerdict::kRefused || before->verdict >= claim.verdict)) {
    return before->verdict;
  }
  NodeAccused judged = claim;
  const bool suspects = claim.verdict == ClaimVerdict::kSuspected;
  if (suspects && !may_suspect(state_, claim, recorder_.now()))
    judged.verdict = ClaimVerdict::kExcused;
  if (used_up(state_, claim, recorder_.now())) judged.verdict = ClaimVerdict::kRefused;
  if (heard && judged.verdict <= before->verdict) return before->verdict;
  const bool told = std::any_of(claims.begin(), claims.end(),
                                [&](const Claim& each) { return same_attempt(each, claim); });
  if (told && judged.verdict == ClaimVerdict::kRefused) return judged.verdict;
  if (judged.verdict == ClaimVerdict::kSuspected) {
    const Blame blame{FaultLayer::kNone, claim.node, claim.evidence};
    recorder_.emit(NodeChanged{claim.node, NodeHealth::kQuarantined, blame, false, {}});
    emptying_.add(claim.node);
  }
  recorder_.emit(judged);
  return judged.verdict;
}

RanksEnded Claims::judged(const RanksEnded& seen) {
  RanksEnded end = seen;
  if (end.kind != ExitKind::kClaim) return end;
  const bool known = end.blame.node.valid() && recorder_.has_node(end.blame.node);
  const ClaimVerdict verdict = known ? judge({end.job, end.attempt, end.blame.node,
                                              ClaimVerdict::kExcused, end.blame.evidence})
                                     : ClaimVerdict::kRefused;
  end.kind = verdict == ClaimVerdict::kRefused ? ExitKind::kProgram : ExitKind::kInfra;
  if (end.kind == ExitKind::kProgram) {
    end.blame.layer = FaultLayer::kProgram;
    end.blame.evidence +=
        "; an earlier fault that the program laid at a machine was believed, "
        "this one is not";
  }
  return end;
}

std::vector<NodeId> Claims::suspected_by(JobId id) const {
  std::vector<NodeId> nodes;
  for (const Claim& each : state_.claims()) {
    if (each.job == id && each.verdict == ClaimVerdict::kSuspected) nodes.push_back(each.node);
  }
  return nodes;
}

}  // namespace orrery
