#include "scheduler/price/time_shift.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "scheduler/tenants/slack.hpp"

namespace orrery {
namespace {

struct GridCost {
  std::int64_t grid = 0;  ///< electricity and carbon, micro-dollars
  std::int64_t wait = 0;  ///< the owner's time
};

GridCost cost_after(const PriceContext& context, const WaitingJob& job, const StartNow& now,
                    Duration wait) {
  GridCost cost;
  for (std::size_t i = 0; i < now.gangs.size(); ++i) {
    const Price price = price_of_wait(context, job, {now.gangs[i], now.terms[i], {}}, wait);
    cost.grid += price[PriceTerm::kEnergy] + price[PriceTerm::kCarbon];
    if (job.request->goal == JobGoal::kCost) cost.wait = price[PriceTerm::kTime];
  }
  return cost;
}

/// Waits up to `most` after which the run begins or ends with a step, ascending.
class Waits {
 public:
  Waits(Instant now, Duration length, Duration most) : now_(now), length_(length), most_(most) {}

  template <class Value>
  void add(const StepSeries<Value>* series) {
    if (series == nullptr) return;
    for (const auto& step : series->steps()) {
      add(step.from - now_);
      add(step.from - now_ - length_);
    }
  }
  void add(Duration wait) {
    if (wait > Duration() && wait <= most_) waits_.push_back(wait);
  }
  [[nodiscard]] std::vector<Duration> sorted() && {
    std::sort(waits_.begin(), waits_.end());
    waits_.erase(std::unique(waits_.begin(), waits_.end()), waits_.end());
    if (waits_.size() > kShiftsMost) waits_.resize(kShiftsMost);
    return std::move(waits_);
  }

 private:
  Instant now_;
  Duration length_;
  Duration most_;
  std::vector<Duration> waits_;
};

}  // namespace

std::optional<LaterStart> later_start(const PriceContext& context, const WaitingJob& job,
                                      const StartNow& now) {
  constexpr std::int64_t kLeastPart = 20;
  const Situation& s = context.situation;
  const JobRequest& request = *job.request;
  const bool shifts = request.deadline && request.goal != JobGoal::kTime &&
                      request.kind != JobKind::kServe && now.length &&
                      (s.electricity != nullptr || s.carbon != nullptr) &&
                      context.policy.patience > Seconds(0);
  if (!shifts) return std::nullopt;
  const Slack slack = slack_after(*request.deadline - s.now, *now.length, context.policy);
  const Duration most = slack.spare();
  if (most <= Duration()) return std::nullopt;
  Waits waits(s.now, *now.length, most);
  waits.add(s.electricity);
  waits.add(s.carbon);
  waits.add(most);
  const GridCost present = cost_after(context, job, now, Duration());
  std::optional<LaterStart> best;
  std::int64_t gain = 0;
  for (const Duration wait : std::move(waits).sorted()) {
    const GridCost later = cost_after(context, job, now, wait);
    const std::int64_t saved = present.grid - later.grid;
    if (saved - later.wait <= gain || saved < std::abs(present.grid) / kLeastPart) continue;
    gain = saved - later.wait;
    best = LaterStart{s.now + wait, saved};
  }
  return best;
}

}  // namespace orrery
