// twin/protocol/protocol_world.hpp - the whole protocol of running jobs in a virtual world: the
// real control core and fleet link, agents and keepers, with an unreliable network and log between
// them.
//
// Made once a seed; the caller injects faults, lets time pass, and asks whether a promise was
// broken. Everything follows from the seed and the calls. One thread.
// Checked after every input of control: a job that was acknowledged to a client exists, once, and
// ends once; a restart finds the state that was durable; where the policy holds quotas, tenants
// have what they were promised. ProtocolNodes checks the processes.
// Cost: O(nodes + keepers + log events) a step.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/control_host.hpp"
#include "twin/protocol/protocol_nodes.hpp"
#include "twin/protocol/protocol_tenants.hpp"
#include "twin/world/durable_log.hpp"

namespace orrery {

class Catalog;

/// A small fleet of one kind with the facts that control needs; serves any number of worlds.
class ProtocolSite {
 public:
  /// The catalog must outlive it. Errors: the catalog has no such nodes.
  [[nodiscard]] static Result<std::unique_ptr<ProtocolSite>> make(const Catalog& catalog,
                                                                  std::size_t nodes);

  explicit ProtocolSite(Topology topology);
  ProtocolSite(const ProtocolSite&) = delete;
  ProtocolSite& operator=(const ProtocolSite&) = delete;

  [[nodiscard]] const Topology& topology() const { return topology_; }
  /// The setup of one controller after the other, without limits of power; refers to this site.
  [[nodiscard]] ControlSetup setup(const Policy& policy) const;
  /// Allows power caps from then on: clocks fall by the known draw of the accelerators.
  void limit_power(ControlSetup& setup) const;

 private:
  Topology topology_;
  PlaceTree tree_;
  PowerTree power_;
  FleetCosts costs_;
  TenantTree tenants_;
};

/// How unreliable the world is, and its times.
struct ProtocolRules {
  double loss = 0;      ///< of a message between controller and agents or clients
  double doubling = 0;  ///< share of such messages that arrive twice
  Duration delay_max = Duration::milliseconds(2);
  double stray = 0;       ///< share of messages that take up to 30 s
  double crash = 0;       ///< of the controller, at each point that an input passes
  double slow_write = 0;  ///< share of writes to the log that take up to `write_max`
  Duration write_max = Duration::seconds(20);
  double ignores_term = 0;  ///< share of processes that only SIGKILL ends
  std::int32_t drift = 0;   ///< of clocks, at most, in 1/10000 in both directions
  Duration beat = Duration::seconds(5);
  Duration lease = Duration::minutes(1);  ///< of jobs that restart after its end
  std::string policy = "fifo";
  bool power_limited = false;
};

class ProtocolWorld final : private HostOutlet {
 public:
  using Trace = std::function<void(Instant, const std::string&)>;

  ProtocolWorld(const ProtocolSite& site, const ProtocolRules& rules, std::uint64_t seed,
                Trace trace = {});
  ProtocolWorld(const ProtocolWorld&) = delete;
  ProtocolWorld& operator=(const ProtocolWorld&) = delete;

  /// Stops early when a promise is broken.
  void run(Duration span);
  [[nodiscard]] VirtualTime& time() { return time_; }
  [[nodiscard]] ProtocolNodes& nodes() { return nodes_; }

  // --- Clients: each repeats its request until it is answered

  void submit(const ProtocolJob& job);
  /// Cancels the n-th submission.
  void cancel(std::size_t n);
  [[nodiscard]] std::size_t submissions() const { return clients_.size(); }
  /// Sends a command of the operator or a decision of a pass; it is lost if no controller lives.
  void operate(const InputKind& command);
  /// Sets the power cap of the whole site; none removes it.
  void cap_power(std::optional<Watts> cap);

  // --- Faults

  void kill_controller(const std::string& where);
  void start_controller();
  /// Leaves only the reserve of the disk: no job is accepted, but ends are still recorded.
  void fill_disk() { disk_full_ = true; }
  void free_disk() { disk_full_ = false; }
  [[nodiscard]] bool controller_lives() const { return controller_ != nullptr; }
  void cut(NodeId node) { cut_[node.value()] = true; }
  void join(NodeId node) { cut_[node.value()] = false; }
  /// Delivers an old report once more.
  void repeat_report();
  /// Delivers an old input about ranks to control once more.
  void repeat_input();
  /// Delivers an impossible report of an executor: control must refuse it without any effect.
  void contradict();
  /// Lets an agent report another attempt, epoch or job on its node than runs there.
  void mislead();
  /// Ends all faults and repairs what is broken.
  void make_calm();
  void note(const std::string& what);

  // --- Results

  /// Whether every job has ended, with nothing left of any.
  [[nodiscard]] bool settled();
  /// Describes what is not settled.
  [[nodiscard]] std::string unsettled();
  /// The first promise that was broken; empty: none.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  [[nodiscard]] const DurableLog& log() const { return log_; }
  [[nodiscard]] std::uint64_t crashes() const { return crashes_; }
  /// Precondition: a controller lives.
  [[nodiscard]] const State& state() const { return controller_->state(); }

 private:
  struct Client {
    ProtocolJob job;
    std::optional<JobId> made;  ///< job that control made of it, durable
    bool answered = false;
    bool cancels = false;
    bool cancelled = false;  ///< the client knows of the cancellation
  };

  void wrong(const std::string& what);
  [[nodiscard]] bool chance(double share) { return rng_.uniform() < share; }
  [[nodiscard]] Duration delay();
  template <class Deliver>
  void transmit(Deliver deliver);
  void step();

  // The controller, and what leaves it.
  void note(const Input& input) override;
  std::uint64_t append(Instant at, std::span<const Event> events) override;
  void send(const Order& order) override;
  void run_full_pass(Core& core, Instant now) override;
  void search_plan(const PlanKey&) override {}
  void handle(const Input& input, ControlHost::Answered answered = {});
  void deliver(const Report& report);
  void write();
  void commit();
  void written();
  void die_if_doomed();

  // Clients.
  void ask_submit(std::size_t n);
  void ask_cancel(std::size_t n);
  void refuse_or_submit(std::size_t n);
  /// Precondition: a controller lives, and knows the job's tenant.
  [[nodiscard]] Submission submission_of(std::size_t n) const;

  // False reports (protocol_lies.cpp).
  [[nodiscard]] InputKind draw_contradiction(const Job& job);

  // Promises (protocol_promises.cpp).
  void note_durable(std::span<const Event> events);
  void check_jobs();
  [[nodiscard]] std::vector<std::string> picture(const State& state) const;
  void show_changes();

  const ProtocolSite& site_;
  ProtocolRules rules_;
  ControlSetup setup_;
  Rng rng_;
  Trace trace_;
  VirtualTime time_;
  std::vector<bool> cut_;
  DurableLog log_;
  std::unique_ptr<AgentHost> controller_;
  std::optional<Scheduler> passes_;         ///< full passes, beside the controller
  std::optional<TenantAccounts> accounts_;  ///< set if the policy holds quotas
  std::uint64_t controllers_ = 0;
  std::uint64_t crashes_ = 0;
  std::vector<Client> clients_;
  std::vector<JobPhase> ended_;                       ///< by job, the durable end; kHeld: not ended
  std::optional<std::vector<std::string>> expected_;  ///< picture that a restart must find
  std::vector<std::string> shown_;
  std::vector<Report> reports_;   ///< some old reports
  std::vector<InputKind> heard_;  ///< some old inputs about ranks
  /// The events of one input, not durable yet.
  struct Unwritten {
    Instant at;
    std::vector<Event> events;
  };
  std::deque<Unwritten> unwritten_;
  std::size_t writing_ = 0;     ///< how many of them, from the front, are being written to disk
  std::uint64_t appended_ = 0;  ///< inputs with events, of this controller
  bool doomed_ = false;         ///< the controller dies once it has handled its present input
  bool disk_full_ = false;
  std::string failure_;
  ProtocolNodes nodes_;
};

}  // namespace orrery
