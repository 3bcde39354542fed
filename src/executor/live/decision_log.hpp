// executor/live/decision_log.hpp - what happens to jobs and nodes, one line each in the
// controller's log: starts, stops and their reasons, losses, faults, drains, decisions.
//
// Owned by the controller, called with each event as it is decided. One thread. In a burst only the
// first lines are written, and the number of omitted lines when the second is over; warnings have a
// higher limit than other lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/env.hpp"
#include "base/log.hpp"
#include "control/state/state.hpp"

namespace orrery {

class DecisionLog {
 public:
  /// `state` is the state after the events.
  DecisionLog(const Env& env, const Log& log, const State& state)
      : env_(env), log_(log), state_(state) {}
  DecisionLog(const DecisionLog&) = delete;
  DecisionLog& operator=(const DecisionLog&) = delete;
  ~DecisionLog();

  void note(const Event& event);
  /// Writes a line of the caller's, within the same limit.
  void info(std::string_view message, LogFields fields);

 private:
  void on(const JobStarted& event);
  void on(const JobResized& event);
  void on(const JobStopping& event);
  void on(const JobEnded& event);
  void on(const JobHoldSet& event);
  void on(const JobChanged& event);
  void on(const NodeChanged& event);
  void on(const NodeAccused& event);
  void on(const LemonFound& event);
  void on(const SpareSet& event);
  void on(const PowerLimitSet& event);
  void on(const NodeLent& event);
  void on(const ForeignSet& event);
  void on(const HoldBilled& event);
  void on(const ReplicaChanged& event);
  void on(const ServiceUpdating& event);
  void on(const ServiceUpdated& event);
  void on(const ServiceScaled& event);
  void on(const MaintenanceSet& event);
  /// Other events write no line.
  template <class Other>
  void on(const Other& /*event*/) {}

  [[nodiscard]] bool may_write(std::uint64_t lines_max);
  void warning(std::string_view message, LogFields fields);
  void end_burst();
  [[nodiscard]] std::string name(JobId job) const;

  Env env_;
  Log log_;
  const State& state_;
  std::optional<TimerId> burst_;  ///< timer that ends the burst
  std::uint64_t lines_ = 0;       ///< lines of the burst
  std::uint64_t left_out_ = 0;
};

}  // namespace orrery
