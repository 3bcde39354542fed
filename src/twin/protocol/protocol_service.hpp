// twin/protocol/protocol_service.hpp - the owner of a service in a protocol world: submits it,
// updates it time and again, and ends it.
//
// Owned by the ProtocolWorld. One thread. Each request is repeated until it is answered. Cost:
// O(replicas so far) a durable event.
// It checks what no update may break, from the durable events alone: a replica that is ready is
// taken only where enough of those wanted are ready without it, no name is given twice, a revision
// whose replicas fail is not the service's in the end, the stages of a canary follow each other,
// no order leads above the most that were asked for, and a service that rests does not end.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "control/action.hpp"
#include "control/input.hpp"
#include "control/state/state.hpp"
#include "executor/control_host.hpp"
#include "twin/nodes/protocol_processes.hpp"
#include "twin/protocol/protocol_context.hpp"

namespace orrery {

class ProtocolService {
 public:
  struct Outside {
    std::function<const State*()> state;  ///< of the living controller; nullptr: there is none
    std::function<void(const Input&, ControlHost::Answered)> request;
    std::function<void(JobId, const ProtocolJob&)> made;  ///< a replica is durable
  };

  /// The context must outlive it.
  ProtocolService(ProtocolContext& context, Outside outside)
      : context_(context), outside_(std::move(outside)) {}
  ProtocolService(const ProtocolService&) = delete;
  ProtocolService& operator=(const ProtocolService&) = delete;

  /// Submits the service, with so many replicas.
  void begin(std::uint32_t replicas);
  /// Asks for a revision, one whose replicas fail before they are ready or a good one.
  void update(std::uint32_t replicas, const RolloutTerms& terms, ProtocolReplica does);
  /// Judges the canary of the service, where there is one, as its gateways would.
  void judge(CanaryVerdict::Of of);
  /// Orders another number of replicas, 0 to kScaledMost, as the demand of its clients would.
  void scale(std::uint32_t replicas);
  static constexpr std::uint32_t kScaledMost = 3;
  /// Ends the service once no update is under way that gets the devices it needs; to be called
  /// until ended().
  void end();

  void note_durable(std::span<const Event> events);
  /// Whether the service has never begun, or all of its replicas have ended.
  [[nodiscard]] bool ended(const State& state) const;

 private:
  struct Replica {
    bool up = false;
    bool ready = false;
    bool over = false;
  };
  struct Wanted {
    std::uint32_t replicas = 0;
    RolloutTerms terms;
    std::uint32_t revision = 0;
    std::uint32_t stage = 0;
    bool back = false;
  };

  void ask(const InputKind& what, const std::string& request);
  [[nodiscard]] Submission replica_of(std::uint32_t index, const State& state) const;
  void note(const Event& event);
  void note_stop(const JobStopping& event);
  void note_end(const JobEnded& event);
  void note_scaled(const ServiceScaled& event);
  [[nodiscard]] std::uint32_t ready() const;
  [[nodiscard]] bool waits_for_devices(const State& state) const;

  ProtocolContext& context_;
  Outside outside_;
  std::map<JobId, Replica> replicas_;
  std::set<std::string> names_;
  std::set<std::string> answered_;
  std::optional<Wanted> wanted_;  ///< by the update under way; none: there is none
  bool rests_ = false;            ///< by the newest order, and nothing has woken it
  std::uint32_t asked_ = 0;       ///< replicas at the begin
  std::uint32_t updates_ = 0;
  bool waits_ = false;  ///< a replica waited for devices at the last end()
  bool ending_ = false;
};

}  // namespace orrery
