// scheduler/moves/improvement.hpp - running jobs that gain from other devices: an elastic job takes
// more of its type; where options are chosen by price, a job may change to another type.
//
// Belongs to one full pass, after the queue. Devices of types that a blocked job asks for are left
// to it. Most running jobs gain nothing elsewhere or find no room. This is shown without taking
// them out of the fleet: by the free counts, which are upper bounds, and by the least that another
// type and the most that this place can cost; first for any place, then for the actual one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "scheduler/moves/stay_memo.hpp"
#include "scheduler/pass/start_search.hpp"

namespace orrery {

class Improvement {
 public:
  Improvement(PassContext& pass, StartSearch& search, StayMemo& stays);

  void improve_running();

 private:
  /// Whether another option may be a gain for a running job.
  enum class Gain : std::uint8_t { kMaybe, kNoRoom, kWorthNothing };
  struct Bounds {
    std::int64_t stay = 0;   ///< most that the rest of the run costs here, micro-dollars
    std::int64_t there = 0;  ///< least that it costs on the other type
  };
  /// What is left of a run and what that costs: micro-dollars (joules if energy is the goal) where
  /// options are priced, else nanoseconds.
  struct Rest {
    Duration length;
    std::int64_t worth = 0;
  };

  bool improve(std::uint32_t running, const std::vector<char>& wanted);
  /// Options that may be better for a job; if none is, stores until when that holds. `wanted`: by
  /// type, whether a blocked job asks for it.
  [[nodiscard]] std::vector<std::uint32_t> options_to_try(std::uint32_t running,
                                                          const std::vector<char>& wanted);
  [[nodiscard]] bool may_change_to(const RunningJob& job, const GangOption& to) const;
  [[nodiscard]] Gain may_gain(const RunningJob& job, std::uint32_t to);
  [[nodiscard]] bool bounded(const RunningJob& job, std::uint32_t to) const;
  [[nodiscard]] Bounds bounds_at(Instant time, const RunningJob& job, std::uint32_t to) const;
  /// When to look again at a job that gains nothing on any other type; now: at the next pass.
  [[nodiscard]] Instant stays_until(const RunningJob& job) const;
  /// A lower bound of the micro-dollars by which the other type is worse for a job than its place.
  [[nodiscard]] std::int64_t margin_at(Instant time, const RunningJob& job, std::uint32_t to) const;
  [[nodiscard]] std::optional<Allocation> place_for(const RunningJob& job, const GangRequest& gang);
  /// How a job whose devices are given back could go on with another option.
  [[nodiscard]] std::optional<PlannedStart> option_of(const RunningJob& job, std::uint32_t option);
  [[nodiscard]] Rest rest_of(const RunningJob& job, const PlacedGang& gang, GangTerms terms) const;
  [[nodiscard]] std::int64_t cost_of_move(const RunningJob& job, const Rest& stay) const;

  PassContext& pass_;
  const Situation& s_;
  const Policy& policy_;
  StartSearch& search_;
  StayMemo& stays_;
  /// Places of gangs that do not depend on what the asking job holds, valid until a job moves;
  /// empty: no place.
  std::map<GangRequest, std::optional<Allocation>> elsewhere_;
};

}  // namespace orrery
