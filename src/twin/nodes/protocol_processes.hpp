// twin/nodes/protocol_processes.hpp - the processes of ranks on a virtual fleet: they start,
// take part in epochs, have effects, obey signals or not, and end.
//
// Owned by ProtocolNodes, which passes on what keepers order and tells them what happened. A
// process dies with its keeper. One thread.
// It checks what no machine of the protocol can see: that no accelerator ever has processes of two
// attempts, unless they share it, and that no job has two attempts at once unless its effects are
// fenced.
// Cost: O(keepers with processes) a start, O(processes of the keeper) otherwise.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "agent/fence.hpp"
#include "agent/keeper.hpp"
#include "base/numbers/rng.hpp"
#include "twin/world/virtual_time.hpp"

namespace orrery {

/// What the program of a job does as a replica of a service.
enum class ProtocolReplica : std::uint8_t {
  kNone,    ///< it is no replica
  kServes,  ///< it reports itself, and serves until it is told to end
  kFails,   ///< it fails before it is ready
};

/// The true properties of a job.
struct ProtocolJob {
  RestartPolicy restart = RestartPolicy::kWhenSafe;
  std::uint32_t devices = 1;
  std::uint32_t devices_min = 0;          ///< elastic down to it; 0: fixed size
  std::uint16_t share = kWholeDevice;     ///< of its device, in thousandths
  Duration work = Duration::seconds(60);  ///< of an attempt, once its ranks have started
  std::string tenant = "default";
  ProtocolReplica replica = ProtocolReplica::kNone;
};

/// The keeper of an attempt on a node.
struct KeeperAt {
  NodeId node;
  AttemptId attempt;

  friend auto operator<=>(const KeeperAt&, const KeeperAt&) = default;
};

/// "attempt 2 of job 7"
[[nodiscard]] std::string attempt_text(const AttemptId& id);

class ProtocolProcesses {
 public:
  struct Outside {
    VirtualTime& time;
    std::function<void(const KeeperAt&, const ProcessUp&)> up;
    std::function<void(const KeeperAt&, const ProcessExit&)> exit;
    /// A replica reports itself in an epoch.
    std::function<void(const KeeperAt&, const FenceToken&, const ReplicaReport&)> replica;
    std::function<void(std::string)> wrong;  ///< called when a promise is broken
  };

  /// `ignores_term`: share of processes that only SIGKILL ends. The random numbers must outlive it.
  ProtocolProcesses(double ignores_term, Rng& rng, Outside outside)
      : ignores_term_(ignores_term), rng_(rng), outside_(std::move(outside)) {}
  ProtocolProcesses(const ProtocolProcesses&) = delete;
  ProtocolProcesses& operator=(const ProtocolProcesses&) = delete;

  /// Must be called before any order for the job.
  void know(JobId id, const ProtocolJob& job) { jobs_[id] = job; }

  void start(NodeId node, const StartProcesses& start);
  void signal(const KeeperAt& at, const SignalProcesses& signal);
  void cap_clock(const KeeperAt& at, const RankShare& share);
  /// A process fails; no effect if the keeper has none.
  void fail_one(const KeeperAt& at);
  /// All processes of a keeper die with it.
  void kill(const KeeperAt& at) { keepers_.erase(at); }
  /// All processes of a node die with it.
  void kill_all(NodeId node);

  [[nodiscard]] bool has_any(const KeeperAt& at) const { return keepers_.contains(at); }
  /// Living processes of an attempt, on all nodes.
  [[nodiscard]] std::size_t count(const AttemptId& attempt) const;
  /// The lowest clock of the attempt's processes; 1: none is lowered.
  [[nodiscard]] double clock(const AttemptId& attempt) const;
  /// Processes ever started.
  [[nodiscard]] std::uint64_t started() const { return pids_; }

 private:
  struct Process {
    std::uint64_t pid = 0;
    bool ignores_term = false;
    FenceToken token;  ///< of the newest epoch it takes part in
    std::uint16_t share = kWholeDevice;
    double clock = 1;
  };
  using Processes = std::map<RankSlot, Process>;
  struct Ending {
    std::uint64_t pid = 0;
    int status = 0;
  };

  void check_start(NodeId node, const StartProcesses& start);
  void start_process(const KeeperAt& at, const RankSlot& slot, std::uint16_t share);
  void join_epoch(const KeeperAt& at, const FenceToken& token, const RankSlot& slot, double clock);
  void report_replica(const KeeperAt& at, const FenceToken& token, std::uint64_t pid);
  /// From time to time each process writes something through the fence of its job. Epochs of an
  /// attempt may overlap while a rank leaves: its successors' rendezvous excludes it.
  void have_effect(const KeeperAt& at, std::uint64_t pid);
  /// nullptr: the process is dead.
  [[nodiscard]] Processes::value_type* find(const KeeperAt& at, std::uint64_t pid);
  void end(const KeeperAt& at, const Ending& ending);

  double ignores_term_;
  Rng& rng_;
  Outside outside_;
  std::map<JobId, ProtocolJob> jobs_;
  std::map<JobId, Fence> fences_;
  std::map<KeeperAt, Processes> keepers_;  ///< those with processes; none is empty
  std::uint64_t pids_ = 0;
};

}  // namespace orrery
