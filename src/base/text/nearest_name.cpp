#include "base/text/nearest_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace orrery {

std::string lower_case(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lowered;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::string s = lower_case(a);
  const std::string t = lower_case(b);
  const std::size_t width = t.size() + 1;
  std::vector<std::size_t> cost((s.size() + 1) * width);
  for (std::size_t i = 0; i <= s.size(); ++i) cost[i * width] = i;
  for (std::size_t j = 0; j <= t.size(); ++j) cost[j] = j;
  for (std::size_t i = 1; i <= s.size(); ++i) {
    for (std::size_t j = 1; j <= t.size(); ++j) {
      const std::size_t replace = cost[(i - 1) * width + j - 1] + (s[i - 1] == t[j - 1] ? 0 : 1);
      const std::size_t remove = cost[(i - 1) * width + j] + 1;
      const std::size_t insert = cost[i * width + j - 1] + 1;
      std::size_t best = std::min({replace, remove, insert});
      if (i > 1 && j > 1 && s[i - 1] == t[j - 2] && s[i - 2] == t[j - 1]) {
        best = std::min(best, cost[(i - 2) * width + j - 2] + 1);
      }
      cost[i * width + j] = best;
    }
  }
  return cost.back();
}

std::string nearest_name(std::string_view name, std::span<const std::string_view> candidates) {
  constexpr std::size_t kLongest = 64;
  if (name.empty() || name.size() > kLongest) return {};
  std::size_t least = std::max<std::size_t>(2, name.size() / 3) + 1;
  std::string_view best;
  for (const std::string_view candidate : candidates) {
    if (candidate.size() > kLongest || candidate.empty()) continue;
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < least && distance < candidate.size()) {
      least = distance;
      best = candidate;
    }
  }
  return std::string(best);
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates) {
  const std::string nearest = nearest_name(name, candidates);
  return nearest.empty() ? std::string() : fmt::format(", did you mean \"{}\"?", nearest);
}

}  // namespace orrery
