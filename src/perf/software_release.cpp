#include "perf/software_release.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/text/nearest_name.hpp"

namespace orrery {
namespace {

constexpr double years_of(double year, double month, double patch) {
  return year - 2020 + (month - 1) / 12 + patch / 360;
}

constexpr auto kKnownReleases = std::to_array<SoftwareRelease>({
    {"25.09", years_of(2025, 9, 0)},
    {"25.11", years_of(2025, 11, 0)},
    {"26.02", years_of(2026, 2, 0)},
    {"26.02.01", years_of(2026, 2, 1)},
    {"26.04", years_of(2026, 4, 0)},
    {"26.04.01", years_of(2026, 4, 1)},
    {"26.06", years_of(2026, 6, 0)},
    {"26.06.01", years_of(2026, 6, 1)},
    {"26.08", years_of(2026, 8, 0)},
});

}  // namespace

std::span<const SoftwareRelease> known_releases() { return kKnownReleases; }

const SoftwareRelease& newest_release() { return kKnownReleases.back(); }

std::string release_name(double years) {
  for (const SoftwareRelease& each : kKnownReleases) {
    if (each.years == years) return std::string(each.name);
  }
  return fmt::format("of {:.1f}", 2020 + years);
}

Result<SoftwareRelease> release_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const SoftwareRelease& each : kKnownReleases) {
    if (each.name == name) return each;
    names.push_back(each.name);
  }
  std::stable_sort(names.begin(), names.end(), [&](std::string_view a, std::string_view b) {
    return edit_distance(a, name) < edit_distance(b, name);
  });
  return input_error({}, fmt::format("\"{}\" is not a known release; known, nearest first: {}; or "
                                     "none",
                                     name, fmt::join(names, ", ")));
}

bool has_releases(const Machine& machine) {
  return machine.generation == "hopper" || machine.generation.starts_with("blackwell");
}

}  // namespace orrery
