#include "node/step_watch.hpp"

#include <algorithm>

namespace orrery {
namespace {

template <class T>
void keep(std::deque<T>& newest, T value) {
  newest.push_back(value);
  if (newest.size() > StepWatch::kNewest) newest.pop_front();
}

/// Returns the median, the lower one of an even number. Precondition: not empty.
template <class T>
T median(const std::deque<T>& values) {
  std::vector<T> sorted(values.begin(), values.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

}  // namespace

void StepWatch::note(const ProgressLine& line, Instant now) {
  heard_ = now;
  if (line.quiet) quiet_ = Duration::from_seconds(*line.quiet);
  if (line.step && (*line.step > step_ || steps_ == 0)) {
    if (steps_ > 0) {
      longest_ = std::max(longest_, now - stepped_);
      keep(between_, now - stepped_);
    }
    step_ = *line.step;
    stepped_ = now;
    ++steps_;
  }
  if (!line.rank || (ranks_.size() >= kRanksMax && !ranks_.contains(*line.rank))) return;
  Rank& rank = ranks_[*line.rank];
  if (line.step) rank.step = line.step;
  if (line.compute) keep(rank.compute, *line.compute);
}

void StepWatch::begin_anew() {
  const Duration quiet = quiet_;
  *this = StepWatch();
  quiet_ = quiet;
}

Instant StepWatch::due() const {
  if (steps_ < kStepsMin) return Instant::max();
  return heard_ + std::max({quiet_, median(between_) * kMedians, longest_ * kPauses});
}

StepWatch::Hang StepWatch::hang(Instant now) const {
  Hang hang{.step = step_, .silent = now - heard_, .usual = median(between_)};
  for (const auto& [number, rank] : ranks_) {
    if (!rank.step || (hang.rank && *rank.step >= hang.step)) continue;
    hang.rank = number;
    hang.step = *rank.step;
  }
  return hang;
}

std::vector<RankPace> StepWatch::paces() const {
  std::vector<RankPace> paces;
  paces.reserve(ranks_.size());
  for (const auto& [number, rank] : ranks_) {
    if (!rank.compute.empty()) paces.push_back({number, median(rank.compute)});
  }
  return paces;
}

}  // namespace orrery
