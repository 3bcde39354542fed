// scheduler/scheduler.hpp - decides which jobs run where and when: one engine for every policy,
// shared by the daemon, what-if and the twin.
//
// decide() is a function of the situation and the policy alone, if forget() is called when it has
// to be. A Scheduler keeps scratch memory and answers that still hold; dropping them changes how
// long a pass takes, never the result (tests verify that). One thread.
//
// Incremental pass: takes jobs in the order of the policy and starts each where it fits, within a
// budget of candidates priced; reservations of the last full pass are respected. Full pass: also
// makes those reservations anew, lets elastic jobs grow, and proposes moves.
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
  /// each running job, a sort of the jobs whose places in the order changed, a placement for each
  /// class of waiting jobs that cannot start and one for each job that starts.
  [[nodiscard]] PassResult decide(const Situation& situation, const Policy& policy, PassKind kind);

  /// Drops the order of the queue, refusals and the index of running jobs that earlier passes left.
  /// Must be called before a pass under another policy, or for jobs whose requests have changed in
  /// place.
  void forget();

 private:
  std::unique_ptr<PassMemory> memory_;
};

}  // namespace orrery
