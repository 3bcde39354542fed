// executor/controller.hpp - a live cluster's controller: the host of the core with a real clock,
// the durable log, the connected agents, and queries of users.
//
// Built by orreryd over a directory; lives until the process ends. Runs on one loop, that of its
// Env; other threads post to it. It uses no sockets: the server (src/api) makes sessions and calls.
// It owns its parts, which callers use, and connects them: what the host decides goes to the log
// and to those who follow events, what becomes durable releases orders and answers, and one timer
// wakes it for what is due. Replies depend only on what is durable; a log that cannot be written
// ends the process. If the log lacks attempts that agents run, the controller halts until an
// operator chooses (ControllerOptions::lost_jobs). DIR/store holds the log, with the texts it
// depends on. The last log output of ended attempts' ranks is kept in memory, the newest 64 MiB of
// it. DIR/steps.key is the key for the secrets of scripts; without it running scripts cannot start
// steps. Cost of a call: that of the core; of a start: reading the log.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/env.hpp"
#include "base/log.hpp"
#include "executor/agents/agent_sessions.hpp"
#include "executor/agents/report_delivery.hpp"
#include "executor/controller_options.hpp"
#include "executor/fleet_changes.hpp"
#include "executor/holds/live_holds.hpp"
#include "executor/jobs/submissions.hpp"
#include "executor/live/event_feed.hpp"
#include "executor/live/live_counts.hpp"
#include "executor/live/live_host.hpp"
#include "executor/live/live_setup.hpp"
#include "executor/log/live_store.hpp"
#include "executor/side_decisions.hpp"
#include "executor/start/live_start.hpp"

namespace orrery {

class Controller final : private HostOutlet {
 public:
  /// Errors: of the texts; of the store (another process has it); damage of the log with its place.
  [[nodiscard]] static Result<std::unique_ptr<Controller>> open(const Env& env, const Log& log,
                                                                ControllerOptions options);
  /// `options` are those that the start was made with.
  Controller(const Env& env, const Log& log, ControllerOptions options, LiveStart start);

  // --- Commands: `answered` is called once the answer is durable

  template <class T>
  using Answered = std::function<void(Result<T>)>;

  /// Handles a command of an operator or a client that no part handles. A halted controller refuses
  /// it.
  void command(InputKind what, const std::string& request_id, Answered<JobId> answered);
  /// Compacts the log, see LiveLog::compact(). Errors: those; the controller is halted.
  void compact(Answered<CompactedLog> answered);
  /// Applies the limits of other settings at once; their waits apply from the next start on.
  void set_limits(const ControllerSettings& settings);
  /// Takes a message from an agent, see AgentSessions::receive(), and handles its report.
  void receive(NodeId number, const AgentMessage& message);
  /// Calls `then` when everything in the present state is durable.
  void after_durable(std::function<void()> then) { host_.control().after_durable(std::move(then)); }

  // --- State and parts

  [[nodiscard]] const State& state() const { return host_.state(); }
  [[nodiscard]] Instant now() const { return host_.now(); }
  [[nodiscard]] const LiveHost& host() const { return host_; }
  [[nodiscard]] const AgentBook& agents() const { return sessions_.agents(); }
  [[nodiscard]] AgentSessions& sessions() { return sessions_; }
  [[nodiscard]] LiveHolds& holds() { return holds_; }
  [[nodiscard]] const LiveHolds& holds() const { return holds_; }
  [[nodiscard]] Submissions& submissions() { return submissions_; }
  [[nodiscard]] FleetChanges& fleet() { return fleet_; }
  [[nodiscard]] const FleetChanges& fleet() const { return fleet_; }
  [[nodiscard]] EventFeed& events() { return events_; }
  [[nodiscard]] const LiveStore& store() const { return store_; }
  [[nodiscard]] SideReads& reads() { return side_.reads(); }
  [[nodiscard]] LiveCounts& counts() { return counts_; }
  [[nodiscard]] const LiveCounts& counts() const { return counts_; }

 private:
  void note(const Input& input) override;
  std::uint64_t append(Instant at, std::span<const Event> events) override;
  bool may_speak() override;
  void send(const Order& order) override;
  void run_full_pass(Core& core, Instant now) override;
  void search_plan(const PlanKey& key) override;

  void schedule();
  void act_when_due();

  ControllerOptions options_;
  LiveCounts counts_;
  std::unique_ptr<LiveSetup> setup_;
  LiveHost host_;
  LiveHolds holds_;
  LiveStore store_;
  EventFeed events_;
  AgentSessions sessions_;
  SideDecisions side_;
  ReportDelivery reports_;
  Submissions submissions_;
  FleetChanges fleet_;
};

}  // namespace orrery
