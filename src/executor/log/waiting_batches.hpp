// executor/log/waiting_batches.hpp - the batches of the log that are not durable yet: the inputs
// in each, and how long it takes to become durable.
//
// Owned by the log of a running controller. Batches and inputs have ascending numbers; a batch
// holds all inputs up to one of them. Cost: O(1) a batch.
#pragma once

#include <cstdint>
#include <deque>

#include "base/env.hpp"
#include "executor/live/live_counts.hpp"

namespace orrery {

class WaitingBatches {
 public:
  /// `times` counts how long commits take; both arguments outlive it.
  WaitingBatches(const Clock& clock, TimeHistogram& times) : clock_(clock), times_(times) {}

  /// A batch, a new one or the newest, holds the inputs up to `input`.
  void submit(std::uint64_t batch, std::uint64_t input);
  /// All batches up to this one are durable. Returns the newest input in them; 0: there was none.
  std::uint64_t durable(std::uint64_t batch);
  /// The newest batch that became durable; 0: none did yet.
  [[nodiscard]] std::uint64_t newest_durable() const { return newest_durable_; }

 private:
  struct End {
    std::uint64_t batch = 0;
    std::uint64_t input = 0;
    Instant submitted;
  };

  const Clock& clock_;
  TimeHistogram& times_;
  std::deque<End> batches_;
  std::uint64_t newest_durable_ = 0;
};

}  // namespace orrery
