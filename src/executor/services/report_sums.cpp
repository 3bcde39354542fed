#include "executor/services/report_sums.hpp"

#include <algorithm>

namespace orrery {
namespace {

ServiceCounts& operator+=(ServiceCounts& sum, const ServiceCounts& more) {
  sum.completed += more.completed;
  sum.cancelled += more.cancelled;
  sum.shed += more.shed;
  sum.over_limit += more.over_limit;
  sum.timed += more.timed;
  sum.late += more.late;
  sum.failed += more.failed;
  sum.prompt_tokens += more.prompt_tokens;
  sum.output_tokens += more.output_tokens;
  return sum;
}

/// Adds up what two gateways counted of each tenant; both lists and the sum are by name.
void add(std::vector<CallerCounts>& sum, const std::vector<CallerCounts>& more) {
  for (const CallerCounts& each : more) {
    const auto at = std::ranges::lower_bound(sum, each.name, {}, &CallerCounts::name);
    if (at != sum.end() && at->name == each.name) {
      at->counts += each.counts;
    } else {
      sum.insert(at, each);
    }
  }
}

}  // namespace

void add(ArmReport& sum, const ArmReport& more) {
  sum.requests += more.requests;
  sum.failed += more.failed;
  sum.scores += more.scores;
  sum.score_sum += more.score_sum;
  sum.ttft += more.ttft;
  sum.tpot += more.tpot;
}

void add(ServiceReport& sum, const ServiceReport& more) {
  sum.counts += more.counts;
  sum.window = std::max(sum.window, more.window);
  sum.window_prompt_tokens += more.window_prompt_tokens;
  sum.window_output_tokens += more.window_output_tokens;
  sum.window_requests += more.window_requests;
  sum.waiting += more.waiting;
  sum.ttft += more.ttft;
  sum.tpot += more.tpot;
  add(sum.tenants, more.tenants);
  if (!more.quality) return;
  QualityReport& all = sum.quality ? *sum.quality : sum.quality.emplace();
  all.requests += more.quality->requests;
  all.small += more.quality->small;
  all.compared += more.quality->compared;
  all.worse += more.quality->worse;
  all.bound += more.quality->bound;  // each gateway keeps the promise for its own requests
  all.learning += more.quality->learning;
  all.retreats += more.quality->retreats;
}

}  // namespace orrery
