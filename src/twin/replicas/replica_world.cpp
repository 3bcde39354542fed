#include "twin/replicas/replica_world.hpp"

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

constexpr std::size_t kNodes = 2;
constexpr Duration kWork = Duration::seconds(8);  ///< of a job
/// Often enough that the log of a seed is compacted and archived several times.
constexpr Bytes kSnapshotEvery{std::uint64_t{4} << 10};
constexpr Seconds kRetain{5};

constexpr const char* kFleet = R"(apiVersion: orrery/v1
kind: Fleet
name: lab
sites:
- name: here
  halls:
  - name: hall
    pods:
    - name: pod
      racks:
      - nodes: [{type: dgx-h100, count: 2, names: "node[0-1]"}]
)";
constexpr const char* kPolicy = "apiVersion: orrery/v1\nkind: Policy\nname: fifo\n";

}  // namespace

ReplicaWorld::ReplicaWorld(const Facts& facts, const ReplicaRules& rules, std::uint64_t seed,
                           Trace trace)
    : settings_{.retain = kRetain, .snapshot_every = kSnapshotEvery},
      setup_{.fleet = kFleet, .policy = kPolicy, .writer = "twin"},
      context_({.network = rules.network}, seed, std::move(trace)),
      etcd_(context_, rules.etcd,
            {[this](StoreTerm term, std::size_t process) { promises_.claimed(term, process); },
             [this](StoreTerm term, const Batch& batch) { promises_.appended(term, batch); },
             [this] { promises_.texts_put(); }}),
      promises_(context_, {etcd_.reader(), facts, settings_,
                           [this](JobId id, const Submission& made) {
                             nodes_.ranks().know(id, {.restart = made.restart, .work = kWork});
                           }}),
      parts_{context_,
             etcd_,
             promises_,
             facts,
             setup_,
             settings_,
             rules.claims_after,
             seed,
             [this](const Order& order) {
               context_.transmit([this, order] { nodes_.deliver(order); });
             }},
      clients_(context_, promises_, replicas_),
      nodes_({.cluster = kReplicaCluster, .nodes = kNodes, .beat = Duration::seconds(5)}, seed,
             {context_.time(), [this](const Report& report) { deliver(report); },
              [this](const std::string& what) { context_.wrong(what); }}) {
  replicas_.reserve(VirtualEtcd::kMachines);
  for (std::size_t i = 0; i < VirtualEtcd::kMachines; ++i) {
    replicas_.push_back(std::make_unique<Replica>(parts_, i));
    replicas_.back()->start();
  }
}

/// An agent has a stream to every controller; one that does not lead says nothing.
void ReplicaWorld::deliver(const Report& report) {
  for (const std::unique_ptr<Replica>& each : replicas_) {
    context_.transmit([&to = *each, report] {
      to.receive([report](ReplicaLeader* leader) {
        if (leader != nullptr) leader->deliver(report);
      });
    });
  }
}

void ReplicaWorld::run(Duration span) {
  VirtualTime& time = context_.time();
  const Instant until = time.now() + span;
  while (failure().empty()) {
    const Instant next = std::min(time.next(), nodes_.next_due());
    if (next > until) break;
    time.move_to(next);
    step();
  }
  time.move_to(until);
}

void ReplicaWorld::step() {
  VirtualTime& time = context_.time();
  if (time.next() <= time.now()) {
    time.run_next();
  } else {
    nodes_.fire_due();
  }
  for (const std::unique_ptr<Replica>& each : replicas_) each->check();
}

void ReplicaWorld::make_calm() {
  context_.note("calm");
  context_.make_reliable();
  etcd_.make_calm();
  for (const std::unique_ptr<Replica>& each : replicas_) {
    each->resume();
    each->start();
  }
}

Replica* ReplicaWorld::leader() {
  const auto found =
      std::ranges::find_if(replicas_, [](const auto& each) { return each->leads(); });
  return found == replicas_.end() ? nullptr : found->get();
}

bool ReplicaWorld::settled() const {
  const State* const state = promises_.state();
  return state != nullptr && clients_.all_answered() && state->jobs() == state->ended_jobs();
}

}  // namespace orrery
