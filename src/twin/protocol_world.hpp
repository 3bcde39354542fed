// twin/protocol_world.hpp - the whole protocol of running jobs in a virtual world: the real control
// core and fleet link, agents and keepers, with a network and a log between them that fail.
//
// Made once a seed; break things through its calls, let time pass, and ask whether a promise was
// broken. Everything follows from the seed and the calls. One thread.
// After every input of control: a job that a client was told of is there, once, and ends once; a
// restart finds the state that was durable; where the policy holds quotas, tenants have what they
// were promised. Of processes see ProtocolNodes.
// Cost: O(nodes + keepers + log events) a step.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/control_host.hpp"
#include "twin/durable_log.hpp"
#include "twin/protocol_nodes.hpp"
#include "twin/protocol_tenants.hpp"

namespace orrery {

class Catalog;

/// A small fleet of one kind with all that control rests on; any number of worlds.
class ProtocolSite {
 public:
  /// The catalog must outlive it. Errors: the catalog has no such nodes.
  [[nodiscard]] static Result<std::unique_ptr<ProtocolSite>> make(const Catalog& catalog,
                                                                  std::size_t nodes);

  explicit ProtocolSite(Topology topology);
  ProtocolSite(const ProtocolSite&) = delete;
  ProtocolSite& operator=(const ProtocolSite&) = delete;

  [[nodiscard]] const Topology& topology() const { return topology_; }
  /// For one controller after the other, without limits of power; refers to this site.
  [[nodiscard]] ControlSetup setup(const Policy& policy) const;
  /// From then on power can be capped: clocks fall by what the accelerators are known to draw.
  void limit_power(ControlSetup& setup) const;

 private:
  Topology topology_;
  PlaceTree tree_;
  PowerTree power_;
  FleetCosts costs_;
  TenantTree tenants_;
};

/// How unreliable it is, and its times.
struct ProtocolRules {
  double loss = 0;      ///< of a message between controller and agents or clients
  double doubling = 0;  ///< likewise
  Duration delay_max = Duration::milliseconds(2);
  double stray = 0;       ///< share of messages that take up to 30 s
  double crash = 0;       ///< of the controller, at each of the points an input passes
  double slow_write = 0;  ///< share of writes to the log that take up to `write_max`
  Duration write_max = Duration::seconds(20);
  double ignores_term = 0;  ///< share of processes that end by SIGKILL alone
  std::int32_t drift = 0;   ///< of clocks, at most, in 1/10000 either way
  Duration beat = Duration::seconds(5);
  Duration lease = Duration::minutes(1);  ///< of jobs that restart after it
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

  // --- Clients: each asks again until it is answered

  void submit(const ProtocolJob& job);
  /// Of the n-th submission.
  void cancel(std::size_t n);
  [[nodiscard]] std::size_t submissions() const { return clients_.size(); }
  /// A command of the operator, or a decision of a pass; lost when nobody is there.
  void operate(const InputKind& command);
  /// Of the whole site; none takes it back.
  void cap_power(std::optional<Watts> cap);

  // --- Faults

  void kill_controller(const std::string& where);
  void start_controller();
  /// Only the reserve of the disk is left: nothing new is accepted, what ends is still recorded.
  void fill_disk() { disk_full_ = true; }
  void free_disk() { disk_full_ = false; }
  [[nodiscard]] bool controller_lives() const { return controller_ != nullptr; }
  void cut(NodeId node) { cut_[node.value()] = true; }
  void join(NodeId node) { cut_[node.value()] = false; }
  /// A report of old comes once more.
  void repeat_report();
  /// What control was once told of ranks, it is told once more.
  void repeat_input();
  /// An executor says what cannot be: control must refuse it, and nothing may come of it.
  void contradict();
  /// An agent says that another attempt, epoch or job runs on its node than does.
  void mislead();
  /// Nothing fails from here on, and what is broken is mended.
  void make_calm();
  void note(const std::string& what);

  // --- What came of it

  /// Every job has ended, and nothing is left of any.
  [[nodiscard]] bool settled();
  /// What is not settled.
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
    std::optional<JobId> made;  ///< by control, durable
    bool answered = false;
    bool cancels = false;
    bool cancelled = false;  ///< and knows it
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
  void pass_beside(std::unique_ptr<const HeldSituation> held) override;
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

  // Lies (protocol_lies.cpp).
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
  std::unique_ptr<ControlHost> controller_;
  std::optional<Scheduler> passes_;         ///< full ones, beside the controller
  std::optional<TenantAccounts> accounts_;  ///< of a policy that holds quotas
  std::uint64_t controllers_ = 0;
  std::uint64_t crashes_ = 0;
  std::vector<Client> clients_;
  std::vector<JobPhase> ended_;                       ///< by job, as is durable; kHeld: it has not
  std::optional<std::vector<std::string>> expected_;  ///< picture that a restart must find
  std::vector<std::string> shown_;
  std::vector<Report> reports_;   ///< some of the past
  std::vector<InputKind> heard_;  ///< likewise, of ranks
  /// The events of one input, not durable yet.
  struct Unwritten {
    Instant at;
    std::vector<Event> events;
  };
  std::deque<Unwritten> unwritten_;
  std::size_t writing_ = 0;     ///< the first so many of them are on their way to the disk
  std::uint64_t appended_ = 0;  ///< inputs with events, of this controller
  bool doomed_ = false;         ///< the controller dies as soon as it has done what it does
  bool disk_full_ = false;
  std::string failure_;
  ProtocolNodes nodes_;
};

}  // namespace orrery
