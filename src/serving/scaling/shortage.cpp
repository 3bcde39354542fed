#include "serving/scaling/shortage.hpp"

#include <algorithm>
#include <numeric>

namespace orrery {
namespace {

/// A queue evens out what is shorter.
constexpr std::size_t kHalfMinuteTicks = 6;

}  // namespace

bool Shortage::add(const TickLoad& tick) {
  needed_.push_back(tick.needed);
  if (needed_.size() > kHalfMinuteTicks) needed_.pop_front();
  const double mean =
      std::accumulate(needed_.begin(), needed_.end(), 0.0) / static_cast<double>(needed_.size());
  if (mean > tick.ready) {
    drains_ = ++ticks_;
    passed_over_ = tick.open;
    return true;
  }
  ticks_ = 0;
  if (drains_ > 0 && tick.open > tick.holds) {
    --drains_;
    passed_over_ = tick.open;
    return true;
  }
  drains_ = 0;
  const bool passes = passed_over_ > 0;
  passed_over_ = std::max(passed_over_ - tick.answered, 0.0);
  return passes;
}

}  // namespace orrery
