// serving/scaling/shortage.hpp - whether the answers of a tick say anything of what a replica can
// be given.
//
// Requests are late where replicas are given more than they serve, and where there are fewer
// replicas than even the estimate of their capacity asks for: after a step of the load, until more
// of them have started. Only the former says that the estimate is wrong. A shortage begins with a
// tick in which the mean demand of half a minute needs more replicas than are ready. It goes on
// while the replicas then work off what had piled up, though for no longer than it took to pile up,
// as an estimate that is far too high looks alike; and until as many requests have been answered as
// were there then. Owned by an Autoscaler; pure. Cost: O(1).
#pragma once

#include <cstdint>
#include <deque>

namespace orrery {

/// A tick of a service.
struct TickLoad {
  double needed = 0;    ///< replicas that the demand of the tick keeps busy, by the estimate
  double ready = 0;     ///< replicas
  double open = 0;      ///< requests that wait and run, at its end
  double answered = 0;  ///< in the tick
  double holds = 0;     ///< requests that the ready ones may compute at a time within the targets
};

class Shortage {
 public:
  /// Returns whether the answers of this tick are those of a shortage.
  [[nodiscard]] bool add(const TickLoad& tick);

 private:
  std::deque<double> needed_;  ///< at the ticks of half a minute
  std::uint32_t ticks_ = 0;    ///< of a shortage, until there were enough replicas
  std::uint32_t drains_ = 0;   ///< ticks that what has piled up may still take
  double passed_over_ = 0;     ///< answers that are still those of the shortage
};

}  // namespace orrery
