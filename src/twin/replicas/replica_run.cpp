#include "twin/replicas/replica_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace orrery {
namespace {

constexpr int kSteps = 30;
constexpr std::uint64_t kStepMax = 3'000;  ///< ms
/// From the end of all faults to an answer: a process that ends starts again after a second.
constexpr int kLeadsWithin = 2200 + 1000 + 800;  ///< ms
constexpr int kCalmMinutes = 10;

using Reach = VirtualEtcd::Reach;

/// Draws the faults of one seed.
class ReplicaFaults {
 public:
  ReplicaFaults(ReplicaWorld& world, std::uint64_t seed)
      : world_(world), rng_(Rng::stream(seed, "faults")) {}

  /// One fault.
  void strike();
  [[nodiscard]] Duration pause(std::uint64_t most_ms) {
    return Duration::milliseconds(static_cast<std::int64_t>(1 + rng_.below(most_ms)));
  }
  [[nodiscard]] std::uint64_t faults() const { return faults_; }

 private:
  void strike(Replica& replica);
  void strike_etcd();
  void strike_nodes();
  /// The operator compacts the log, or puts a text every now and then while nothing else happens.
  void operate();
  void put_texts(int times);
  /// Takes a backup, or restores an older one, if every machine has seen a newer log.
  void restore();
  [[nodiscard]] Replica& draw_replica();
  void later(Duration most, VirtualTime::Event event);
  void note(const std::string& what);

  ReplicaWorld& world_;
  Rng rng_;
  std::optional<EtcdContent> backup_;
  std::uint64_t faults_ = 0;
  std::uint64_t texts_ = 0;
};

void ReplicaFaults::note(const std::string& what) {
  ++faults_;
  world_.context().note(what);
}

void ReplicaFaults::later(Duration most, VirtualTime::Event event) {
  const auto ms = static_cast<std::uint64_t>(most.count_ns() / 1'000'000);
  world_.context().time().after(pause(ms), std::move(event));
}

/// Every second fault strikes the leader.
Replica& ReplicaFaults::draw_replica() {
  Replica* const leader = world_.leader();
  if (leader != nullptr && rng_.below(2) == 0) return *leader;
  return *world_.replicas()[rng_.below(VirtualEtcd::kMachines)];
}

void ReplicaFaults::strike() {
  switch (rng_.below(12)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      return strike(draw_replica());
    case 5:
    case 6:
      return strike_etcd();
    case 7:
    case 8:
      return operate();
    case 9:
      return strike_nodes();
    case 10:
      return world_.clients().cancel();
    default:
      return restore();
  }
}

void ReplicaFaults::strike(Replica& replica) {
  const auto machine = static_cast<std::size_t>(
      std::ranges::find_if(world_.replicas(),
                           [&](const auto& each) { return each.get() == &replica; }) -
      world_.replicas().begin());
  VirtualEtcd& etcd = world_.etcd();
  switch (rng_.below(3)) {
    case 0:
      ++faults_;
      replica.kill("between two events");
      return later(Duration::seconds(6), [&replica] { replica.start(); });
    case 1:
      ++faults_;
      replica.pause();
      return later(Duration::seconds(6), [&replica] { replica.resume(); });
    default:
      note(fmt::format("{} is cut off from etcd", replica.name()));
      etcd.set(machine, Reach::kAway);
      return later(Duration::seconds(8), [&etcd, machine] { etcd.set(machine, Reach::kThere); });
  }
}

void ReplicaFaults::strike_etcd() {
  VirtualEtcd& etcd = world_.etcd();
  if (rng_.below(2) == 0) {
    note("etcd is away");
    etcd.set(Reach::kAway);
    return later(Duration::seconds(5), [&etcd] { etcd.set(Reach::kThere); });
  }
  note("etcd is full");
  etcd.set(VirtualEtcd::Room::kFull);
  later(Duration::seconds(5), [&etcd] { etcd.set(VirtualEtcd::Room::kFree); });
}

void ReplicaFaults::strike_nodes() {
  ProtocolNodes& nodes = world_.nodes();
  const NodeId at = NodeId::at(rng_.below(nodes.size()));
  note(fmt::format("agent {} dies", at.value()));
  nodes.kill_agent(at);
  later(Duration::seconds(5), [&nodes, at] { nodes.start_agent(at); });
}

void ReplicaFaults::operate() {
  if (rng_.below(3) != 0) {
    note("the operator puts texts");
    return put_texts(10);
  }
  if (Replica* const leader = world_.leader()) {
    note("the log is compacted");
    leader->receive([](ReplicaLeader* to) {
      if (to != nullptr) to->compact();
    });
  }
}

void ReplicaFaults::put_texts(int times) {
  if (times == 0) return;
  if (Replica* const leader = world_.leader()) {
    const std::string name = fmt::format("note.{}", texts_++);
    leader->receive([name](ReplicaLeader* to) {
      if (to != nullptr) to->put_text({{name, "by the operator"}});
    });
  }
  constexpr Duration kEvery = Duration::milliseconds(400);
  world_.context().time().after(kEvery, [this, times] { put_texts(times - 1); });
}

void ReplicaFaults::restore() {
  VirtualEtcd& etcd = world_.etcd();
  if (etcd.is_old()) return;
  if (!backup_ || rng_.below(3) == 0) {
    backup_ = etcd.content();
    return;
  }
  const auto behind = [this](const std::unique_ptr<Replica>& each) {
    return each->mark().batch > backup_->disk.newest ||
           each->mark().term > static_cast<std::uint64_t>(backup_->disk.term);
  };
  if (!std::ranges::all_of(world_.replicas(), behind)) return;
  note(fmt::format("etcd is restored with batch {} of term {}", backup_->disk.newest,
                   static_cast<std::uint64_t>(backup_->disk.term)));
  etcd.restore(*std::exchange(backup_, std::nullopt));
  later(Duration::seconds(8), [&etcd] { etcd.restore_newest(); });
}

ReplicaRules rules_of(Rng& rng) {
  ReplicaRules rules;
  rules.network.loss = 0.05 * rng.uniform();
  rules.network.doubling = 0.05 * rng.uniform();
  rules.network.delay_max = Duration::milliseconds(1 + static_cast<std::int64_t>(rng.below(500)));
  rules.etcd.refused = 0.05 * rng.uniform();
  rules.etcd.lost = 0.05 * rng.uniform();
  rules.etcd.late = 0.03 * rng.uniform();
  rules.etcd.delayed = 0.15 * rng.uniform();
  rules.etcd.repeated = 0.1 * rng.uniform();
  rules.etcd.slow_claims = 0.5 * rng.uniform();
  rules.etcd.write_max = Duration::milliseconds(
      1 + static_cast<std::int64_t>(rng.below(rng.below(4) == 0 ? 900 : 30)));
  return rules;
}

/// Somebody answers soon after the end of all faults.
void check_lead(ReplicaWorld& world) {
  const Instant calm = world.context().now();
  world.make_calm();
  constexpr int kReadEvery = 250;
  for (int waited = 0; waited < kLeadsWithin; waited += kReadEvery) {
    world.clients().read();
    world.run(Duration::milliseconds(kReadEvery));
  }
  const std::optional<Instant> spoke = world.promises().leader_spoke();
  if (!spoke || *spoke < calm) world.context().wrong("nobody leads though all faults have ended");
}

}  // namespace

ReplicaRun run_replicas(const Facts& facts, std::uint64_t seed, const ReplicaWorld::Trace& trace) {
  Rng rng = Rng::stream(seed, "replicas");
  ReplicaWorld world(facts, rules_of(rng), seed, trace);
  ReplicaFaults faults(world, seed);
  for (int step = 0; step < kSteps && world.failure().empty(); ++step) {
    if (rng.below(3) == 0) world.clients().submit(1 + static_cast<std::uint32_t>(rng.below(8)));
    world.clients().read();
    world.run(faults.pause(kStepMax));
    faults.strike();
  }
  if (world.failure().empty()) check_lead(world);
  for (int minute = 0; minute < kCalmMinutes && !world.settled() && world.failure().empty();
       ++minute) {
    world.run(Duration::minutes(1));
  }
  if (world.failure().empty()) world.promises().check_log();
  if (world.failure().empty() && !world.settled()) world.context().wrong("not settled");
  const ReplicaPromises& promises = world.promises();
  ReplicaRun run{.failure = world.failure(),
                 .history = promises.history_hash(),
                 .faults = faults.faults(),
                 .terms = promises.takeovers(),
                 .jobs = promises.state() == nullptr ? 0 : promises.state()->jobs(),
                 .reads = world.clients().reads()};
  for (const auto& each : world.replicas()) run.refusals += each->refusals();
  return run;
}

}  // namespace orrery
