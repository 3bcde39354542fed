#include "executor/live/event_history.hpp"

#include <deque>
#include <utility>

namespace orrery {

namespace {

/// Returns a place whose segment is still there: the requested one, else the oldest.
HistoryResult<EventPlace> place_to_read(StoreReader& store, const EventsAsked& asked) {
  HistoryResult<HistoryStart> oldest = oldest_start(store);
  if (!oldest) return tl::unexpected(oldest.error());
  EventPlace place = asked.from.value_or(EventPlace{.segment = *oldest});
  if (place.segment.after < oldest->after) place.segment = *oldest;
  return place;
}

}  // namespace

Result<EventsFound> read_events(StoreReader& store, const EventsAsked& asked) {
  HistoryResult<EventPlace> from = place_to_read(store, asked);
  if (!from) return forward_error(from);
  HistoryResult<HistoryReader> reader = HistoryReader::open(store, from->segment, nullptr);
  if (!reader) return forward_error(reader);
  std::deque<TimedEvent> found;
  std::optional<EventPlace> next;
  EventPlace at = *from;  // place that is read now
  while (true) {
    const HistoryStart before{reader->batch(), reader->history_hash()};
    const std::uint64_t segments = reader->counts().segments;
    at.batch = before.after + 1;
    at.skip = 0;
    HistoryResult<bool> more = reader->next_batch([&](const TimedEvent& event) {
      const std::uint64_t number = at.skip++;
      const bool passed =
          at.batch < from->batch || (at.batch == from->batch && number < from->skip);
      if (passed || next || !asked.wanted(event)) return;
      if (found.size() == asked.count && !asked.newest) {
        next = EventPlace{at.segment, at.batch, number};
        return;
      }
      found.push_back(event);
      if (found.size() > asked.count) found.pop_front();
    });
    if (!more) return forward_error(more);
    if (reader->counts().segments > segments) {
      at.segment = before;
      if (next) next->segment = before;
    }
    if (!*more || next) break;
  }
  return EventsFound{{std::make_move_iterator(found.begin()), std::make_move_iterator(found.end())},
                     next};
}

void EventHistory::ask(EventsAsked asked, Answered answered) {
  beside_.run([env = env_, open = open_, asked = std::move(asked),
               answered = std::move(answered)]() mutable {
    const auto read = [&]() -> Result<EventsFound> {
      StorageResult<std::unique_ptr<StoreReader>> store = open();
      if (!store) return forward_error(store);
      return read_events(**store, asked);
    };
    auto found = std::make_shared<Result<EventsFound>>(read());
    env.post([found, answered = std::move(answered)] { answered(std::move(*found)); });
  });
}

}  // namespace orrery
