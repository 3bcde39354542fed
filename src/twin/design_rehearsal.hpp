// twin/design_rehearsal.hpp - a designed fleet played in the twin: is its goodput what was
// promised?
//
// The generated fleet is built as any other; jobs of the mix fill it, faults of the design's law
// come over it, and the hardware-aware policy runs it for some days of virtual time. What all
// accelerators did is then compared with the prediction. Pure; minutes for the largest fleets.
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "twin/design.hpp"

namespace orrery {

struct RehearsalOptions {
  Duration span = Duration::hours(24) * 7;
  std::uint64_t seed = 1;
};

struct Rehearsal {
  DesignUse use;
  Duration span;
  std::uint64_t faults = 0;   ///< that stopped a job
  std::uint64_t jobs = 0;     ///< played
  std::uint64_t history = 0;  ///< hash of the events
};

/// Simulated over predicted useful time, less 1.
[[nodiscard]] double difference(const Design& design, const Rehearsal& rehearsal);

/// A prediction further from the twin than this is not confirmed.
inline constexpr double kConfirmedWithin = 0.05;

[[nodiscard]] bool confirmed(const Design& design, const Rehearsal& rehearsal);

/// Errors: a job that the fleet cannot run.
[[nodiscard]] Result<Rehearsal> rehearse(const DesignFacts& facts, const Design& design,
                                         const RehearsalOptions& options);

}  // namespace orrery
