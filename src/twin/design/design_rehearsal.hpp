// twin/design/design_rehearsal.hpp - simulates a designed fleet in the twin to check its predicted
// goodput.
//
// The generated fleet is built as any other; jobs of the mix fill it, faults are drawn from the
// design's law, and the hardware-aware policy runs it for some days of virtual time. The use of all
// accelerators is then compared with the prediction. Pure; minutes for the largest fleets.
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "twin/design/design.hpp"

namespace orrery {

struct RehearsalOptions {
  Duration span = Duration::hours(24) * 7;
  std::uint64_t seed = 1;
};

struct Rehearsal {
  DesignUse use;
  Duration span;
  std::uint64_t faults = 0;   ///< that stopped a job
  std::uint64_t jobs = 0;     ///< simulated
  std::uint64_t history = 0;  ///< hash of the events
};

/// Simulated over predicted useful time, less 1.
[[nodiscard]] double difference(const Design& design, const Rehearsal& rehearsal);

/// A prediction that differs from the twin by more than this is not confirmed.
inline constexpr double kConfirmedWithin = 0.05;

[[nodiscard]] bool confirmed(const Design& design, const Rehearsal& rehearsal);

/// Errors: a job that the fleet cannot run.
[[nodiscard]] Result<Rehearsal> rehearse(const FactsView& facts, const Design& design,
                                         const RehearsalOptions& options);

}  // namespace orrery
