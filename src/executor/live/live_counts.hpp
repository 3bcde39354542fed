// executor/live/live_counts.hpp - counters of a controller since its start, for /metrics: how long
// jobs waited, how long passes and commits took, and how calls ended.
//
// Owned by the controller, on its loop. Soft state: after a restart all begin at zero.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "control/state/state.hpp"

namespace orrery {

/// A histogram of times by upper bounds.
class TimeHistogram {
 public:
  /// Bounds ascend, in seconds; observations above the last one are counted, too.
  explicit TimeHistogram(std::vector<double> bounds)
      : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

  void observe(Duration time);

  [[nodiscard]] std::span<const double> bounds() const { return bounds_; }
  /// Returns the observations up to the bound `at`; at == bounds().size() counts all.
  [[nodiscard]] std::uint64_t up_to(std::size_t at) const;
  [[nodiscard]] std::uint64_t count() const { return up_to(bounds_.size()); }
  [[nodiscard]] double sum() const { return sum_; }

 private:
  std::vector<double> bounds_;
  std::vector<std::uint64_t> counts_;
  double sum_ = 0;  ///< seconds
};

struct LiveCounts {
  using CallEnd = std::pair<std::string, std::string>;  ///< method, code

  /// Counts an event that the state has applied.
  void note(const Event& event, const State& state);

  Instant since;  ///< time of day of the controller's start
  TimeHistogram queue_wait{{1, 10, 60, 300, 1800, 3600, 14'400, 86'400, 604'800}};
  TimeHistogram pass{{0.0001, 0.001, 0.01, 0.1, 1, 10}};
  TimeHistogram full_pass{{0.001, 0.01, 0.1, 1, 10, 60}};
  TimeHistogram commit{{0.0001, 0.001, 0.01, 0.1, 1, 10}};
  std::map<CallEnd, std::uint64_t> calls;
  /// Logs and notes that an agent sent for ranks that its node does not have, by node.
  std::map<NodeId, std::uint64_t> foreign_reports;
};

}  // namespace orrery
