// twin/replicas/replica_leader.hpp - a controller that leads, without what has threads or sockets:
// the real host, fleet link, log, archive and submissions, connected as executor/controller.hpp
// connects them.
//
// Made by the Replica from the start that its Standby hands over; ended with the process. Full
// passes and plan searches never come back, which control allows. One thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "executor/agents/agent_book.hpp"
#include "executor/controller_options.hpp"
#include "executor/jobs/submissions.hpp"
#include "executor/live/live_counts.hpp"
#include "executor/live/live_host.hpp"
#include "executor/log/live_store.hpp"
#include "executor/start/live_start.hpp"
#include "twin/replicas/virtual_commits.hpp"

namespace orrery {

/// The number by which agents know the cluster of replicas.
inline constexpr std::uint64_t kReplicaCluster = 7;

class ReplicaLeader final : private HostOutlet {
 public:
  struct Outside {
    std::function<void(const Order&)> send;
    std::function<void(const Error&)> failed;  ///< the process ends
  };
  /// Process and options outlive it.
  ReplicaLeader(ReplicaProcess& process, const ControllerOptions& options, LiveStart start,
                Outside outside);

  /// Submits the job of a text; `answered` is called once the answer may leave.
  void submit(const std::string& text, const std::string& request_id,
              Submissions::Answered answered);
  /// Calls `then` when a read of the present state may be answered.
  void read(std::function<void()> then) { host_.control().after_durable(std::move(then)); }
  void cancel(JobId job, ControlHost::Answered answered);
  void put_text(const StoreTexts& texts) { store_.log().put_texts(texts); }
  void deliver(const Report& report);
  void compact();

  [[nodiscard]] const State& state() const { return host_.state(); }
  [[nodiscard]] StoreTerm term() const { return store_.log().term(); }
  /// Whether everything that was decided is durable.
  [[nodiscard]] bool settled() { return host_.control().settled(); }
  [[nodiscard]] std::uint64_t newest() const { return store_.log().newest(); }
  /// Why it decides nothing, see LiveHost::halted(); empty: it does.
  [[nodiscard]] std::string halted() const { return host_.halted(); }

 private:
  void note(const Input& input) override { store_.log().note(input); }
  std::uint64_t append(Instant at, std::span<const Event> events) override;
  bool may_speak() override { return store_.log().may_speak(); }
  void send(const Order& order) override { outside_.send(order); }
  void run_full_pass(Core&, Instant) override {}
  void search_plan(const PlanKey&) override {}

  void schedule();
  void act_when_due();

  const ControllerOptions& options_;
  Outside outside_;
  LiveCounts counts_;
  std::unique_ptr<LiveSetup> setup_;
  LiveHost host_;
  LiveStore store_;
  AgentBook agents_;
  Submissions submissions_;
};

}  // namespace orrery
