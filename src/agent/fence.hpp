// agent/fence.hpp - which attempt of a job may have effect: the newest one, and no older again.
//
// Two attempts may run at once for a while (a cut network, a frozen agent); only one has effect,
// because whatever the ranks do to the world carries a FenceToken. Whoever keeps something they
// change (the checkpoint manifests of a job, its progress stream, its rendezvous) owns a Fence,
// stores its token with what it keeps and asks it first. Values. Cost: O(1).
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

/// An attempt and the membership it has: epochs grow within an attempt, attempts within a job.
struct FenceToken {
  AttemptId id;
  std::uint32_t epoch = 0;

  friend auto operator<=>(const FenceToken&, const FenceToken&) = default;
};

class Fence {
 public:
  /// Of a job nobody has touched yet.
  explicit Fence(JobId job) : newest_{{job, 0}, 0} {}
  /// Goes on from the token found with what is kept.
  explicit Fence(const FenceToken& newest) : newest_(newest) {}

  /// Whether an effect under `token` may happen; if so, nothing older is let through again. Equal
  /// tokens pass any number of times. Tokens of other jobs never do.
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
