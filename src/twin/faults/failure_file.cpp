#include "twin/faults/failure_file.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/format/field_reader.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

/// A number and its bounds.
struct Bounded {
  std::string_view what;
  double value;
  double low;
  double high;
};

Status check(const Bounded& number, const SourcePosition& where) {
  if (number.value >= number.low && number.value <= number.high) return {};
  return input_error(where, fmt::format("{} is {}, expected {} to {}", number.what, number.value,
                                        number.low, number.high));
}

constexpr double kRateMax = 1e6;
constexpr double kSecondsMax = 3.2e9;  // a century

Status check_kind(std::string_view what, FaultKind kind, const SourcePosition& where) {
  if (strikes_nodes(kind)) return {};
  return input_error(where, fmt::format("{}: {} is not a node fault", what, word_of_fault(kind)));
}

Status check_repair(const RepairModel& repair, const SourcePosition& fallback) {
  const SourcePosition& where = repair.where.line > 0 ? repair.where : fallback;
  const Bounded numbers[] = {{"transient_share", repair.transient_share, 0, 1},
                             {"transient (seconds)", repair.transient.value(), 0, kSecondsMax},
                             {"median (seconds)", repair.median.value(), 1e-3, kSecondsMax},
                             {"mean (seconds), not below the median", repair.mean.value(),
                              repair.median.value(), kSecondsMax}};
  for (const Bounded& number : numbers) {
    if (Status checked = check(number, where); !checked) return checked;
  }
  return {};
}

Status check_mix(const FailureSpec& spec) {
  double sum = 0;
  for (const FaultPart& part : spec.mix) {
    if (Status kind = check_kind("mix", part.fault, spec.where); !kind) return kind;
    if (Status share = check({"mix: share", part.share, 0, kRateMax}, spec.where); !share) {
      return share;
    }
    sum += part.share;
  }
  if (spec.mix.empty() || sum > 0) return {};
  return input_error(spec.where, "mix: the shares sum to 0, expected more");
}

Status check_bursts(const FailureSpec& spec) {
  double sum = 0;
  for (const BurstModel& burst : spec.bursts) {
    const Bounded numbers[] = {{"share", burst.share, 0, 1},
                               {"size", burst.size, 1, 10000},
                               {"spread (seconds)", burst.spread.value(), 0, kSecondsMax}};
    for (const Bounded& number : numbers) {
      if (Status checked = check(number, burst.where); !checked) return checked;
    }
    if (burst.fault) {
      if (Status kind = check_kind("fault", *burst.fault, burst.where); !kind) return kind;
    }
    sum += burst.share;
  }
  return check({"bursts: the sum of the shares", sum, 0, 1}, spec.where);
}

Status check_numbers(const FailureSpec& spec) {
  const auto at = [&](const SourcePosition& where) { return where.line > 0 ? where : spec.where; };
  const std::pair<Bounded, SourcePosition> numbers[] = {
      {{"failures_per_1000_node_days", spec.failures_per_1000_node_days, 0, kRateMax}, spec.where},
      {{"network", spec.network, 0, kRateMax}, spec.where},
      {{"facility", spec.facility, 0, kRateMax}, spec.where},
      {{"link_flaps_per_1e6_hours", spec.link_flaps_per_million_hours.value_or(0), 0, kRateMax},
       spec.where},
      {{"silent_corruptions_per_1e6_hours", spec.silent_corruptions_per_million_hours.value_or(0),
        0, kRateMax},
       spec.where},
      {{"probability", spec.relapse.probability, 0, 0.95}, at(spec.relapse.where)},
      {{"shape", spec.relapse.shape, 0.1, 10}, at(spec.relapse.where)},
      {{"scale (seconds)", spec.relapse.scale.value(), 1e-3, kSecondsMax}, at(spec.relapse.where)},
      {{"share", spec.lemons.share, 0, 1}, at(spec.lemons.where)},
      {{"factor", spec.lemons.factor, 1e-3, 1e3}, at(spec.lemons.where)},
      {{"per_1000_node_days", spec.fail_slow.per_1000_node_days, 0, kRateMax},
       at(spec.fail_slow.where)},
      {{"slowdown", spec.fail_slow.slowdown, 1, kRateMax}, at(spec.fail_slow.where)}};
  for (const auto& [number, where] : numbers) {
    if (Status checked = check(number, where); !checked) return checked;
  }
  return {};
}

// The position of the key that a message about the whole spec begins with, else the error's own.
SourcePosition place_of(const DocumentNode& root, const Error& error) {
  if (error.where != root.position()) return error.where;
  for (const auto& [key, value] : root.entries()) {
    const std::string_view message = error.message;
    if (message.starts_with(key.text()) &&
        message.substr(key.text().size()).find_first_of(" :") == 0) {
      return value.position();
    }
  }
  return error.where;
}

// The model a file changes, or an error at its name.
Result<const FailureSpec*> base_of(const DocumentNode& root, const Catalog& catalog) {
  if (const std::optional<DocumentNode> like = read_elsewhere<FailureSpec>(root, "like")) {
    Result<std::string> name = read_string(*like);
    if (!name) return forward_error(name);
    return catalog.require<FailureSpec>(*name, like->position());
  }
  return catalog.require<FailureSpec>("llama3", root.position());
}

}  // namespace

bool strikes_nodes(FaultKind kind) {
  switch (kind) {
    case FaultKind::kAccelerator:
    case FaultKind::kHbm:
    case FaultKind::kSram:
    case FaultKind::kSdc:
    case FaultKind::kHost:
    case FaultKind::kNic:
    case FaultKind::kSoftware:
    case FaultKind::kMaintenance:
    case FaultKind::kNetwork:
    case FaultKind::kOptics:
      return true;
    case FaultKind::kLinkDown:
    case FaultKind::kLinkFlap:
    case FaultKind::kSwitchDown:
    case FaultKind::kPdu:
    case FaultKind::kUps:
    case FaultKind::kCoolingUnit:
    case FaultKind::kFailSlow:
      return false;
  }
  return false;
}

Status check_failure_spec(const FailureSpec& spec, const Catalog& catalog) {
  Status status = check_numbers(spec);
  if (status) status = check_mix(spec);
  if (status) status = check_bursts(spec);
  if (status && spec.repair) status = check_repair(*spec.repair, spec.where);
  for (const RepairOverride& each : spec.repairs) {
    if (status) status = check_repair(each.repair, spec.where);
  }
  for (const RepairTime& each : catalog.all<RepairTime>()) {
    if (status) status = check_repair(each.repair, each.where);
  }
  for (const DetectionOverride& each : spec.detections) {
    if (!status) break;
    const auto known = catalog.require<DetectionTime>(each.path, each.where);
    if (!known) return tl::unexpected<Error>(known.error());
  }
  return status;
}

Result<FailureSpec> read_failure_spec(const Document& document, const Catalog& catalog) {
  const DocumentNode root = document.root();
  const Result<const FailureSpec*> base = base_of(root, catalog);
  if (!base) return tl::unexpected<Error>(base.error());
  FailureSpec spec = **base;
  spec.where = root.position();
  spec.id.clear();
  spec.name.clear();
  spec.aliases.clear();
  std::string api_version;
  std::string kind;
  FieldReader reader(root, {Units::kInText, FieldReader::Options::Mode::kPatch});
  name_struct<FailureSpec>(reader);
  reader.required("apiVersion", api_version);
  reader.required("kind", kind);
  reader.elsewhere("like");
  describe(reader, spec);
  if (Status read = reader.finish(); !read) return forward_error(read);
  if (api_version != "orrery/v1" || kind != "Failures") {
    return input_error(
        root.position(),
        fmt::format("expected apiVersion orrery/v1 and kind Failures, found \"{}\" and \"{}\"",
                    printable(api_version, 60), printable(kind, 60)));
  }
  if (spec.name.empty()) return input_error(root.position(), "the key \"name\" is missing");
  if (spec.id.empty()) spec.id = spec.name;
  if (Status checked = check_failure_spec(spec, catalog); !checked) {
    return input_error(place_of(root, checked.error()), checked.error().message);
  }
  return spec;
}

}  // namespace orrery
