#include "scheduler/policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/format/document.hpp"
#include "base/text/nearest_name.hpp"

namespace orrery {
namespace {

struct NamedPolicy {
  std::string_view name;
  QueueOrder order;
  Blocked blocked;
  PreemptionRule preemption;
};

// The rest of `capacity` and `hardware-aware` is set in built_in().
constexpr std::array<NamedPolicy, 14> kPolicies{{
    {"fifo", QueueOrder::kSubmitted, Blocked::kStops, PreemptionRule::kNone},
    {"sjf", QueueOrder::kShortest, Blocked::kSkipped, PreemptionRule::kNone},
    {"srtf", QueueOrder::kRemaining, Blocked::kSkipped, PreemptionRule::kByOrder},
    {"srsf", QueueOrder::kRemainingService, Blocked::kSkipped, PreemptionRule::kByOrder},
    {"las", QueueOrder::kAttained, Blocked::kSkipped, PreemptionRule::kByOrder},
    {"tiresias", QueueOrder::kAttainedQueues, Blocked::kSkipped, PreemptionRule::kByOrder},
    {"easy", QueueOrder::kPriority, Blocked::kReservesOne, PreemptionRule::kNone},
    {"conservative", QueueOrder::kPriority, Blocked::kReserves, PreemptionRule::kNone},
    {"capacity", QueueOrder::kFair, Blocked::kSkipped, PreemptionRule::kEntitled},
    {"hardware-aware", QueueOrder::kFair, Blocked::kReserves, PreemptionRule::kEntitled},
    {"gavel", QueueOrder::kMaxMin, Blocked::kSkipped, PreemptionRule::kRounds},
    {"themis", QueueOrder::kFinishTime, Blocked::kSkipped, PreemptionRule::kRounds},
    {"sia", QueueOrder::kGoodput, Blocked::kSkipped, PreemptionRule::kRounds},
    {"elasticflow", QueueOrder::kDeadlineShares, Blocked::kSkipped, PreemptionRule::kRounds},
}};

/// Reservations that `hardware-aware` keeps: a job behind so many others has only its place in the
/// queue.
constexpr std::uint32_t kSlotsAhead = 8;

/// The newest version of a policy; those that are not listed have one version.
struct NewestVersion {
  std::string_view name;
  std::uint32_t version;
};
constexpr std::array<NewestVersion, 3> kVersions{{{"hardware-aware", 3}, {"las", 2}, {"srtf", 2}}};

/// Least time that a job runs before others may take its place: a round of Gavel and Blox.
constexpr Seconds kQuantum{360};

/// The values of the authors: rounds of 6 min (Gavel), leases of 20 min (Themis), rounds of 60 s
/// (Sia), slots of 240 s (ElasticFlow, on its testbed).
Seconds round_of(QueueOrder order) {
  if (order == QueueOrder::kMaxMin) return Seconds{360};
  if (order == QueueOrder::kFinishTime) return Seconds{1200};
  if (order == QueueOrder::kGoodput) return Seconds{60};
  if (order == QueueOrder::kDeadlineShares) return Seconds{240};
  return Policy{}.full_interval;
}

constexpr std::uint32_t newest_version(std::string_view name) {
  const auto found = std::ranges::find(kVersions, name, &NewestVersion::name);
  return found == kVersions.end() ? 1 : found->version;
}

std::optional<Policy> built_in(std::string_view name, std::uint32_t version) {
  for (const NamedPolicy& row : kPolicies) {
    if (row.name != name) continue;
    Policy policy;
    policy.name = std::string(name);
    policy.version = version;
    policy.order = row.order;
    policy.blocked = row.blocked;
    policy.preemption = row.preemption;
    if (row.order == QueueOrder::kFair) policy.quotas = Quotas::kHeld;
    if (row.preemption == PreemptionRule::kByOrder) policy.min_run = Seconds{0};
    if (row.preemption == PreemptionRule::kRounds) {
      policy.full_interval = round_of(row.order);
      policy.min_run = Seconds{policy.full_interval.value() / 2};
    }
    if ((name == "las" || name == "srtf") && version >= 2) policy.min_run = kQuantum;
    if (name == "hardware-aware") {
      policy.choice = OptionChoice::kCheapest;
      policy.reserve_jobs = kSlotsAhead;
    }
    if (name == "hardware-aware" && version >= 2) {
      policy.inside = TenantOrder::kService;
      policy.ageing = Seconds{60 * 86'400};
      policy.yield_ratio = 2;
    }
    if (name == "hardware-aware" && version >= 3) {
      policy.attained_step = 6;
      policy.max_stretch = 100;
    }
    if (name == "conservative") policy.full_interval = Seconds{0};
    return policy;
  }
  return std::nullopt;
}

/// The position of a key of a mapping; if it is absent, that of the mapping.
SourcePosition place_of(const DocumentNode& mapping, std::string_view key) {
  for (const DocumentNode::Entry& entry : mapping.entries()) {
    if (entry.key.text() == key) return entry.key.position();
  }
  return mapping.position();
}

/// The position of a weight.
SourcePosition place_of_weight(const DocumentNode& policy, std::string_view key) {
  for (const DocumentNode::Entry& entry : policy.entries()) {
    if (entry.key.text() == "weights") return place_of(entry.value, key);
  }
  return policy.position();
}

Status check_weights(const Policy& policy, const DocumentNode& stated) {
  const PriceWeights& w = policy.weights;
  const std::array<std::pair<std::string_view, double>, 11> all{
      {{"hire", w.hire},
       {"energy", w.energy},
       {"carbon_tonne", w.carbon_tonne},
       {"time", w.time},
       {"time_cost_goal", w.time_cost_goal},
       {"fragmentation", w.fragmentation},
       {"lost_work", w.lost_work},
       {"data", w.data},
       {"failure", w.failure},
       {"lateness", w.lateness},
       {"headroom", w.headroom}}};
  for (const auto& [name, value] : all) {
    if (value < 0 || !std::isfinite(value)) {
      return input_error(
          place_of_weight(stated, name),
          fmt::format("weights.{}: expected a number of at least 0, found {}", name, value));
    }
  }
  return {};
}

/// `stated` is the mapping from which the policy was read.
tl::unexpected<Error> expected_at(const DocumentNode& stated, std::string_view key,
                                  std::string_view expected) {
  return input_error(place_of(stated, key), fmt::format("{}: expected {}", key, expected));
}

/// What rounds ask for; where that is not stated, their own key is at fault.
Status check_rounds(const Policy& policy, const DocumentNode& stated) {
  if (policy.preemption != PreemptionRule::kRounds) return {};
  const auto wrong = [&](std::string_view key, std::string_view expected) {
    const SourcePosition at = place_of(stated, key);
    return input_error(at == stated.position() ? place_of(stated, "preemption") : at,
                       fmt::format("{}: expected {}, with preemption: rounds", key, expected));
  };
  if (policy.quotas == Quotas::kHeld) return wrong("quotas", "ignored");
  if (policy.full_interval <= Seconds{0}) return wrong("full_interval", "more than 0 s");
  return {};
}

Status check_times(const Policy& policy, const DocumentNode& stated) {
  for (const auto& [key, value] : {std::pair{"min_run", policy.min_run},
                                   {"plan_wait", policy.plan_wait},
                                   {"horizon", policy.horizon},
                                   {"patience", policy.patience},
                                   {"ageing", policy.ageing},
                                   {"unknown_run", policy.unknown_run},
                                   {"pass_interval", policy.pass_interval},
                                   {"full_interval", policy.full_interval}}) {
    if (value < Seconds{0}) return expected_at(stated, key, "a time of at least 0 s");
  }
  if (policy.full_interval > Seconds{0} && policy.full_interval < Seconds{1}) {
    return expected_at(stated, "full_interval", "0 s or at least 1 s");
  }
  return check_rounds(policy, stated);
}

Status check(const Policy& policy, const DocumentNode& stated) {
  const auto wrong = [&](std::string_view key, std::string_view expected) {
    return expected_at(stated, key, expected);
  };
  if (policy.kind != "Policy") return wrong("kind", "Policy");
  if (policy.api_version != "orrery/v1") return wrong("apiVersion", "orrery/v1");
  if (policy.oversubscription < 1 || policy.oversubscription > 2) {
    return wrong("oversubscription", "1 to 2");
  }
  if (!(policy.estimate_sigma >= 0 && policy.estimate_sigma <= 3)) {
    return wrong("estimate_sigma", "0 to 3");
  }
  if (policy.yield_ratio != 0 && !(policy.yield_ratio >= 1 && policy.yield_ratio <= 1000)) {
    return wrong("yield_ratio", "0 or 1 to 1000");
  }
  if (policy.attained_step != 1 && !(policy.attained_step >= 2 && policy.attained_step <= 1000)) {
    return wrong("attained_step", "1 or 2 to 1000");
  }
  if (policy.max_stretch != 0 && !(policy.max_stretch >= 1 && policy.max_stretch <= 1e6)) {
    return wrong("max_stretch", "0 or 1 to 1000000");
  }
  if (policy.offers < 1 || policy.offers > 16) return wrong("offers", "1 to 16");
  if (policy.budget < 1) return wrong("budget", "at least 1");
  if (Status times = check_times(policy, stated); !times) return times;
  for (std::size_t i = 0; i < policy.queue_limits.size(); ++i) {
    const double before = i == 0 ? 0 : policy.queue_limits[i - 1];
    if (policy.queue_limits[i] <= before) return wrong("queue_limits", "rising numbers above 0");
  }
  return check_weights(policy, stated);
}

/// `text` patches a policy.
Status patch(Policy& policy, const DocumentNode& node) {
  FieldReader::Options options;
  options.mode = FieldReader::Options::Mode::kPatch;
  if (Status status = read_struct(node, policy, options); !status) return status;
  return check(policy, node);
}

/// The built-in policy from which one of this name and version starts. Errors: no such version.
Result<Policy> begin_of(const Policy& stated, std::uint32_t unstated, SourcePosition where) {
  const std::vector<std::string_view> names = policy_names();
  const bool known = std::find(names.begin(), names.end(), stated.name) != names.end();
  const std::string_view name = known ? std::string_view(stated.name) : "hardware-aware";
  const std::uint32_t newest = newest_version(name);
  if (stated.version > newest) {
    return input_error(std::move(where), fmt::format("version: expected 1 to {} of {}, found {}",
                                                     newest, name, stated.version));
  }
  const std::uint32_t version = unstated == 0 ? newest : std::min(unstated, newest);
  return *built_in(name, stated.version == 0 ? version : stated.version);
}

/// Applies `node` on top of the built-in policy that `stated` names.
Result<Policy> completed(const Policy& stated, const DocumentNode& node, std::uint32_t unstated) {
  Result<Policy> policy = begin_of(stated, unstated, place_of(node, "version"));
  if (!policy) return policy;
  const std::uint32_t version = policy->version;
  if (Status status = patch(*policy, node); !status) return forward_error(status);
  policy->version = version;
  return policy;
}

/// Converts "a=1,b=x" to a mapping with a line for each key; blocking=true becomes blocked: stops.
std::string yaml_of(std::string_view options) {
  std::string yaml;
  while (!options.empty()) {
    const std::size_t comma = std::min(options.find(','), options.size());
    const std::string_view pair = options.substr(0, comma);
    options.remove_prefix(std::min(comma + 1, options.size()));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    std::string_view key = pair.substr(0, equals);
    std::string_view value = equals < pair.size() ? pair.substr(equals + 1) : "";
    if (key == "blocking") {
      key = "blocked";
      value = value == "true" ? "stops" : value == "false" ? "skipped" : value;
    }
    yaml += fmt::format("{}: {}\n", key, value);
  }
  return yaml;
}

/// Rewrites an error in that mapping: its lines are not lines of the user's text, so the key of the
/// line is reported instead. Each line begins with a key, which the message names.
tl::unexpected<Error> by_key(Error error, std::string_view yaml) {
  for (int line = 1; line < error.where.line; ++line) {
    yaml.remove_prefix(std::min(yaml.find('\n'), yaml.size() - 1) + 1);
  }
  const std::string_view key = yaml.substr(0, std::min(yaml.find(':'), yaml.size()));
  if (error.where.column > 1) error.message = fmt::format("{}: {}", key, error.message);
  error.where = {};
  return tl::unexpected(std::move(error));
}

}  // namespace

std::vector<std::string_view> policy_names() {
  std::vector<std::string_view> names;
  names.reserve(kPolicies.size());
  for (const NamedPolicy& row : kPolicies) names.push_back(row.name);
  return names;
}

Result<Policy> policy_named(std::string_view text, std::uint32_t unstated) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view name = text.substr(0, colon);
  const std::vector<std::string_view> names = policy_names();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    return input_error({}, fmt::format("unknown policy \"{}\"{}", name, did_you_mean(name, names)));
  }
  const std::string_view given = colon < text.size() ? text.substr(colon + 1) : "";
  if (given.empty() && colon < text.size()) {
    return input_error({}, fmt::format("\"{}\": expected key=value after the colon", text));
  }
  if (given.empty()) return begin_of(Policy{.name = std::string(name)}, unstated, {});
  const std::string yaml = yaml_of(given);
  const Result<Document> options = Document::parse(yaml, "policy options");
  if (!options) return by_key(options.error(), yaml);
  Policy stated;
  const Status read = patch(stated, options->root());
  if (!read) return by_key(read.error(), yaml);
  stated.name = name;
  Result<Policy> policy = completed(stated, options->root(), unstated);
  if (!policy) return by_key(std::move(policy).error(), yaml);
  return policy;
}

Result<Policy> read_policy(const Document& document, std::uint32_t unstated) {
  Policy named;
  FieldReader::Options options;
  options.mode = FieldReader::Options::Mode::kPatch;
  named.api_version.clear();
  named.kind.clear();
  named.name.clear();
  if (Status status = read_struct(document.root(), named, options); !status) {
    return forward_error(status);
  }
  if (named.kind.empty() || named.api_version.empty() || named.name.empty()) {
    return input_error(named.where, "a policy begins with apiVersion, kind and name");
  }
  return completed(named, document.root(), unstated);
}

}  // namespace orrery
