// tests/fuzz/fuzz_snapshot.cpp - any bytes as the fields of a snapshot of a small fleet's state,
// with a good checksum: an accepted snapshot is consistent, is written again as the same state, and
// can continue like any other state.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "base/format/checksum.hpp"
#include "control/codec/encoder.hpp"
#include "control/core/core.hpp"
#include "control/state/invariants.hpp"
#include "control/state/snapshot.hpp"
#include "tests/fuzz/fleet_of_text.hpp"

namespace orrery {
namespace {

constexpr std::string_view kFleet = R"(
apiVersion: orrery/v1
kind: Fleet
name: small
sites:
- name: site
  halls:
  - pods:
    - name: su
      racks:
      - count: 2
        cooling: in-row-or-dense-air
        nodes: [{type: dgx-h100, count: 2}]
  fabrics: [{type: ib-ndr, topology: fat-tree}]
)";

const Topology& fleet() {
  static const Topology kTopology = fleet_of_text(kFleet);
  return kTopology;
}

const ControlSetup& setup() {
  static const PlaceTree kTree(fleet());
  static const TenantTree kTenants = default_tenant_tree(fleet());
  static const ControlSetup kSetup = [] {
    ControlSetup setup;
    setup.topology = &fleet();
    setup.tree = &kTree;
    setup.tenants = &kTenants;
    setup.policy = *policy_named("easy");
    setup.plans = [](const PlanKey&) {
      return std::make_shared<const PlanEntry>(
          tl::unexpected(Rejection{.kind = RejectionKind::kMemory, .reason = "too large"}));
    };
    return setup;
  }();
  return kSetup;
}

void check_state(const State& state) {
  const auto broken = broken_invariant(state);
  ORRERY_ASSERT(!broken, broken ? broken->c_str() : "");
}

/// The ranks of every job come up and end, nodes fall silent and come back, the remaining jobs are
/// cancelled.
class Aftermath {
 public:
  explicit Aftermath(Core& core) : core_(core), now_(core.state().now()) {}

  void run() {
    send(Tick{});
    for (std::uint32_t i = 0; i < jobs(); ++i) on_job(JobId(i));
    for (std::uint32_t n = 0; n < fleet().node_count(); ++n) {
      send(NodeHeard{NodeId(n), NodeHealth::kLost, 5});
      send(Tick{});
      send(NodeJoined{NodeId(n), core_.state().node(NodeId(n)).boot + 1});
    }
    now_ = now_ + Duration::hours(1);
    send(Tick{});
    for (std::uint32_t i = 0; i < jobs(); ++i) send(CancelJob{JobId(i)});
  }

 private:
  [[nodiscard]] std::uint32_t jobs() const {
    return static_cast<std::uint32_t>(core_.state().jobs());
  }
  void on_job(JobId id) {
    if (!core_.state().has(id)) return;
    const Job& job = core_.state().job(id);
    send(RanksUp{id, job.attempt, job.epoch});
    if (id.value() % 2 == 0) send(RanksEnded{id, job.attempt, ExitKind::kInfra, {}, {}, false});
    if (id.value() % 4 == 0) send(RanksGone{id, job.attempt, {}, {}});
  }
  void send(InputKind what) {
    (void)core_.handle({.at = now_, .what = std::move(what)});
    check_state(core_.state());
  }

  Core& core_;
  Instant now_;
};

void take_up(std::string_view bytes) {
  Core core(setup());
  if (const Status read = core.restore(bytes); !read) {
    ORRERY_ASSERT(!read.error().message.empty(), "a refusal says why");
    return;
  }
  check_state(core.state());
  State again(setup());
  ORRERY_ASSERT(restore(again, snapshot_of(core.state())), "what is written is read");
  ORRERY_ASSERT(digest_of(again) == digest_of(core.state()), "and is the same state");
  core.resume();
  Aftermath(core).run();
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  orrery::Encoder out;
  out.raw(std::string_view(reinterpret_cast<const char*>(data), size));
  out.fixed(orrery::checksum(out.bytes(), 0));
  orrery::take_up(out.bytes());
  return 0;
}
