// perf/machine/collective.hpp - the time in which a group of ranks exchanges bytes over the tiers
// it spans.
//
// Bandwidth and latency of each tier are resolved once (Network), a group's footprint on them once
// a plan (Span); the functions are then a few multiplications.
#pragma once

#include <array>
#include <cstdint>

#include "perf/calibration.hpp"
#include "perf/machine/machine.hpp"

namespace orrery {

/// The tiers with calibrated bandwidth, as a large message finds them.
struct Network {
  struct Level {
    std::uint64_t size = 1;
    double bandwidth = 1;         ///< bytes/s of one rank, one direction
    double all_to_all = 1;        ///< bytes/s of one rank when all ranks send to all
    double latency = 0;           ///< seconds a round
    double reduction_factor = 2;  ///< all-reduce traffic, in messages; 1: added up in the switches
    int dimensions = 0;           ///< of a torus; 0: none
  };
  std::array<Level, kTiersMax> levels{};
  std::uint32_t count = 0;
  double launch = 0;  ///< seconds to start one collective
  double ranks = 0;   ///< of the machine; 0: not known
};

[[nodiscard]] Network network_of(const Machine& machine, const Calibration& calibration);

/// How many ranks of a group are inside one unit of each level.
struct Span {
  double size = 1;
  std::array<double, kTiersMax> inside{1, 1, 1, 1};
  double bandwidth_share = 1;  ///< of a torus: the part of the links on the group's axes
};

/// A group of `size` ranks, each `stride` ranks from the next. Where all such groups of the machine
/// do not fit its units (nine of 64 in eight racks of 72), one lies across the remainders of the
/// units, and all wait for it.
[[nodiscard]] Span span_of(const Network& network, double size, double stride);

/// All-gather: every rank ends with `bytes`, of which it held 1/size. Ring over all levels at once:
/// the level that takes longest decides. Chan et al. 2007; Thakur et al. 2005.
[[nodiscard]] double all_gather_seconds(const Network& network, const Span& span, double bytes);
/// Reduce-scatter, the mirror image of an all-gather.
[[nodiscard]] double reduce_scatter_seconds(const Network& network, const Span& span, double bytes);
/// All-reduce. Ring: twice the traffic of an all-gather; tree for short messages; once where
/// switches add.
[[nodiscard]] double all_reduce_seconds(const Network& network, const Span& span, double bytes);
/// Every rank sends `bytes` in all, in equal parts to every rank of the group (itself included).
[[nodiscard]] double all_to_all_seconds(const Network& network, const Span& span, double bytes);
/// What a rank sends to the experts of others.
struct Dispatch {
  double bytes = 0;    ///< of all its tokens, once
  double fanout = 1;   ///< experts each token visits
  double merging = 1;  ///< part of the copies to one unit that are sent only once
};
/// All-to-all of tokens to experts drawn evenly over the group. Merged, a token crosses to each
/// unit of a level once, however many of its experts are there: u (1 - (1 - 1/u)^fanout) of u
/// units.
[[nodiscard]] double dispatch_seconds(const Network& network, const Span& span,
                                      const Dispatch& dispatch);
/// Returns the seconds to send `bytes` to a rank `stride` away.
[[nodiscard]] double point_to_point_seconds(const Network& network, double stride, double bytes);

}  // namespace orrery
