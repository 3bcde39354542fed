// control/nodes/node_service.hpp - whether nodes take work: drains, maintenance windows, spares.
//
// Invariant: a node takes no work while an operator drains it, within a maintenance window, while
// others have it, or when the time is over for which a resource manager lends it.
// Whether it works at all is for NodeCondition to tell.
#pragma once

#include <cstdint>
#include <string>

#include "control/core/core_timers.hpp"
#include "control/jobs/job_life.hpp"
#include "control/nodes/emptying_nodes.hpp"
#include "control/recorder.hpp"

namespace orrery {

class NodeService {
 public:
  /// The classes that the service of nodes depends on.
  struct Parts {
    CoreTimers& timers;
    EmptyingNodes& emptying;
    JobLife& jobs;
  };

  NodeService(Recorder& recorder, const Parts& parts)
      : recorder_(recorder), state_(recorder.state()), parts_(parts) {}

  void on(const DrainNode& command);
  void on(const ResumeNode& command);
  void on(const SetSpare& command);
  void on(const SetMaintenance& asked);
  void on(const ForeignUse& seen);

  /// Handles the time of a window: closes windows that are over, drains nodes of those that began.
  void keep_maintenance();
  /// Returns a node that works again to service, unless it is still drained or in a window.
  void come_back(NodeId node);
  /// A resource manager lends the node until then: it is emptied when the time is over. A node that
  /// was emptied because an earlier time was over takes work again.
  void lend_until(NodeId node, Instant until);
  /// Returns a node from quarantine or repair.
  void let_go(NodeId node);
  /// Sets the timers of a core that resumes.
  void resume();

 private:
  enum class DrainedBy { kOperator, kWindow };
  void drain(const DrainNode& command, DrainedBy by);
  void drain_further(const DrainNode& command);
  void drain_absent(const DrainNode& command);
  void evict(NodeId node);
  void end_drain(NodeId node);
  void set_timers(const Maintenance& plan);
  /// Returns why the node is closed to jobs for a time: a maintenance window, work of others, or
  /// the end of its loan. Empty: it is open.
  [[nodiscard]] std::string closed_why(NodeId node) const;
  void reopen(NodeId node);
  [[nodiscard]] const char* not_ready(NodeId node) const;
  void end_loans();
  void end_loan(NodeId node);
  void close_window(std::uint32_t window, const Maintenance& plan);
  void leave_windows(NodeId node);

  Recorder& recorder_;
  const State& state_;
  Parts parts_;
};

}  // namespace orrery
