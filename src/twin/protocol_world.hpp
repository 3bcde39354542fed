// twin/protocol_world.hpp - the whole protocol of running jobs in a virtual world: the real control
// core and fleet link, agents and keepers, with a network and a log between them that fail.
//
// Made once a seed; break things through its calls, let time pass, and ask whether a promise was
// broken. Everything follows from the seed and the calls. One thread.
// After every input of control: a job that a client was told of is there, once, and ends once; a
// restart finds the state that was durable. Of processes see ProtocolNodes.
// Cost: O(nodes + keepers + log events) a step.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/fleet_link.hpp"
#include "control/core.hpp"
#include "twin/durable_log.hpp"
#include "twin/protocol_nodes.hpp"

namespace orrery {

class Catalog;

/// A small fleet of one kind with all that control rests on; any number of worlds.
class ProtocolSite {
 public:
  /// Errors: the catalog has no such nodes.
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

class ProtocolWorld {
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
  [[nodiscard]] const State& state() const { return controller_->core.state(); }

 private:
  struct Controller {
    explicit Controller(const ControlSetup& setup) : core(setup), passes(*setup.tree) {}

    Core core;
    Scheduler passes;  ///< full ones, beside the core
    std::optional<FleetLink> link;
    std::deque<LinkEffect> effects;  ///< of the link, not looked at yet
  };
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
  /// Waits for the disk, and so takes nothing in.
  [[nodiscard]] bool writing() const { return unwritten_.has_value(); }
  void step();

  // The controller.
  using Answered = std::function<void(const Answer&)>;
  /// The answer comes once it is durable, or never. Precondition: it does not write.
  void handle(const Input& input, Answered answered = {});
  void carry_out(const Action& action);
  /// The write of an input is through.
  void written();
  void drain_link();
  void deliver(const Report& report);
  void propose(const Proposal& proposal);
  /// Does it now, or when the disk has answered.
  void when_free(VirtualTime::Event event);
  void link_anew();

  // Clients.
  void ask_submit(std::size_t n);
  void ask_cancel(std::size_t n);
  void refuse_or_submit(std::size_t n);
  [[nodiscard]] Submission submission_of(std::size_t n) const;

  // Promises (protocol_promises.cpp).
  void note_submitted(std::span<const Event> events);
  void check_jobs();
  [[nodiscard]] std::vector<std::string> picture() const;
  void show_changes();

  const ProtocolSite& site_;
  ProtocolRules rules_;
  ControlSetup setup_;
  Rng rng_;
  Trace trace_;
  VirtualTime time_;
  std::vector<bool> cut_;
  DurableLog log_;
  std::unique_ptr<Controller> controller_;
  std::uint64_t controllers_ = 0;
  std::uint64_t crashes_ = 0;
  std::vector<Client> clients_;
  std::vector<JobPhase> ended_;                       ///< by job; kHeld: it has not
  std::optional<std::vector<std::string>> expected_;  ///< picture that a restart must find
  std::vector<std::string> shown_;
  std::vector<Report> reports_;   ///< some of the past
  std::vector<InputKind> heard_;  ///< likewise, of ranks
  /// The input whose events are on their way to the disk; its actions and answer wait for them.
  struct Unwritten {
    Instant at;
    std::vector<Event> events;
    std::vector<Action> actions;
    Answer answer;
    Answered answered;
    std::vector<VirtualTime::Event> then;  ///< what came meanwhile, in order
  };
  std::optional<Unwritten> unwritten_;
  std::uint64_t writes_ = 0;
  bool disk_full_ = false;
  std::string failure_;
  ProtocolNodes nodes_;
};

}  // namespace orrery
