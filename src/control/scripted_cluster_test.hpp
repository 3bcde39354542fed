// control/scripted_cluster_test.hpp - a small fleet under control whose executor is the test
// itself.
//
// Every event goes through the codec into a second state, beside the core's: the invariants must
// hold there after each event, and after each input both states must have the same digest. So every
// test also tests codec, replay and invariants. Used by one thread.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/core/core.hpp"
#include "control/core/held_situation.hpp"
#include "control/log/journal.hpp"

namespace orrery {

/// Two racks of two DGX H100: 4 nodes, 32 accelerators.
[[nodiscard]] std::string four_nodes();
/// A rack of two DGX H100 and one of two DGX A100: two types of 16 accelerators.
[[nodiscard]] std::string two_types();

enum class PowerLimits : std::uint8_t { kNone, kAsBuilt };
/// Whether devices may be shared; if so, the metered time of jobs differs from the ledger's.
enum class Sharing : std::uint8_t { kNever, kSometimes };

struct ScriptedOptions {
  std::string fleet = four_nodes();
  std::string tenants;  ///< the lines under "tenants:"; empty: one tenant, "default"
  std::string policy = "fifo:blocking=false";
  PowerLimits power = PowerLimits::kNone;
  Sharing sharing = Sharing::kNever;
  ControlTiming timing;
  double failures_per_node_second = 0;
  NodeHealth nodes_begin = NodeHealth::kReady;
};

class ScriptedCluster {
 public:
  explicit ScriptedCluster(const ScriptedOptions& options = {});
  ~ScriptedCluster();

  /// A job of one gang of whole H100 for an hour; its ranks are on as few nodes as possible.
  [[nodiscard]] Submission job(std::uint32_t devices) const;
  [[nodiscard]] GangRequest gang(std::uint32_t devices, std::string_view type = "h100") const;
  /// An elastic job of one gang with between `least` and `most` devices.
  [[nodiscard]] Submission elastic_job(std::uint32_t least, std::uint32_t most) const;

  const Outcome& send(InputKind what, const std::string& request_id = "");
  /// Handles decisions as if a full pass beside the core had made them.
  void decide(std::vector<Decision> decisions);
  JobId submit(const Submission& submission, const std::string& request_id = "");
  /// Submits a job and lets it get its devices.
  JobId start(const Submission& submission);
  /// Starts a job and reports it up.
  JobId run(const Submission& submission);
  /// Sends ticks until nothing is due now.
  void tick();
  /// Advances time; everything due in between happens when it is due.
  void wait(Duration time);

  void up(JobId id);
  /// Reports that the job's ranks ended by themselves and are gone.
  void end(JobId id, ExitKind kind = ExitKind::kDone);
  /// Reports the ranks of the job's present attempt gone on these nodes; empty: on all nodes.
  void gone(JobId id, const std::vector<NodeId>& nodes = {});

  [[nodiscard]] const Core& core() const { return *core_; }
  [[nodiscard]] const State& state() const { return core_->state(); }
  [[nodiscard]] std::unique_ptr<const HeldSituation> hold() { return core_->hold(now_); }
  [[nodiscard]] const ControlSetup& setup() const { return setup_; }
  [[nodiscard]] const Topology& topology() const { return *state().setup().topology; }
  [[nodiscard]] const Job& job(JobId id) const { return state().job(id); }
  [[nodiscard]] JobPhase phase(JobId id) const { return job(id).phase; }
  /// The nodes of the job's first gang; empty where it holds none.
  [[nodiscard]] std::vector<NodeId> nodes(JobId id) const;
  [[nodiscard]] NodeHealth health(NodeId id) const { return state().node(id).health; }
  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] const std::vector<TimedEvent>& log() const { return log_; }
  /// Counts the events of a type that the last input caused.
  template <class Type>
  [[nodiscard]] std::size_t count() const {
    std::size_t found = 0;
    for (const Event& event : core_events_) found += std::holds_alternative<Type>(event) ? 1 : 0;
    return found;
  }
  /// The actions of the last input.
  [[nodiscard]] const std::vector<Action>& actions() const { return actions_; }

 private:
  /// A fleet and what control needs of it.
  struct Version {
    std::unique_ptr<const Topology> topology;
    std::unique_ptr<const PlaceTree> tree;
    std::unique_ptr<const TenantTree> tenants;
    std::unique_ptr<const PowerTree> power;
    ControlSetup setup;
  };
  [[nodiscard]] std::unique_ptr<Version> version_of(Topology topology) const;
  void mirror(const Event& event);

  ScriptedOptions options_;
  std::unique_ptr<Version> first_;
  std::map<std::string, std::unique_ptr<Version>> changed_;  ///< by the text of the fleet
  Sharing sharing_;
  ControlSetup& setup_;
  std::unique_ptr<Core> core_;
  std::unique_ptr<State> mirror_;
  std::vector<TimedEvent> log_;
  std::vector<Event> core_events_;
  std::vector<Action> actions_;
  Instant now_;
};

}  // namespace orrery
