// twin/world/job_watch.hpp - what a simulation records of each job and control does not keep: how
// long it queued and why, and on how many nodes it ran.
//
// Observes the events of a run. A job queues while it wants to run and does not: before its first
// start and after each stop it comes back from, but not while it is held, waits for other jobs or
// sits out a backoff. Owned by the Simulation. Cost: O(1) an event, O(waiting) a pass.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/rejection.hpp"
#include "control/core/core.hpp"

namespace orrery {

/// Causes that keep a job in the queue: a refusal of the last pass that considered it, or, as the
/// last cause, that no pass has considered it yet because others come first.
inline constexpr std::size_t kQueueCauses = static_cast<std::size_t>(RejectionKind::kLater) + 2;

struct WatchedJob {
  Duration queued;                              ///< total time in the queue
  Duration queued_to_start;                     ///< part of it before its first start
  std::uint32_t nodes = 0;                      ///< of its latest placement; 0: it never had one
  std::array<Duration, kQueueCauses> causes{};  ///< of `queued`, by cause
};

class JobWatch {
 public:
  /// Must be called after the events were applied.
  void look(const Core& core, std::span<const Event> events, Instant now);

  [[nodiscard]] WatchedJob of(JobId job, Instant now) const;

 private:
  struct Entry {
    WatchedJob seen;
    Instant since = Instant::max();  ///< start of the stay not counted yet; max: not in the queue
    std::size_t cause = kQueueCauses - 1;
  };
  Entry& entry(JobId job);
  void look_at(JobId job, const State& state, Instant now);
  void note_refusals(const Core& core, Instant now);

  std::vector<Entry> entries_;  ///< by job
};

/// "no room 3 h, behind others 20 min", the longest first; empty: it did not queue.
[[nodiscard]] std::string causes_text(const WatchedJob& job);

}  // namespace orrery
