#include "executor/live/event_feed.hpp"

#include <utility>
#include <vector>

namespace orrery {

void EventFeed::decided(std::uint64_t input, Instant at, std::span<const Event> events) {
  for (const Event& event : events) decisions_.note(event);
  if (watches_.empty()) return;
  for (const Event& event : events) undurable_.push_back({input, {at, event}});
}

void EventFeed::durable(std::uint64_t input) {
  while (!undurable_.empty() && undurable_.front().input <= input) {
    const TimedEvent event = std::move(undurable_.front().event);
    undurable_.pop_front();
    // A watch may remove itself, or add another.
    std::vector<Watch> watches;
    watches.reserve(watches_.size());
    for (const auto& [number, watch] : watches_) watches.push_back(watch);
    for (const Watch& watch : watches) watch(event);
  }
}

EventFeed::WatchNumber EventFeed::watch(Watch watch) {
  watches_.emplace(++newest_watch_, std::move(watch));
  return newest_watch_;
}

}  // namespace orrery
