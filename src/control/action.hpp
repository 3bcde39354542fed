// control/action.hpp - what control wants done outside, and what it answers.
//
// Actions follow from events; executors carry them out after the events are durable. Actions are
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
#include "perf/training/goodput.hpp"

namespace orrery {

/// Starts the ranks of an attempt, or of a new epoch of it. The devices are in State::running(job).
struct StartRanks {
  JobId job;
  std::uint32_t attempt = 0;
  std::uint32_t epoch = 0;
  Duration delay;
  bool compile = false;
  /// For a restart in place: whether spares replace all lost nodes, or at least one replacement is
  /// a node that was not kept ready. None: the job started from the queue.
  std::optional<RestartKind> in_place = std::nullopt;
};

/// Stops the ranks of an attempt: requests it, waits `grace` for a last checkpoint, then kills.
struct StopRanks {
  JobId job;
  std::uint32_t attempt = 0;
  Duration grace;
  StopReason reason = StopReason::kPreempted;
};

/// Makes a gang continue at the clock of its terms.
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

/// Asks the agent of a node that was lent for its identity: NodeJoined follows, even if that agent
/// was known before.
struct GreetNode {
  NodeId node;
};

/// Requests the search of a missing plan.
struct SearchPlan {
  PlanKey key;
};

/// Requests a full pass; full_pass(state) returns its result as a Proposal.
struct RunFullPass {
  std::uint64_t version = 0;
};

using Action =
    std::variant<StartRanks, StopRanks, ApplyClock, RepairNode, SearchPlan, RunFullPass, GreetNode>;

/// The answer to a command; for an observation, the error says which part was ignored and why.
struct Answer {
  Status status;
  JobId job;  ///< job that a submission created
};

}  // namespace orrery
