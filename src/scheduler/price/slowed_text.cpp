#include "scheduler/price/slowed_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text/quantity_text.hpp"

namespace orrery {

std::string slowed_text(const Situation& situation, const RunningJob& job) {
  const auto slowest = std::ranges::min_element(job.terms, {}, &GangTerms::clock);
  if (slowest == job.terms.end() || slowest->clock >= 1) return {};
  std::string text = fmt::format("runs at {:.0f} % of its clock", slowest->clock * 100);
  if (situation.power == nullptr) return text;
  const Topology& topology = situation.fleet.topology();
  const PlacedGang& gang = job.gangs[static_cast<std::size_t>(slowest - job.terms.begin())];
  std::optional<PowerHeadroom> least;
  for (const NodeDevices& at : gang.allocation.ranks) {
    const PowerHeadroom room =
        situation.power->headroom(*situation.caps, topology.place(at.node).rack);
    if (room.binding.valid() && (!least || room.free < least->free)) least = room;
  }
  const std::optional<Watts> limit =
      least ? situation.caps->limit(least->binding) : std::optional<Watts>();
  if (!limit) return text;
  return text + fmt::format(": {} carries {} of its {}", topology.power_name(least->binding),
                            print(situation.power->planned(least->binding)), print(*limit));
}

}  // namespace orrery
