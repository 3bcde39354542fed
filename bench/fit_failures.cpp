// bench/fit_failures.cpp - fits the catalog's measured fault models to public records of failures
// and compares the draws of the model with them. Usage: fit_failures FOLDER, with FOLDER/failures
// as in bench/fault_data.hpp.
#include <fmt/format.h>

#include <cstdlib>

#include "bench/fault_data.hpp"
#include "fleet/spec/builder.hpp"
#include "hardware/builtin_catalog.hpp"
#include "twin/faults/failure_model.hpp"

namespace orrery {
namespace {

constexpr double kDaySeconds = 86400;

/// A value that must be there.
template <class T>
T must(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "{}\n", result.error().text());
    std::exit(1);
  }
  return *std::move(result);
}

void print_statistics(std::string_view name, const FaultStatistics& s) {
  fmt::print(
      "{:<22} {:>6} {:>9.4f} {:>6.2f} {:>7.2f} {:>7.2f} {:>8.2f} {:>7.2f} {:>7.2f} {:>8.3f}"
      " {:>8.3f}\n",
      name, s.faults, s.per_1000_unit_days, s.gap_cv, s.dispersion_1, s.dispersion_14,
      s.repair_median.value() / kDaySeconds, s.repair_mean.value() / kDaySeconds,
      s.repair_p90.value() / kDaySeconds, s.relapse, s.relapse_by_chance);
}

void print_fit(std::string_view name, const FailureSpec& spec) {
  fmt::print("{}: {:.3f} per 1,000 unit days\n", name, spec.failures_per_1000_node_days);
  fmt::print("  relapse {{probability: {:.3f}, shape: {:.3f}, scale: {:.2f} h}}\n",
             spec.relapse.probability, spec.relapse.shape, spec.relapse.scale.value() / 3600);
  for (const BurstModel& b : spec.bursts) {
    fmt::print("  burst {{share: {:.3f}, size: {:.1f}, spread: {:.1f} h}}\n", b.share, b.size,
               b.spread.value() / 3600);
  }
  if (spec.repair) {
    fmt::print(
        "  repair {{transient_share: {:.3f}, transient: {:.0f} s, median: {:.1f} h, mean: "
        "{:.1f} h}}\n",
        spec.repair->transient_share, spec.repair->transient.value(),
        spec.repair->median.value() / 3600, spec.repair->mean.value() / 3600);
  }
  for (const FaultPart& part : spec.mix) {
    fmt::print("  {}: {:.4f}\n", word_of_fault(part.fault), part.share);
  }
}

FailureSpec fit(const FaultRecord& record) {
  const Observation seen = record.seen();
  FailureSpec spec;
  spec.failures_per_1000_node_days = measure(seen).per_1000_unit_days;
  spec.network = 0;
  spec.facility = 0;
  spec.relapse = fit_relapse(seen);
  const std::vector<ObservedFault> first = without_relapses(seen);
  const Observation firsts{first, seen.units, seen.length};
  const std::vector<ObservedFault> alone = without_simultaneous(firsts);
  spec.bursts = {fit_simultaneous(firsts), fit_waves({alone, seen.units, seen.length})};
  for (BurstModel& burst : spec.bursts) burst.scope = BurstScope::kHall;
  // The shares of both kinds of bursts sum to at most 1.
  spec.bursts[1].share = std::min(spec.bursts[1].share, 1 - spec.bursts[0].share);
  spec.repair = fit_repair(seen);
  for (const auto& each : enum_words(FaultKind{})) {
    const auto n = std::count(record.kinds.begin(), record.kinds.end(), each.value);
    if (n == 0) continue;
    spec.mix.push_back(
        {each.value, static_cast<double>(n) / static_cast<double>(record.kinds.size())});
  }
  return spec;
}

// The model's draws in `length`, as they would be recorded: a fault begins where it is known.
FaultRecord drawn(const Topology& topology, const FailureSpec& spec, std::uint64_t seed) {
  FaultRecord record{.units = topology.node_count(), .length = Duration::hours(24) * 348};
  FailureModel model = must(FailureModel::make(topology, spec, {.seed = seed}));
  const Instant end = Instant() + record.length;
  while (const std::optional<Fault> fault = model.next(end)) {
    const NodeId* node = std::get_if<NodeId>(&fault->scope);
    const DeviceId* device = std::get_if<DeviceId>(&fault->scope);
    if (node == nullptr && device == nullptr) continue;
    const NodeId at = node != nullptr ? *node : topology.node_of(*device);
    record.add({fault->at, fault->over_at(), at.value()}, fault->kind);
  }
  return record;
}

/// The mean over seeds of the statistics of the model's faults.
FaultStatistics measure_drawn(const Topology& topology, const FailureSpec& spec) {
  constexpr int kSeeds = 40;
  FaultStatistics mean{.dispersion_1 = 0, .dispersion_14 = 0};
  const auto add = [](auto& total, auto value) { total = total + value * (1.0 / kSeeds); };
  double faults = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const FaultStatistics s =
        measure(drawn(topology, spec, static_cast<std::uint64_t>(seed)).seen());
    add(faults, static_cast<double>(s.faults));
    add(mean.per_1000_unit_days, s.per_1000_unit_days);
    add(mean.gap_cv, s.gap_cv);
    add(mean.dispersion_1, s.dispersion_1);
    add(mean.dispersion_14, s.dispersion_14);
    add(mean.repair_median, s.repair_median);
    add(mean.repair_mean, s.repair_mean);
    add(mean.repair_p90, s.repair_p90);
    add(mean.relapse, s.relapse);
    add(mean.relapse_by_chance, s.relapse_by_chance);
  }
  mean.faults = static_cast<std::size_t>(faults);
  return mean;
}

/// The waves' share of the faults at which the drawn gaps vary as those seen, their pairs kept.
void match_share(const Topology& topology, double pairs, double gap_cv, FailureSpec& spec) {
  BurstModel& waves = spec.bursts[1];
  double low = 0.05;
  double high = 1 - spec.bursts[0].share;
  for (int i = 0; i < 8; ++i) {
    waves.share = (low + high) / 2;
    waves.size = 1 + pairs / waves.share;
    (measure_drawn(topology, spec).gap_cv < gap_cv ? low : high) = waves.share;
  }
}

/// Simulated moments from the closed ones on: a wave's relapses hide part of it from those, so its
/// pairs, its share, the relapses and the rate are matched to what is seen, in turn.
FailureSpec matched(const Topology& topology, FailureSpec spec, const FaultStatistics& seen) {
  double pairs = spec.bursts[1].share * (spec.bursts[1].size - 1);
  for (int round = 0; round < 5; ++round) {
    match_share(topology, pairs, seen.gap_cv, spec);
    const FaultStatistics drawn = measure_drawn(topology, spec);
    pairs *= (seen.dispersion_14 - 1) / (drawn.dispersion_14 - 1);
    spec.relapse.probability *=
        (seen.relapse - seen.relapse_by_chance) / (drawn.relapse - drawn.relapse_by_chance);
    spec.failures_per_1000_node_days *= seen.per_1000_unit_days / drawn.per_1000_unit_days;
  }
  match_share(topology, pairs, seen.gap_cv, spec);
  return spec;
}

constexpr const char* kFleet = R"(
apiVersion: orrery/v1
kind: Fleet
name: servers
sites:
- name: site
  halls:
  - pods:
    - racks:
      - count: 100
        cooling: in-row-or-dense-air
        nodes: [{type: dgx-h100, count: 4}]
)";

int run(const std::string& folder) {
  const std::optional<FaultRecord> servers = read_infinitehbd(folder);
  const std::optional<FaultRecord> gpus = read_titan(folder);
  const std::optional<FaultRecord> disks = read_lanl(folder);
  if (!servers || !gpus || !disks) {
    fmt::print(stderr, "{}/failures: expected the three records of bench/fault_data.hpp\n", folder);
    return 1;
  }
  const Catalog catalog = must(Catalog::load(builtin_catalog(), {}));
  const Topology topology = must(build_topology(
      must(read_fleet_spec(must(Document::parse(kFleet, "servers.yaml")))), catalog));
  fmt::print(
      "{:<22} faults  /1000 d gap cv  disp 1 disp 14   median    mean     p90  relapse"
      "   chance\n",
      "record");
  print_statistics("infinitehbd", measure(servers->seen()));
  const FailureSpec closed = fit(*servers);
  const FailureSpec fitted = matched(topology, closed, measure(servers->seen()));
  print_statistics("  moments, drawn", measure_drawn(topology, closed));
  print_statistics("  matched, drawn", measure_drawn(topology, fitted));
  print_statistics("  as in the catalog",
                   measure_drawn(topology, *must(catalog.require<FailureSpec>("infinitehbd"))));
  print_statistics("measured, drawn",
                   measure_drawn(topology, *must(catalog.require<FailureSpec>("measured"))));
  print_statistics("titan", measure(gpus->seen()));
  print_statistics("lanl", measure(disks->seen()));
  print_fit("infinitehbd, moments", closed);
  print_fit("infinitehbd, matched", fitted);
  print_fit("titan", fit(*gpus));
  print_fit("lanl", fit(*disks));
  const std::vector<ObservedFault> first = without_relapses(disks->seen());
  const BurstModel waves = fit_waves({first, disks->units, disks->length});
  fmt::print("lanl, no first groups: share {:.3f}, size {:.1f}, spread {:.1f} h\n", waves.share,
             waves.size, waves.spread.value() / 3600);
  return 0;
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: fit_failures FOLDER\n");
    return 2;
  }
  return orrery::run(argv[1]);
}
