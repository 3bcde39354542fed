// node/step_watch.hpp - what the steps that ranks report show: whether the ranks hang, and how long
// each computes in a step.
//
// Owned by the keeper, for the ranks of its node. A rank that reports its steps stands for those
// that wait for it, so ranks that report nothing are not watched. Time is of a clock that stops
// while the machine sleeps. Cost: O(1) a line, O(ranks) a question.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "base/time.hpp"
#include "node/keeper/keeper_wire.hpp"
#include "node/progress_stream.hpp"

namespace orrery {

class StepWatch {
 public:
  /// Ranks that have reported kStepsMin steps hang after a silence longer than all of these.
  /// Or the time that they report (`quiet`).
  static constexpr Duration kQuietMin = Duration::seconds(60);
  static constexpr int kMedians = 10;  ///< of the time between two reports of a newer step
  static constexpr int kPauses = 2;    ///< of the longest such time so far: ranks that resumed once
                                       ///< may again
  static constexpr std::uint32_t kStepsMin = 3;
  static constexpr std::size_t kNewest = 20;      ///< steps that a median is taken over
  static constexpr std::size_t kRanksMax = 4096;  ///< ranks that are told apart, whatever comes in

  void note(const ProgressLine& line, Instant now);
  /// Begins after a change of membership or a restart: of the history only `quiet` still counts.
  void begin_anew();

  /// Returns when the ranks count as hanging, unless one reports before; Instant::max(): never.
  [[nodiscard]] Instant due() const;
  /// Counts the silence from `now` on: before it nothing could be sent or received.
  void excuse(Instant now) { heard_ = now; }

  struct Hang {
    std::optional<std::uint32_t> rank;  ///< the furthest behind; none: lines have no rank
    std::uint64_t step = 0;             ///< its last reported step
    Duration silent;
    Duration usual;  ///< the median between two steps
  };
  [[nodiscard]] Hang hang(Instant now) const;

  /// Returns paces ascending by rank.
  [[nodiscard]] std::vector<RankPace> paces() const;

 private:
  struct Rank {
    std::optional<std::uint64_t> step;
    std::deque<double> compute;  ///< the newest
  };

  std::map<std::uint32_t, Rank> ranks_;
  std::uint64_t step_ = 0;  ///< the furthest
  std::uint32_t steps_ = 0;
  std::deque<Duration> between_;  ///< the newest
  Duration longest_;
  Duration quiet_ = kQuietMin;
  Instant stepped_;
  Instant heard_;
};

}  // namespace orrery
