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
    std::vector<WatchNumber> numbers;
    numbers.reserve(watches_.size());
    for (const auto& [number, watch] : watches_) numbers.push_back(number);
    // A watch may remove itself or others, or add another.
    for (const WatchNumber number : numbers) {
      const auto found = watches_.find(number);
      if (found == watches_.end()) continue;
      const Watch watch = found->second;
      watch(event);
    }
  }
}

EventFeed::WatchNumber EventFeed::watch(Watch watch) {
  watches_.emplace(++newest_watch_, std::move(watch));
  return newest_watch_;
}

}  // namespace orrery
