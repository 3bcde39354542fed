#include "twin/figures/power_watch.hpp"

#include <algorithm>

namespace orrery {

void PowerWatch::look(Instant now, const State& state, std::span<const Event> events) {
  const Situation situation = state.situation(now);
  if (situation.power == nullptr || events.empty()) return;
  const bool chosen = begun_ && std::none_of(events.begin(), events.end(), [](const Event& event) {
                        return std::holds_alternative<PowerLimitSet>(event);
                      });
  for (Entry& entry : entries_) pass(entry, now - since_);
  since_ = now;
  if (!chosen) choose(situation, *state.setup().topology);
  for (Entry& entry : entries_) {
    if (!entry.watched) continue;
    const PowerDomainId id = entry.seen.domain;
    const Watts limit = *situation.caps->limit(id);
    // A share of a limit of 0 is undefined.
    entry.part = milliwatts_of(limit) > 0 ? situation.power->planned(id) / limit : 0;
    entry.above = situation.power->excess(*situation.caps, id) > 0;
  }
}

// A domain keeps its entry when its limit rises again.
void PowerWatch::choose(const Situation& situation, const Topology& topology) {
  begun_ = true;
  const std::span<const PowerDomain> domains = topology.power_domains();
  for (std::uint32_t d = 0; d < domains.size(); ++d) {
    const PowerDomainId id(d);
    const bool watched =
        situation.caps->limit(id) && watts_of(situation.caps->room(id)) < domains[d].max_power;
    auto entry =
        std::lower_bound(entries_.begin(), entries_.end(), id,
                         [](const Entry& a, PowerDomainId b) { return a.seen.domain < b; });
    if (entry == entries_.end() || entry->seen.domain != id) {
      if (!watched) continue;
      entry = entries_.insert(entry, Entry{.seen = {.domain = id}});
    }
    entry->watched = watched;
    if (!watched) entry->part = 0, entry->above = false;
  }
}

void PowerWatch::pass(Entry& entry, Duration time) {
  if (time <= Duration()) return;
  entry.seen.fullest = std::max(entry.seen.fullest, entry.part);
  if (entry.above) entry.seen.above = entry.seen.above + time;
}

std::vector<WatchedLimit> PowerWatch::limits(Instant end) const {
  std::vector<WatchedLimit> limits;
  for (Entry entry : entries_) {
    pass(entry, end - since_);
    limits.push_back(entry.seen);
  }
  return limits;
}

}  // namespace orrery
