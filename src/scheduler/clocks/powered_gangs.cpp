#include "scheduler/clocks/powered_gangs.hpp"

#include <cmath>

namespace orrery {

double work_weight(const JobRequest& job) {
  constexpr double kService = 10;
  constexpr double kFiller = 0.5;
  if (job.kind == JobKind::kServe) return kService;
  return job.kind == JobKind::kBatch && job.preemptible ? kFiller : 1;
}

std::size_t nearest_step(std::span<const ClockStep> ladder, double clock) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < ladder.size(); ++i) {
    if (std::fabs(ladder[i].clock - clock) < std::fabs(ladder[best].clock - clock)) best = i;
  }
  return best;
}

// A plan's draw may differ from that of the ladder, which knows less about the work: the ladder is
// scaled so that at its step the gang draws what it is planned with.
std::span<const ClockStep> PoweredGangs::ladder(const GangClocks& clocks, const GangTerms& terms) {
  const LadderKey key{clocks.model, clocks.clock_bound, terms.clock, terms.draw.value()};
  const auto [found, added] = ladders_.try_emplace(key);
  if (!added) return found->second;
  std::vector<ClockStep>& steps = found->second;
  steps = ladder_of(clocks);
  if (steps.empty() || terms.draw <= Watts()) return steps;
  const std::size_t at = nearest_step(steps, terms.clock);
  const double scale = terms.draw / steps[at].each;
  for (ClockStep& step : steps) step.each = step.each * scale;
  steps[at].each = terms.draw;
  return steps;
}

void PoweredGangs::add(const Work& work) {
  const std::size_t first = list_.size();
  for (std::uint32_t g = 0; g < work.gangs.size(); ++g) {
    const GangTerms& terms = work.terms[g];
    const auto steps = ladder(clocks_of(s_, *work.request, work.gangs[g], terms), terms);
    if (steps.empty()) continue;
    std::size_t at = first;
    while (at < list_.size() && list_[at].ladder.data() != steps.data()) ++at;
    if (at == list_.size()) {
      const std::size_t step = nearest_step(steps, terms.clock);
      std::size_t kept = step;
      while (kept + 1 < steps.size() &&
             steps[step].throughput <= work.slowest * steps[kept + 1].throughput) {
        ++kept;
      }
      list_.push_back({.source = work.source,
                       .job = work.job,
                       .ladder = steps,
                       .was = step,
                       .told = step,
                       .step = step,
                       .kept = kept,
                       .stop_loss = work.stop_loss,
                       .preemptible = work.request->preemptible});
    }
    PoweredGang& entry = list_[at];
    entry.gangs.push_back(g);
    const std::vector<NodeShare> nodes = shares_of(work.gangs[g]);
    entry.nodes.insert(entry.nodes.end(), nodes.begin(), nodes.end());
    entry.value += work_weight(*work.request) * work.gangs[g].allocation.devices();
  }
}

}  // namespace orrery
