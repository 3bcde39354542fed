#include "perf/machine/collective.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "base/format/field_writer.hpp"
#include "base/numbers/math.hpp"

namespace orrery {
namespace {

/// Rounds of the better of a ring and a pair of binary trees among `units`.
double rounds(double units) {
  if (units <= 1) return 0;
  const double doublings =
      static_cast<double>(std::bit_width(static_cast<std::uint64_t>(units - 1)));
  return std::min(units - 1, 2 * doublings);
}

/// Returns the seconds in which `bytes` gathered ones reach all ranks: at each level, what a unit
/// below lacks comes in over the links of its members of the group.
double transfer(const Network& network, const Span& span, double bytes) {
  double longest = 0;
  double below = 1;
  for (std::uint32_t i = 0; i < network.count; ++i) {
    const double here = span.inside[i];
    if (here > below) {
      const Network::Level& level = network.levels[i];
      const double share = level.dimensions > 0 ? span.bandwidth_share : 1;
      longest =
          std::max(longest, bytes * (1 - below / span.size) / (below * level.bandwidth * share));
    }
    below = here;
  }
  return longest;
}

double latency(const Network& network, const Span& span) {
  double seconds = network.launch;
  double below = 1;
  for (std::uint32_t i = 0; i < network.count; ++i) {
    if (span.inside[i] > below) {
      seconds += network.levels[i].latency * rounds(span.inside[i] / below);
    }
    below = span.inside[i];
  }
  return seconds;
}

struct Groups {
  double size = 1;
  double stride = 1;
  double ranks = 0;  ///< of all groups; 0: not known
};

/// Ranks of the worst placed group that one unit of a level holds.
double inside_unit(double unit, const Groups& groups) {
  const double fits = std::floor(unit / groups.stride);
  const double extent = groups.size * groups.stride;
  if (fits < groups.size || groups.ranks <= 0) return std::clamp(fits, 1.0, groups.size);
  const double whole = std::floor(unit / extent);
  const double capacity = whole * std::ceil(groups.ranks / unit);
  if (groups.ranks / extent <= capacity) return groups.size;
  return std::clamp(std::floor((unit - whole * extent) / groups.stride), 1.0, groups.size);
}

}  // namespace

Network network_of(const Machine& machine, const Calibration& calibration) {
  Network network;
  network.count = static_cast<std::uint32_t>(machine.tiers.size());
  network.launch = calibration.first_of({"link.launch"});
  network.ranks = static_cast<double>(machine.ranks);
  for (std::uint32_t i = 0; i < network.count; ++i) {
    const Tier& tier = machine.tiers[i];
    const std::string word(word_of(tier.link));
    const std::string special = "link." + word + "." + machine.generation;
    const std::string general = "link." + word;
    double bandwidth =
        tier.bandwidth * tier.quality * calibration.first_of({special, general, "link.other"});
    if (!tier.gpudirect && machine.host_bandwidth > 0) {
      // Through host memory: the same bytes cross the host link once more.
      bandwidth = 1 / (1 / bandwidth + 1 / machine.host_bandwidth);
    }
    if (tier.routing == Routing::kEcmp) bandwidth *= calibration.first_of({"link.ecmp"});
    Network::Level& level = network.levels[i];
    level.size = i + 1 == network.count ? std::max(tier.size, machine.ranks) : tier.size;
    level.bandwidth = bandwidth;
    level.all_to_all =
        bandwidth * calibration.first_of({"link.all_to_all." + word, "link.all_to_all"});
    level.latency = tier.latency;
    level.dimensions = tier.link == LinkClass::kTorus ? tier.dimensions : 0;
    if (tier.in_network_reduction) {
      level.reduction_factor = calibration.first_of({"link.in_network_reduction"});
    }
  }
  return network;
}

Span span_of(const Network& network, double size, double stride) {
  Span span{.size = size};
  for (std::uint32_t i = 0; i < network.count; ++i) {
    const auto unit = static_cast<double>(network.levels[i].size);
    span.inside[i] =
        i + 1 == network.count ? size : inside_unit(unit, {size, stride, network.ranks});
  }
  const Network::Level& torus = network.levels[0];
  if (torus.dimensions > 1 && size > 1) {
    // A group of a slice lies on as few axes as hold it; the links of the others are not its own.
    const double doublings =
        math::log(size) / std::max(0.6, math::log(static_cast<double>(torus.size)));
    const double axes = std::ceil(std::min(1.0, doublings) * torus.dimensions - 0.01);
    span.bandwidth_share = std::max(1.0, axes) / torus.dimensions;
  }
  return span;
}

double all_gather_seconds(const Network& network, const Span& span, double bytes) {
  if (span.size <= 1) return 0;
  return transfer(network, span, bytes) + latency(network, span);
}

double reduce_scatter_seconds(const Network& network, const Span& span, double bytes) {
  return all_gather_seconds(network, span, bytes);
}

double all_reduce_seconds(const Network& network, const Span& span, double bytes) {
  if (span.size <= 1) return 0;
  const bool inside = span.inside[0] >= span.size;
  const Network::Level& widest = network.levels[inside ? 0 : network.count - 1];
  const double factor = widest.reduction_factor;
  return factor * transfer(network, span, bytes) + 2 * latency(network, span);
}

double all_to_all_seconds(const Network& network, const Span& span, double bytes) {
  return dispatch_seconds(network, span, {.bytes = bytes, .fanout = 1});
}

double dispatch_seconds(const Network& network, const Span& span, const Dispatch& dispatch) {
  if (span.size <= 1) return 0;
  double longest = 0;
  double below = 1;
  for (std::uint32_t i = 0; i < network.count; ++i) {
    const double here = span.inside[i];
    if (here > below) {
      const Network::Level& level = network.levels[i];
      const double units = span.size / below;
      const double merged = (units - 1) * (1 - math::pow(1 - 1 / units, dispatch.fanout));
      const double single = (units - 1) / units * dispatch.fanout;
      const double others = single - dispatch.merging * (single - merged);
      double seconds = dispatch.bytes * others / level.all_to_all;
      if (level.dimensions > 0) {
        // A torus forwards: a quarter of an axis' length is the mean distance, over two directions.
        const double axis = math::pow(here, 1.0 / level.dimensions);
        seconds *= std::max(1.0, axis / 4) / span.bandwidth_share;
      }
      longest = std::max(longest, seconds);
    }
    below = here;
  }
  return longest + latency(network, span);
}

double point_to_point_seconds(const Network& network, double stride, double bytes) {
  for (std::uint32_t i = 0; i < network.count; ++i) {
    const Network::Level& level = network.levels[i];
    if (stride < static_cast<double>(level.size) || i + 1 == network.count) {
      const double axes = level.dimensions > 0 ? 1.0 / level.dimensions : 1;
      return bytes / (level.bandwidth * axes) + level.latency + network.launch;
    }
  }
  return 0;
}

}  // namespace orrery
