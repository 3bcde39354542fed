// control/action.hpp - what control wants done outside, and what it answers.
//
// Derived from events, carried out by executors after the events are durable. Actions are
// idempotent: they name (job, attempt, epoch), and an executor refuses older ones. Spans and
// pointers refer to control's state and hold until its next input.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "control/event.hpp"
#include "perf/goodput.hpp"

namespace orrery {

/// Starts the ranks of an attempt, or of a new epoch of it. Where: State::running_job(job).
struct StartRanks {
  JobId job;
  std::uint32_t attempt = 0;
  std::uint32_t epoch = 0;
  Duration delay;
  bool compile = false;
  /// For a restart at the place of the attempt before: whether spares stand in for all lost nodes,
  /// or at least one node that was not kept ready. None: the job started from the queue.
  std::optional<RestartKind> in_place = std::nullopt;
};

/// Ends the ranks of an attempt: asks, waits `grace` for a last checkpoint, then kills.
struct StopRanks {
  JobId job;
  std::uint32_t attempt = 0;
  Duration grace;
  StopReason reason = StopReason::kPreempted;
};

/// A gang goes on at the clock of its terms.
struct ApplyClock {
  JobId job;
  std::uint32_t attempt = 0;
  std::uint32_t gang = 0;
  double clock = 1;
};

struct RepairNode {
  NodeId node;
  FaultLayer layer = FaultLayer::kHost;
};

/// A plan is missing.
struct SearchPlan {
  PlanKey key;
};

/// A full pass is due; full_pass(state) answers it as a Proposal.
struct RunFullPass {
  std::uint64_t version = 0;
};

using Action = std::variant<StartRanks, StopRanks, ApplyClock, RepairNode, SearchPlan, RunFullPass>;

/// What a command is answered; of an observation, what was not heeded of it and why.
struct Answer {
  Status status;
  JobId job;  ///< of a submission
};

}  // namespace orrery
