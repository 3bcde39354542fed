// node/step_watch.hpp - what the steps that ranks tell say of them: whether they hang, and how long
// each computes in a step.
//
// Owned by the keeper, of the ranks of its node. A rank that tells of its steps speaks for those
// that wait for it, so those who tell nothing are not watched.
// Time is one that stands while the machine sleeps. Cost: O(1) a line, O(ranks) a question.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "base/time.hpp"
#include "node/keeper_wire.hpp"
#include "node/progress_stream.hpp"

namespace orrery {

class StepWatch {
 public:
  /// Without a word for all of these at once, ranks that have told kStepsMin steps hang.
  static constexpr Duration kQuietMin = Duration::seconds(60);  ///< or what they say (`quiet`)
  static constexpr int kMedians = 10;  ///< of the time between two words of a newer step
  static constexpr int kPauses = 2;    ///< of the longest such time so far: who came back once may
  static constexpr std::uint32_t kStepsMin = 3;
  static constexpr std::size_t kNewest = 20;      ///< steps that a median is of
  static constexpr std::size_t kRanksMax = 4096;  ///< that are told apart, whatever comes in

  void note(const ProgressLine& line, Instant now);
  /// Others go on, or they begin in another way: of what was only `quiet` still counts.
  void begin_anew();

  /// When they hang, unless one says something before; Instant::max(): never.
  [[nodiscard]] Instant due() const;
  /// The silence counts from here on: nobody could say or hear anything before.
  void excuse(Instant now) { heard_ = now; }

  struct Hang {
    std::optional<std::uint32_t> rank;  ///< the furthest behind; none: they do not say who they are
    std::uint64_t step = 0;             ///< that it told last
    Duration silent;
    Duration usual;  ///< the median between two steps
  };
  [[nodiscard]] Hang hang(Instant now) const;

  /// Ascending by rank.
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
