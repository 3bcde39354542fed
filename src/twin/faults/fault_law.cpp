#include "twin/faults/fault_law.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/numbers/distribution.hpp"
#include "base/numbers/math.hpp"

namespace orrery {
namespace {

constexpr double kReferenceDevices = 8;
constexpr double kSecondsOf1000Days = 1000 * 86400.0;
constexpr double kSecondsOfMillionHours = 3.6e9;

std::size_t index_of(FaultKind kind) { return static_cast<std::size_t>(kind); }

// Part of a kind's rate on a node of 8 devices that a node with this many has.
double part_of_reference(std::size_t kind, std::uint32_t devices) {
  if (!strikes_accelerator(static_cast<FaultKind>(kind))) return 1;
  return static_cast<double>(devices) / kReferenceDevices;
}

// The mean of a lognormal is exp(mu + sigma^2 / 2), its median exp(mu).
Lognormal lognormal_of(const RepairModel& repair) {
  const double excess = math::log(repair.mean / repair.median);
  return {.mu = math::log(repair.median.value()), .sigma = std::sqrt(2 * std::max(0.0, excess))};
}

}  // namespace

bool strikes_accelerator(FaultKind kind) {
  return kind == FaultKind::kAccelerator || kind == FaultKind::kHbm || kind == FaultKind::kSram ||
         kind == FaultKind::kSdc;
}

Result<FaultLaw> FaultLaw::make(const FailureSpec& spec, const Catalog& catalog) {
  FaultLaw law;
  law.set_rates(spec, catalog);
  for (const auto& each : enum_words(FaultKind{})) {
    if (Status set = law.set_times(each.value, spec, catalog); !set) return forward_error(set);
  }
  return law;
}

void FaultLaw::set_rates(const FailureSpec& spec, const Catalog& catalog) {
  std::array<double, kFaultKinds> weights{};
  for (const FaultPart& part : spec.mix) weights[index_of(part.fault)] += part.share;
  for (const ComponentFailureRate& rate : catalog.all<ComponentFailureRate>()) {
    if (!spec.mix.empty()) break;
    if (rate.per == FailureScope::kNode) weights[index_of(rate.fault)] += rate.per_million_hours;
    if (rate.per == FailureScope::kAccelerator) {
      weights[index_of(rate.fault)] += kReferenceDevices * rate.per_million_hours;
    }
  }
  double sum = 0;
  for (const double weight : weights) sum += weight;
  const double total = spec.failures_per_1000_node_days / kSecondsOf1000Days;
  for (std::size_t kind = 0; kind < kFaultKinds && sum > 0; ++kind) {
    rates_[kind] = total * weights[kind] / sum;
  }
  if (spec.silent_corruptions_per_million_hours) {
    rates_[index_of(FaultKind::kSdc)] =
        kReferenceDevices * *spec.silent_corruptions_per_million_hours / kSecondsOfMillionHours;
  }
}

Status FaultLaw::set_times(FaultKind kind, const FailureSpec& spec, const Catalog& catalog) {
  Times& times = times_[index_of(kind)];
  const RepairTime* repair = catalog.find<RepairTime>(word_of_fault(kind));
  for (const DetectionTime& row : catalog.all<DetectionTime>()) {
    if (std::find(row.faults.begin(), row.faults.end(), kind) == row.faults.end()) continue;
    times.evidence = row.path;
    times.detection = Duration::from_seconds(row.time.value());
  }
  if (repair == nullptr || times.evidence.empty()) {
    return input_error({}, fmt::format("the catalog has no {} for faults of kind {}",
                                       repair == nullptr ? "repair_times" : "detection_times",
                                       word_of_fault(kind)));
  }
  times.elsewhere = repair->repair;
  times.node = spec.repair.value_or(repair->repair);
  for (const RepairOverride& each : spec.repairs) {
    if (each.fault == kind) times.node = times.elsewhere = each.repair;
  }
  for (const DetectionOverride& each : spec.detections) {
    const DetectionTime* row = catalog.find<DetectionTime>(each.path);
    if (row != nullptr && row->path == times.evidence) {
      times.detection = Duration::from_seconds(each.time.value());
    }
  }
  return {};
}

double FaultLaw::node_rate(std::uint32_t devices) const {
  double sum = 0;
  for (std::size_t kind = 0; kind < kFaultKinds; ++kind) {
    sum += rates_[kind] * part_of_reference(kind, devices);
  }
  return sum;
}

FaultKind FaultLaw::draw_kind(std::uint32_t devices, Rng& rng) const {
  double left = rng.uniform() * node_rate(devices);
  std::size_t drawn = 0;
  for (std::size_t kind = 0; kind < kFaultKinds; ++kind) {
    const double rate = rates_[kind] * part_of_reference(kind, devices);
    if (rate <= 0) continue;
    drawn = kind;  // rounding may leave the last one standing
    left -= rate;
    if (left < 0) break;
  }
  return static_cast<FaultKind>(drawn);
}

void FaultLaw::draw_times(Where where, Fault& fault, Rng& rng) const {
  const Times& times = times_[index_of(fault.kind)];
  const RepairModel& repair = where == Where::kNode ? times.node : times.elsewhere;
  fault.detection = times.detection;
  fault.evidence = times.evidence;
  const bool transient = rng.uniform() < repair.transient_share;
  fault.remedy = transient ? Remedy::kTransient : Remedy::kRepair;
  const double seconds = transient ? repair.transient.value() * Exponential{.rate = 1}.sample(rng)
                                   : lognormal_of(repair).sample(rng);
  fault.repair = Duration::from_seconds(seconds);
}

}  // namespace orrery
