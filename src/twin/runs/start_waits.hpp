// twin/runs/start_waits.hpp - what the start of an attempt waits for: launch, compilation, nodes
// that have to be made ready, the job's state and its data.
//
// Owned by JobRuns. A copy in peers' memory is a second copy of the checkpoint in storage: the
// nodes of each gang form a ring, and each keeps its own part and that of the node before it. Bytes
// that contend with other transfers are awaited; all other waits are known at the start. One
// thread. Cost: O(nodes of the job) a start.
// Invariant: a job has a rest time if and only if it awaits bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "control/action.hpp"
#include "control/state/state.hpp"
#include "twin/runs/run_progress.hpp"
#include "twin/runs/world_traffic.hpp"
#include "twin/world/world_facts.hpp"

namespace orrery {

/// Attempts that began where another had ended.
struct Recoveries {
  std::uint64_t from_storage = 0;
  std::uint64_t from_peers = 0;
  std::uint64_t on_ready_nodes = 0;  ///< on own nodes and spares
};

/// What ranks read before they are up.
enum class StateToRead : std::uint8_t {
  kNone,        ///< they have the state in memory, or start anew
  kNewestCopy,  ///< the newest good copy, if there is one
};

class StartWaits {
 public:
  /// The topology, the facts and the traffic must outlive it.
  StartWaits(const Topology& topology, const WorldFacts& facts, WorldTraffic& traffic)
      : topology_(&topology), facts_(&facts), traffic_(&traffic) {}

  /// Precondition: ids come in order.
  void add(const TrueJob& job) { starts_.push_back({.peer_copy = job.peer_copy}); }
  /// Takes over that the job's data have been brought to these sites.
  void adopt(JobId job, SiteSet data_at) { starts_[job.value()].data_at = data_at; }

  /// Begins to bring what the epoch needs. Returns the time from now, or from the arrival of the
  /// awaited bytes, until the ranks are up.
  [[nodiscard]] Duration begin(const StartRanks& action, StateToRead read,
                               const RunProgress& progress, const State& state);
  [[nodiscard]] bool awaits_bytes(JobId job) const { return starts_[job.value()].awaited > 0; }
  /// One transfer for the job's start is complete. Returns the time until the ranks are up; none:
  /// another transfer is still awaited.
  [[nodiscard]] std::optional<Duration> bytes_arrived(JobId job);
  /// Records the nodes of a job that is up; from then on they hold its peer copies.
  void note_nodes(const RunningJob& placed, const State& state);

  /// Where the present attempt has read its state.
  [[nodiscard]] StateSource source(JobId job) const { return starts_[job.value()].source; }
  [[nodiscard]] const Recoveries& recoveries() const { return recoveries_; }

 private:
  /// A node of an attempt, with its boot number at that time.
  struct Seat {
    NodeId node;
    std::uint64_t boot = 0;
  };
  struct Start {
    bool peer_copy = false;
    SiteSet data_at = 0;           ///< sites to which its data have been brought
    std::uint32_t awaited = 0;     ///< transfers that the start waits for
    std::optional<Duration> rest;  ///< time from their arrival
    StateSource source = StateSource::kUnsaid;
    /// The nodes of each gang in the last attempt that was up, kept while the next one starts.
    std::vector<std::vector<Seat>> rings;
  };

  /// Whether the surviving nodes still hold every part of the state of each gang, given where the
  /// job starts now.
  [[nodiscard]] static bool memory_survives(const Start& start, JobId id, const State& state);
  /// Whether a node that the job keeps has rebooted since the last attempt.
  [[nodiscard]] static bool rebooted(const Start& start, JobId id, const State& state);
  /// Begins to read the job's state. Returns the rest of the restart time.
  [[nodiscard]] Duration begin_recovery(const StartRanks& action, const RunProgress& progress,
                                        const State& state);
  /// Begins to bring the job's data to the site of its nodes. Returns the time of the transfers
  /// that share nothing with other jobs.
  [[nodiscard]] Duration stage_data(const RunningJob& placed, const State& state);

  const Topology* topology_;
  const WorldFacts* facts_;
  WorldTraffic* traffic_;
  std::vector<Start> starts_;  ///< by id
  Recoveries recoveries_;
};

}  // namespace orrery
