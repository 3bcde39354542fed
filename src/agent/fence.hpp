// agent/fence.hpp - decides which attempt of a job may have effects: only the newest one.
//
// Two attempts may run at once for a while (a cut network, a frozen agent); only one has effects,
// because all external effects of ranks carry a FenceToken. Each component that stores their data
// (the checkpoint manifests of a job, its progress stream, its rendezvous) owns a Fence, stores its
// token with the data and asks it first. Plain values. Cost: O(1).
#pragma once

#include <compare>
#include <cstdint>

#include "scheduler/situation.hpp"

namespace orrery {

/// One attempt of a job. Attempts count from 1 and only grow.
struct AttemptId {
  JobId job;
  std::uint32_t attempt = 0;

  friend auto operator<=>(const AttemptId&, const AttemptId&) = default;
};

/// An attempt and one of its epochs: epochs grow within an attempt, attempts within a job.
struct FenceToken {
  AttemptId id;
  std::uint32_t epoch = 0;

  friend auto operator<=>(const FenceToken&, const FenceToken&) = default;
};

class Fence {
 public:
  /// Begins with no token of the job admitted yet.
  explicit Fence(JobId job) : newest_{{job, 0}, 0} {}
  /// Continues from the token stored with the data.
  explicit Fence(const FenceToken& newest) : newest_(newest) {}

  /// Whether an effect under `token` may happen; if so, no older token is admitted again. Equal
  /// tokens are admitted any number of times, tokens of other jobs never.
  [[nodiscard]] bool admit(const FenceToken& token) {
    if (token.id.job != newest_.id.job || token < newest_) return false;
    newest_ = token;
    return true;
  }

  [[nodiscard]] const FenceToken& newest() const { return newest_; }

 private:
  FenceToken newest_;
};

}  // namespace orrery
