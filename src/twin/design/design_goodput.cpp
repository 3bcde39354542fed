#include "twin/design/design_goodput.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/numbers/math.hpp"
#include "base/numbers/rng.hpp"
#include "perf/site/storage_path.hpp"
#include "twin/faults/fault_law.hpp"

namespace orrery {
namespace {

constexpr int kDraws = 1 << 15;
constexpr double kCheckpointsKept = 10;
/// Above this mean the number of broken nodes is treated as normal, as e to the power of minus the
/// mean would vanish.
constexpr double kMeanMax = 500;
constexpr double kDeviations = 3;
constexpr double kMillionHours = 1e6 * 3600;

/// Whether the system serves every node, over its own NICs, and publishes what sizing needs.
bool suits_checkpoints(const StorageSystem& system) {
  return place_of(system) == StoragePlace::kShared && system.write && system.usable && system.power;
}

struct Demand {
  BytesPerSecond write;
  BytesPerSecond ingest;
  Bytes capacity;
};

std::uint32_t units_of(const StorageSystem& system, const Demand& demand) {
  const double most = std::max({demand.write / *system.write, demand.ingest / system.read,
                                demand.capacity / *system.usable, 1.0});
  return static_cast<std::uint32_t>(std::ceil(most * (1 - 1e-9)));
}

/// Rate that the NICs allow, with so many units that storage is no limit.
Result<BytesPerSecond> nic_limit(const PlannerFacts& facts, const StorageSystem& system,
                                 const TrainedJob& job) {
  constexpr double kUnits = 1e6;
  return storage_rate({.system = &system, .units = kUnits, .nodes = job.nodes(), .node_limit = {}},
                      *job.node, facts.calibration, Transfer::kWrite);
}

Result<Demand> demand_on(const PlannerFacts& facts, const StorageSystem& system,
                         const StorageNeed& need) {
  Demand demand{.capacity = need.capacity};
  for (const TrainedJob& job : need.jobs) {
    Result<BytesPerSecond> limit = nic_limit(facts, system, job);
    if (!limit) return forward_error(limit);
    // At the interval sqrt(2 w M) a write of w takes the share sqrt(w / 2M) of the time.
    const Seconds write = job.time_between_faults * (2 * kStallShare * kStallShare);
    demand.write = std::max(demand.write, std::min(job.checkpoint / write, *limit));
    demand.ingest += job.ingest * job.count;
    demand.capacity += job.checkpoint * (kCheckpointsKept * job.count);
  }
  return demand;
}

Result<StorageChoice> choice_of(const PlannerFacts& facts, const StorageSystem& system,
                                const StorageNeed& need) {
  Result<Demand> demand = demand_on(facts, system, need);
  if (!demand) return forward_error(demand);
  return StorageChoice{.system = &system,
                       .units = units_of(system, *demand),
                       .write = demand->write,
                       .ingest = demand->ingest,
                       .capacity = demand->capacity};
}

}  // namespace

double TrainedJob::nodes() const { return std::ceil(accelerators / node->accelerators_per_node); }

Result<NodeFaults> node_faults(const Catalog& catalog, const FailureSpec& spec,
                               const RackOfNodes& rack) {
  NodeFaults faults;
  for (const ComponentFailureRate& row : catalog.all<ComponentFailureRate>()) {
    if (row.per != FailureScope::kRack) continue;
    faults.rate += row.per_million_hours / kMillionHours * spec.facility / rack.nodes;
  }
  Result<FaultLaw> law = FaultLaw::make(spec, catalog);
  if (!law) return forward_error(law);
  const double own = law->node_rate(rack.devices);
  if (!(own > 0)) return faults;
  faults.rate += own;
  Rng rng = Rng::stream(0, "design/faults");
  double detect = 0;
  double out = 0;
  for (int i = 0; i < kDraws; ++i) {
    Fault fault{.kind = law->draw_kind(rack.devices, rng)};
    law->draw_times(FaultLaw::Where::kNode, fault, rng);
    detect += fault.detection.count_seconds();
    if (takes_node(fault)) out += fault.repair.count_seconds();
  }
  faults.detect = Seconds(detect / kDraws);
  faults.out = Seconds(out / kDraws);
  return faults;
}

Spares spares_for(const NodeFaults& faults, double nodes, double job_nodes) {
  const double mean = nodes * faults.rate * faults.out.value();
  // E[(X - s)+] falls by P(X > s) with each spare.
  Spares spares{.broken = mean, .missing = mean};
  if (mean > kMeanMax) {
    const double wanted = std::ceil(mean + kDeviations * std::sqrt(mean));
    spares.nodes = static_cast<std::uint32_t>(std::min(wanted, nodes));
    spares.missing = 0;
    return spares;
  }
  double term = exp(-mean);
  double above = 1 - term;
  while (above * job_nodes > 1 && spares.nodes < nodes) {
    spares.missing -= above;
    term *= mean / ++spares.nodes;
    above -= term;
  }
  spares.missing = std::max(0.0, spares.missing);
  return spares;
}

Result<StorageChoice> storage_for(const PlannerFacts& facts, const StorageNeed& need) {
  if (need.wanted != nullptr) {
    if (!need.wanted->write || !need.wanted->usable) {
      return infeasible(
          fmt::format("{}: its write rate or capacity is not published; name another "
                      "storage system",
                      need.wanted->id));
    }
    return choice_of(facts, *need.wanted, need);
  }
  std::optional<StorageChoice> least;
  const auto power = [](const StorageChoice& choice) {
    return *choice.system->power * choice.units;
  };
  for (const StorageSystem& system : facts.catalog.all<StorageSystem>()) {
    if (!suits_checkpoints(system)) continue;
    Result<StorageChoice> choice = choice_of(facts, system, need);
    if (!choice) return forward_error(choice);
    if (!least || power(*choice) < power(*least)) least = *choice;
  }
  if (!least) return infeasible("the catalog has no storage system with rates and power");
  return *least;
}

Result<JobGoodput> training_goodput(const PlannerFacts& facts, const TrainedJob& job,
                                    const StorageChoice& storage, Seconds detect) {
  const StoragePath path{.system = storage.system,
                         .units = static_cast<double>(storage.units),
                         .nodes = job.nodes(),
                         .node_limit = {}};
  Result<BytesPerSecond> write = storage_rate(path, *job.node, facts.calibration, Transfer::kWrite);
  if (!write) return forward_error(write);
  Result<BytesPerSecond> read = storage_rate(path, *job.node, facts.calibration, Transfer::kRead);
  if (!read) return forward_error(read);
  Result<CheckpointTimes> times = checkpoint_times(
      {.bytes = job.checkpoint, .accelerators = job.accelerators, .write = *write, .read = *read});
  if (!times) return forward_error(times);
  Result<Seconds> restart =
      restart_time(facts.catalog, facts.calibration, job.accelerators, RestartKind::kCold);
  if (!restart) return forward_error(restart);
  JobGoodput result{.stall = times->stall, .restart = *restart + times->read};
  if (job.time_between_faults == Seconds(std::numeric_limits<double>::infinity())) return result;
  Result<Seconds> interval = daly_interval(times->stall, job.time_between_faults);
  if (!interval) return forward_error(interval);
  Result<Goodput> parts = goodput_of({.mean_time_to_failure = job.time_between_faults,
                                      .checkpoint = *times,
                                      .detect = detect,
                                      .restart = *restart,
                                      .step = job.step,
                                      .interval = std::max(*interval, job.step)});
  if (!parts) return forward_error(parts);
  result.parts = *parts;
  return result;
}

}  // namespace orrery
