#include "scheduler/asked_policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/format/field_reader.hpp"
#include "scheduler/scheduler.hpp"

namespace orrery {
namespace {

bool is_fair(const Policy& p) { return p.order == QueueOrder::kFair; }
bool is_cheapest(const Policy& p) { return p.choice == OptionChoice::kCheapest; }
bool has_queues(const Policy& p) { return p.order == QueueOrder::kAttainedQueues; }
bool reserves(const Policy& p) { return p.blocked == Blocked::kReserves; }
/// Whether a policy uses service: overtaking compares it, too.
bool counts_service(const Policy& p) {
  return is_fair(p) && (p.inside == TenantOrder::kService || p.yield_ratio > 0);
}
/// Whether a policy stops or changes running jobs: full passes let jobs grow and move.
bool stops_or_changes_jobs(const Policy& p) {
  return wants_full(p) || p.preemption == PreemptionRule::kByOrder ||
         (is_fair(p) && p.yield_ratio > 0);
}

/// A key that only some rules read.
struct KeyNeeds {
  std::string_view key;
  bool (*met)(const Policy&);
  std::string_view needs;
};
constexpr std::array<KeyNeeds, 13> kNeeds{{
    {"ageing", counts_service, "order: fair, with inside: service or a yield_ratio"},
    {"max_stretch", counts_service, "order: fair, with inside: service or a yield_ratio"},
    {"attained_step", counts_service, "order: fair, with inside: service or a yield_ratio"},
    {"yield_ratio", is_fair, "order: fair"},
    {"queue_limits", has_queues, "order: attained-queues"},
    {"min_run", stops_or_changes_jobs,
     "preemption: by-order, entitled or rounds, blocked: reserves, or choice: cheapest"},
    {"reserve_devices", reserves, "blocked: reserves"},
    {"reserve_jobs", reserves, "blocked: reserves"},
    {"weights", is_cheapest, "choice: cheapest"},
    {"offers", is_cheapest, "choice: cheapest"},
    {"budget", is_cheapest, "choice: cheapest"},
    {"patience", is_cheapest, "choice: cheapest"},
    {"plan_wait", is_cheapest, "choice: cheapest"},
}};

/// A key and its position.
struct StatedKey {
  std::string_view key;
  SourcePosition where;
};

Status check_effect(const Policy& policy, const StatedKey& stated) {
  const auto row = std::ranges::find(kNeeds, stated.key, &KeyNeeds::key);
  if (row == kNeeds.end() || row->met(policy)) return {};
  return input_error(stated.where, fmt::format("{}: has no effect under {} (it needs {})",
                                               stated.key, policy.name, row->needs));
}

/// `policy` was read with the version 0, which is its newest.
Status no_version_zero(const Policy& policy, SourcePosition where) {
  return input_error(std::move(where),
                     fmt::format("version: expected 1 to {}, found 0", policy.version));
}

struct Pair {
  std::string_view key;
  std::string_view value;
};

std::vector<Pair> pairs_of(std::string_view text) {
  std::vector<Pair> pairs;
  const std::size_t colon = std::min(text.find(':'), text.size());
  text.remove_prefix(std::min(colon + 1, text.size()));
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(','));
    text.remove_prefix(std::min(pair.size() + 1, text.size()));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    pairs.push_back({pair.substr(0, equals), pair.substr(std::min(equals + 1, pair.size()))});
  }
  return pairs;
}

bool is_zero(const DocumentNode& node) {
  const Result<std::int64_t> number = read_integer(node, 0, 0);
  return number.has_value();
}

bool is_zero(std::string_view text) {
  const Result<Document> document = Document::parse(text, "");
  return document && is_zero(document->root());
}

}  // namespace

Result<Policy> asked_policy(std::string_view text) {
  const std::vector<Pair> pairs = pairs_of(text);
  for (const Pair& pair : pairs) {
    if (pair.value.find_first_not_of(" \t") != pair.value.npos) continue;
    return input_error({}, fmt::format("{}: expected a value after '='", pair.key));
  }
  Result<Policy> policy = policy_named(text);
  if (!policy) return policy;
  for (const Pair& pair : pairs) {
    Status status = check_effect(*policy, {pair.key, {}});
    if (status && pair.key == "version" && is_zero(pair.value)) {
      status = no_version_zero(*policy, {});
    }
    if (!status) return forward_error(status);
  }
  return policy;
}

Result<Policy> asked_policy(const Document& document) {
  Result<Policy> policy = read_policy(document);
  if (!policy) return policy;
  for (const auto& [key, value] : document.root().entries()) {
    if (value.kind() == NodeKind::kNull) continue;  // an empty key counts as absent
    Status status = check_effect(*policy, {key.text(), key.position()});
    if (status && key.text() == "version" && is_zero(value)) {
      status = no_version_zero(*policy, key.position());
    }
    if (!status) return forward_error(status);
  }
  return policy;
}

}  // namespace orrery
