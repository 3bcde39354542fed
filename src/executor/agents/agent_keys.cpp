#include "executor/agents/agent_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <tuple>
#include <utility>

namespace orrery {
namespace {

constexpr std::size_t kAgentsMax = std::size_t{16} << 20;

std::int64_t whole_seconds(Instant at) {
  return (at - Instant()).count_ns() / Duration::seconds(1).count_ns();
}

}  // namespace

Result<AgentKeys> AgentKeys::open(const Env& env, const std::string& directory) {
  AgentKeys keys(env, directory + "/agents");
  StorageResult<std::string> text = env.storage.read_file(keys.path_, kAgentsMax);
  if (!text && text.error().failure == StorageFailure::kNotFound) return keys;
  if (!text) return forward_error(text);
  std::istringstream lines(*text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    std::string node, state, hash;
    std::int64_t seconds = 0;
    const bool read = static_cast<bool>(words >> node >> state >> seconds >> hash);
    if (!read || (state != "holds" && state != "issued")) {
      return input_error({keys.path_, number, 1}, "expected NODE holds|issued SECONDS SHA256");
    }
    NodeKeys& of = keys.keys_[node];
    (state == "holds" ? of.holds : of.issued) = {hash, Instant() + Duration::seconds(seconds)};
  }
  return keys;
}

Status AgentKeys::keep(Keys keys) {
  std::string text;
  const auto add = [&text](const std::string& node, std::string_view state, const ShownKey& key) {
    if (key.hash.empty()) return;
    text += fmt::format("{} {} {} {}\n", node, state, whole_seconds(key.issued), key.hash);
  };
  for (const auto& [node, of] : keys) {
    add(node, "holds", of.holds);
    add(node, "issued", of.issued);
  }
  if (StorageStatus put = env_.storage.write_file(path_, text); !put) return forward_error(put);
  keys_ = std::move(keys);
  return {};
}

Status AgentKeys::issue(const std::string& node, const ShownKey& key) {
  Keys keys = keys_;
  keys[node].issued = key;
  return keep(std::move(keys));
}

Status AgentKeys::admit(const std::string& node, const ShownKey& key) {
  const auto found = keys_.find(node);
  const NodeKeys known = found == keys_.end() ? NodeKeys() : found->second;
  const bool same = known.holds.hash == key.hash;
  if (same && key.issued <= known.holds.issued) return {};
  const bool newer =
      known.holds.hash.empty() || same || known.issued.hash == key.hash ||
      std::tie(key.issued, key.hash) > std::tie(known.holds.issued, known.holds.hash);
  if (!newer) return replaced(node);
  Keys keys = keys_;
  keys[node].holds = key;
  if (known.issued.hash == key.hash) {
    // This also holds if the clock went back since the previous certificate was issued.
    const Instant after = known.holds.issued + Duration::seconds(1);
    keys[node] = {.holds = {key.hash, std::max(key.issued, after)}, .issued = {}};
  }
  return keep(std::move(keys));
}

Status AgentKeys::may_renew(const std::string& node, const std::string& hash) const {
  const auto found = keys_.find(node);
  const bool held = found != keys_.end() && !found->second.holds.hash.empty();
  return held && found->second.holds.hash != hash ? replaced(node) : Status();
}

Status AgentKeys::replaced(const std::string& node) const {
  return input_error(
      {}, fmt::format("another agent joined as \"{}\" with a certificate of {} and has replaced "
                      "this one, whose certificate is not accepted any more; `orrery node token "
                      "{}` lets an agent join anew",
                      node, keys_.at(node).holds.issued.text(), node));
}

}  // namespace orrery
