#include "serving/routing/shedding.hpp"

#include <algorithm>
#include <limits>

namespace orrery {

double predicted_ttft(const RouterState& state, const RouteDecision& decision,
                      double requests_ahead) {
  double soonest_s = std::numeric_limits<double>::infinity();
  double requests_s = 0;  // that all replicas end in a second
  for (const RouteCandidate& each : decision.candidates) {
    if (!could_take(each.verdict) && each.verdict != CandidateVerdict::kFull) continue;
    const PredictedRequest& expected = each.expected;
    if (expected.ttft_s <= 0) return 0;
    const double own_s = expected.prompt_s + expected.tpot_s + expected.wait_s - expected.ttft_s;
    soonest_s = std::min(soonest_s, each.expected.ttft_s);
    requests_s += state.replica(each.slot).speed.slots / own_s;
  }
  return requests_s > 0 ? soonest_s + requests_ahead / requests_s : 0;
}

double shed_chance(double times_late, double factor) {
  if (factor <= 0 || times_late <= factor) return 0;
  return 1 - factor / times_late;
}

}  // namespace orrery
