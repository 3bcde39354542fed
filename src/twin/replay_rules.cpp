#include "twin/replay_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/text/nearest_name.hpp"
#include "scheduler/asked_policy.hpp"

namespace orrery {

Result<ReplayRules> replay_rules(std::string_view name) {
  ReplayRules rules;
  rules.name = std::string(name);
  if (name == "orrery") return rules;
  rules.costs = false;
  if (name == "helios") return rules;
  if (name == "muri") {
    rules.work_from_steps = true;
    rules.percentile = Percentile::kIndex;
    return rules;
  }
  if (name == "gavel") {
    rules.all_at_start = true;
    rules.round = Duration::seconds(360);
    rules.node_accelerators = 1;
    return rules;
  }
  constexpr std::array<std::string_view, 4> kNames{"orrery", "helios", "muri", "gavel"};
  return input_error({}, fmt::format("unknown rules \"{}\"{}", name, did_you_mean(name, kNames)));
}

namespace {

/// The policies that were compared with the simulator's numbers; empty: every policy may be played.
std::vector<std::string_view> played_under(std::string_view rules) {
  if (rules == "helios") return {"fifo", "sjf"};
  if (rules == "muri") return {"fifo", "srtf", "srsf"};
  if (rules == "gavel") return {"fifo"};
  return {};
}

}  // namespace

Result<Policy> policy_under(const ReplayRules& rules, std::string_view text,
                            std::uint32_t unstated_version) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string name(text.substr(0, colon));
  const std::vector<std::string_view> played = played_under(rules.name);
  if (!played.empty() && std::find(played.begin(), played.end(), name) == played.end()) {
    return input_error({}, fmt::format("the rules of {} know {}; \"{}\" is played without --rules",
                                       rules.name, fmt::join(played, ", "), name));
  }
  std::string defaults;
  if (rules.name == "helios") {
    defaults = "blocked=stops,node_fit=best";
  } else if (rules.name == "muri") {
    defaults = "node_fit=first";
    if (name == "srtf" || name == "srsf") defaults += ",preemption=anew,min_run=0 s";
  } else if (rules.name == "gavel") {
    // The running jobs are recomputed 1,920 s after the last time, or when nothing runs.
    defaults = "blocked=stops,node_fit=first,pass_interval=1920 s";
  }
  if (unstated_version == 0) {
    Result<Policy> asked = asked_policy(text);
    if (!asked || defaults.empty()) return asked;
  }
  if (defaults.empty()) return policy_named(text, unstated_version);
  Result<Policy> known = policy_named(name);
  if (!known) return known;
  const std::string given = colon < text.size() ? "," + std::string(text.substr(colon + 1)) : "";
  return policy_named(fmt::format("{}:{}{}", name, defaults, given), unstated_version);
}

}  // namespace orrery
