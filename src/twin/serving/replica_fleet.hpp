// twin/serving/replica_fleet.hpp - the replicas of a modelled service: their engines, when each was
// ordered, became ready and went, and what their time cost.
//
// Owned by a service run. Numbers of replicas are never used again. Invariant: a replica is in one
// phase; only ready and draining ones have requests. Cost: O(log replicas) for the next engine
// that is due.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "twin/gateways/modelled_gateway.hpp"
#include "twin/serving/engine_model.hpp"
#include "twin/serving/service_figures.hpp"
#include "twin/serving/service_setup.hpp"

namespace orrery {

enum class ModelledPhase : std::uint8_t { kStarting, kReady, kDraining, kGone };

class ReplicaFleet {
 public:
  /// `units`: RequestTrace::blocks.
  ReplicaFleet(const ServiceSetup& setup, std::uint32_t units);

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(replicas_.size()); }
  [[nodiscard]] EngineModel& engine(std::uint32_t replica) { return *replicas_[replica].engine; }
  [[nodiscard]] const ReplicaGroup& group_of(std::uint32_t replica) const {
    return setup_.groups[replicas_[replica].group];
  }
  [[nodiscard]] ModelledPhase phase_of(std::uint32_t replica) const {
    return replicas_[replica].phase;
  }
  /// Counts the starts of a replica.
  [[nodiscard]] std::uint32_t attempt_of(std::uint32_t replica) const {
    return replicas_[replica].attempt;
  }
  /// Those that take requests, by number.
  [[nodiscard]] std::vector<ReadyReplica> ready() const;
  /// Replicas of a group in a phase.
  [[nodiscard]] std::uint32_t count(std::size_t group, ModelledPhase phase) const;
  /// Whether some replica could ever answer a request of that size.
  [[nodiscard]] bool fits_any(std::uint32_t prompt_tokens, std::uint32_t output_tokens) const;

  /// Adds a replica that starts now; `ready` ones take requests at once. Returns its number.
  std::uint32_t order(std::size_t group, ModelledPhase phase, Picoseconds now);
  void set_ready(std::uint32_t replica) { replicas_[replica].phase = ModelledPhase::kReady; }
  /// Takes no more requests; goes when it has none.
  void drain(std::uint32_t replica, Picoseconds now);
  /// Ends a replica that drains and has nothing more to do; returns whether it went.
  bool retire(std::uint32_t replica, Picoseconds now);
  /// Loses everything and starts again; returns the requests that it had.
  std::vector<EngineRequest> crash(std::uint32_t replica, Picoseconds now);

  /// Tells that next() of an engine may have changed.
  void touch(std::uint32_t replica);
  /// When the next engine is due; kNeverPs: none is.
  [[nodiscard]] Picoseconds next();
  /// The engine that is due at next().
  [[nodiscard]] std::uint32_t due();

  /// Sets what the replicas' time came to at the end of the run.
  void report(ServiceFigures& figures, Picoseconds end) const;

 private:
  struct Modelled {
    std::uint32_t group = 0;
    std::uint32_t attempt = 1;
    ModelledPhase phase = ModelledPhase::kStarting;
    Picoseconds ordered = 0;
    Picoseconds gone = kNeverPs;
    std::unique_ptr<EngineModel> engine;
  };
  struct Due {
    Picoseconds time = 0;
    std::uint32_t replica = 0;
  };
  static bool is_later(const Due& a, const Due& b) {
    return a.time != b.time ? a.time > b.time : a.replica > b.replica;
  }
  void drop_stale();

  const ServiceSetup& setup_;
  std::uint32_t units_;
  std::vector<Modelled> replicas_;
  std::vector<Due> due_;  ///< a heap; entries whose engine has another time are skipped
};

}  // namespace orrery
