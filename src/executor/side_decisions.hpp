// executor/side_decisions.hpp - full passes and plan searches of a running controller: they run on
// threads beside the loop, and their results come back as inputs of the host. Reads of a held
// situation run on a third thread.
//
// Owned by the controller, on its loop; the setup outlives it. Passes run one at a time, as
// searches do. Cost on the loop: that of holding the situation of a pass. Invariant: a plan that
// was searched with the facts of an earlier fleet is dropped.
#pragma once

#include <cstdint>
#include <optional>

#include "base/env.hpp"
#include "base/threads/side_thread.hpp"
#include "control/core/core.hpp"
#include "executor/live/live_counts.hpp"
#include "executor/live/live_host.hpp"
#include "executor/live/live_setup.hpp"
#include "executor/side_reads.hpp"

namespace orrery {

class SideDecisions {
 public:
  struct Options {
    LiveHost& host;
    LiveSetup& setup;
    LiveCounts& counts;
  };
  SideDecisions(const Env& env, const Options& options);

  /// Starts a full pass on the core's state; its Proposal is handled when it is done.
  void run_full_pass(Core& core, Instant now);
  /// Starts the search of a plan; it is handled as PlanReady.
  void search_plan(const PlanKey& key);
  [[nodiscard]] SideReads& reads() { return reads_; }

  /// The number of the next change of the fleet, for LiveSetup::use().
  [[nodiscard]] std::uint32_t next_fleet() const { return fleets_ + 1; }
  /// Takes over a changed fleet, which setup and state have already. The setup forgets the fleet of
  /// before when nothing that runs on a thread needs it any more.
  void use_next_fleet();

 private:
  Env env_;
  Options options_;
  std::uint32_t fleets_ = 0;         ///< changes of the fleet in this process
  std::optional<Scheduler> passes_;  ///< used by the thread of pass_thread_ alone
  SideReads reads_;
  SideThread pass_thread_;
  SideThread search_thread_;
};

}  // namespace orrery
