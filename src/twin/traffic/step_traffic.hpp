// twin/traffic/step_traffic.hpp - what the nodes of a gang send each other in one step, and how
// long the step takes when the network gives them less.
//
// A value, made once a placement: from a training plan by training_traffic, or by hand where only
// bytes and times are known. Pure. docs/model/contention.md derives the formulas.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/quantity.hpp"

namespace orrery {

struct Breakdown;
struct ParallelPlan;
class TrainingModel;

/// The pattern of sending. Nodes of a gang are in topology order.
enum class ExchangePattern {
  kShift,   ///< each to the node `reach` further: rings (1 where ranks of neighbours meet), stages
  kSpread,  ///< each to all of the `reach` neighbouring nodes it forms a group with, evenly
};

struct Exchange {
  ExchangePattern pattern = ExchangePattern::kShift;
  double reach = 1;  ///< in nodes
  Bytes node_bytes;  ///< sent by a node in a step
  Seconds hideable;  ///< computation of the step that it may hide behind
};

/// How many nodes' worth of an exchange leaves a contiguous part of `inside` of the gang's `all`
/// nodes. A shift: min(inside, reach, all - inside). A spread in groups of m = min(reach, all),
/// aligned to the part where they fit into it: inside (m - inside) / m where inside < m, else 0.
[[nodiscard]] double crossing_nodes(const Exchange& exchange, double inside, double all);

/// Invariant: 0 < window <= seconds where there are exchanges.
struct StepTraffic {
  static constexpr std::uint32_t kExchangesMax = 6;

  Seconds seconds;  ///< of a step without other gangs
  /// The part of the step that the exchanges may take without making it longer.
  Seconds window;
  std::array<Exchange, kExchangesMax> exchanges{};
  std::uint32_t count = 0;

  [[nodiscard]] std::span<const Exchange> sent() const { return {exchanges.data(), count}; }
  /// Precondition: fewer than kExchangesMax.
  void add(const Exchange& exchange);
  /// Bytes that a node sends in a step in all exchanges.
  [[nodiscard]] Bytes node_bytes() const;
  /// The least steady rate of a node at which the step takes no longer: node_bytes / window.
  [[nodiscard]] BytesPerSecond demand() const;
};

/// Time of a step whose nodes may send at `share` each: seconds + max(0, node_bytes / share -
/// window), that is, the window stretched by demand / share and the rest unchanged. The window
/// consists of exposed communication and of computation that can hide it, so the step grows only
/// once the overlap is used up. Infinite when a gang that sends gets nothing.
[[nodiscard]] Seconds stretched_step(const StepTraffic& traffic, BytesPerSecond share);

/// How the gang of a plan is spread over nodes.
struct GangSplit {
  double node_ranks = 1;          ///< of the gang on each of its nodes
  double domain_ranks = 1;        ///< in each scale-up domain; at least node_ranks
  BytesPerSecond node_bandwidth;  ///< all NICs of a node, above 0
};

/// The exchanges of a plan that leave scale-up domains, by the byte counts of
/// docs/model/communication.md. `terms` are the seconds of the step on these devices
/// (TrainingModel::reprice): what is exposed there and what may hide beside computation is the
/// window, at least the time all NICs of a node take. Precondition: model.check(plan).
[[nodiscard]] StepTraffic training_traffic(const TrainingModel& model, const ParallelPlan& plan,
                                           const Breakdown& terms, const GangSplit& layout);

}  // namespace orrery
