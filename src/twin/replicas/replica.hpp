// twin/replicas/replica.hpp - one of several controllers that share a log: a machine, and on it one
// process after the other, each a real standby that may come to lead.
//
// Owned by the ReplicaWorld. A process that ends by itself, as one does that was replaced, is
// started again after a second, as a service manager does it. One thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "executor/start/standby.hpp"
#include "twin/replicas/replica_leader.hpp"
#include "twin/replicas/replica_promises.hpp"

namespace orrery {

/// What all controllers of a world have in common.
struct ReplicaParts {
  ProtocolContext& context;
  VirtualEtcd& etcd;
  ReplicaPromises& promises;
  const Facts& facts;
  const SetupTexts& setup;
  const ControllerSettings& settings;
  Duration claims_after;
  std::uint64_t seed = 0;
  std::function<void(const Order&)> send;  ///< to an agent
};

class Replica {
 public:
  /// The parts outlive it.
  Replica(const ReplicaParts& parts, std::size_t number);
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;
  ~Replica() { destroy(); }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool lives() const { return process_ != nullptr; }
  [[nodiscard]] bool leads() const { return lives() && !ended_ && process_->leader != nullptr; }
  [[nodiscard]] bool is_paused() const { return lives() && process_->env.is_paused(); }
  [[nodiscard]] const ReplicaMark& mark() const { return machine_.mark; }
  [[nodiscard]] std::uint64_t processes() const { return processes_; }
  /// How often its machine's mark refused an older log.
  [[nodiscard]] std::uint64_t refusals() const { return refusals_; }

  // --- Messages

  /// Called with the leader; nullptr: this controller does not lead.
  using Call = std::function<void(ReplicaLeader*)>;
  /// A message arrives. It is lost if no process lives.
  void receive(Call call);
  /// The process sends an answer to a client now.
  void speak();

  // --- Faults; each has no effect where it cannot happen

  void start();
  void kill(const std::string& why);
  void pause();
  void resume();

  /// Compares the process with what the log has.
  void check();

 private:
  [[nodiscard]] ControllerOptions make_options();
  [[nodiscard]] Standby::Events events();
  void lead(LiveStart start);
  /// The process ends by itself.
  void fail(const Error& why);
  void destroy();
  void check_leader();

  /// Writes the log of the process into the trace.
  class TraceSink final : public LogSink {
   public:
    TraceSink(ProtocolContext& context, const std::string& name) : context_(context), name_(name) {}
    void write_line(std::string_view line) override;

   private:
    ProtocolContext& context_;
    const std::string& name_;
  };

  const ReplicaParts& parts_;
  std::string name_;
  TraceSink sink_;
  Log log_;
  ReplicaMachine machine_;
  std::uint64_t processes_ = 0;
  std::uint64_t refusals_ = 0;
  std::uint64_t compared_ = 0;  ///< newest batch at which the leader's state was compared
  /// A process.
  struct Process {
    Process(const ReplicaParts& parts, ReplicaMachine& machine, std::size_t number, const Log& log);

    ReplicaEnv env;
    ReplicaProcess handle;
    std::optional<ControllerOptions> options;
    std::unique_ptr<Standby> standby;       ///< none: it leads
    std::unique_ptr<ReplicaLeader> leader;  ///< none: it does not lead
  };
  std::unique_ptr<Process> process_;  ///< none: none lives
  bool ended_ = false;                ///< the process has ended, and is destroyed in a moment
};

}  // namespace orrery
