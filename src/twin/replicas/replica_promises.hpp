// twin/replicas/replica_promises.hpp - what several controllers on one log promise, checked while
// they run: a witness applies each batch that the log gets, and every controller is compared with
// it.
//
// Owned by the ReplicaWorld. The promises:
//   1. A job that was acknowledged is in the log that survives, once.
//   2. Two controllers never speak at once: when a term is claimed, every other process has been
//      silent for a second, and it stays silent.
//   3. At each batch all controllers have the same history hash, and a leader's state is that which
//      its log leads to.
//   4. Terms only rise, and only the newest term is written.
// One thread. Cost: applying each batch once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "executor/live/live_setup.hpp"
#include "store/history.hpp"
#include "twin/protocol/protocol_context.hpp"

namespace orrery {

class ReplicaPromises {
 public:
  struct Outside {
    StoreReader& log;                                    ///< that of etcd, without faults
    const Facts& facts;                                  ///< of the controllers
    const ControllerSettings& settings;                  ///< likewise
    std::function<void(JobId, const Submission&)> made;  ///< a job is durable
  };
  /// The context outlives it.
  ReplicaPromises(ProtocolContext& context, Outside outside)
      : context_(context), outside_(std::move(outside)) {}
  ReplicaPromises(const ReplicaPromises&) = delete;
  ReplicaPromises& operator=(const ReplicaPromises&) = delete;

  // --- What the log gets

  void claimed(StoreTerm term, std::size_t process);
  void appended(StoreTerm term, const Batch& batch);
  void texts_put();

  // --- What processes do

  /// A process has sent an order or an answer at this time.
  void spoke(std::size_t process, Instant at);
  void acknowledged(const std::string& name, JobId job);
  /// An acknowledged job must be in whatever is read from now on.
  [[nodiscard]] std::uint64_t jobs_acknowledged() const { return next_acknowledged_; }
  void was_read(std::uint64_t acknowledged, const State& state);
  /// A process has applied the log up to this batch.
  void applied(std::uint64_t batch, std::uint64_t history_hash);
  /// A leader has made everything durable that it decided, up to this batch.
  void settled(std::uint64_t batch, const State& state);

  // --- The end

  /// Compares the log that is left with everything that was promised.
  void check_log();

  /// The state after the newest batch; nullptr: the log has not begun.
  [[nodiscard]] const State* state() const { return core_ == nullptr ? nullptr : &core_->state(); }
  [[nodiscard]] std::uint64_t history_hash() const {
    return core_ == nullptr ? 0 : core_->history_hash();
  }
  [[nodiscard]] std::uint64_t takeovers() const { return terms_.size(); }
  /// When a process spoke last that holds the newest term; none: none did.
  [[nodiscard]] std::optional<Instant> leader_spoke() const;

 private:
  void begin();
  void note(const TimedEvent& event);

  ProtocolContext& context_;
  Outside outside_;
  std::unique_ptr<LiveSetup> setup_;
  std::unique_ptr<FollowedCore> core_;             ///< none: the log has not begun
  std::map<std::string, JobId> made_;              ///< by name
  std::map<std::string, JobId> acknowledged_;      ///< likewise
  std::uint64_t next_acknowledged_ = 0;            ///< above all of them
  std::map<std::uint64_t, std::uint64_t> hashes_;  ///< by batch
  std::vector<std::size_t> terms_;                 ///< processes that claimed them, from 1
  std::map<std::size_t, Instant> spoke_;           ///< by process
  StoreTerm term_ = StoreTerm::kNone;
};

}  // namespace orrery
