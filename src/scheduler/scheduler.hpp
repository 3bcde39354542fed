// scheduler/scheduler.hpp - decides who runs where and when: one engine for every policy, shared by
// the daemon, what-if and the twin.
//
// decide() is a function of the situation and the policy alone. A Scheduler keeps scratch memory
// and a memo of refusals that still hold; forgetting it changes how long an answer takes, never the
// answer (tests hold it to that). One thread.
//
// Incremental pass: jobs in the order of the policy, each started where it fits, within a budget of
// candidates priced; slots reserved by the last full pass are respected. Full pass: also makes
// those reservations anew, lets elastic jobs grow, and proposes moves.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "scheduler/decision.hpp"
#include "scheduler/policy.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

enum class PassKind : std::uint8_t { kIncremental, kFull };

/// Whether a full pass does more than an incremental one under the policy; if not, no full pass
/// runs.
[[nodiscard]] bool wants_full(const Policy& policy);

class PassMemory;

class Scheduler {
 public:
  /// The tree must outlive the scheduler.
  explicit Scheduler(const PlaceTree& tree);
  ~Scheduler();

  /// Precondition: the situation's fleet is that of the tree. Cost: a step for each waiting and
  /// each running job, a sort of those whose places in the order changed, a placement a class of
  /// waiting jobs that cannot start and one a job that does.
  [[nodiscard]] PassResult decide(const Situation& situation, const Policy& policy, PassKind kind);

  /// Forgets what it remembers of earlier passes.
  void forget();

 private:
  std::unique_ptr<PassMemory> memory_;
};

}  // namespace orrery
