#include "twin/world/durable_log.hpp"

namespace orrery {

void DurableLog::begin() {
  segments_.push_back(std::make_unique<Segment>());
  Segment& segment = *segments_.back();
  journal_ = std::make_unique<Journal>(
      JournalOptions{.writer = "orrery", .setup = "protocol", .before = hash_, .sink = &segment});
  segment.committed = segment.bytes.size();
}

void DurableLog::commit(Instant at, std::span<const Event> events) {
  if (events.empty()) return;
  for (const Event& event : events) journal_->append(at, event);
  segments_.back()->committed = segments_.back()->bytes.size();
  hash_ = journal_->history_hash();
  events_ += events.size();
}

void DurableLog::tear(Instant at, std::span<const Event> events, Rng& rng) {
  Segment& segment = *segments_.back();
  for (const Event& event : events) journal_->append(at, event);
  const std::size_t written = segment.bytes.size() - segment.committed;
  segment.bytes.resize(segment.committed + rng.below(written));
}

Status DurableLog::read(const Segment& segment, std::vector<TimedEvent>& events) {
  Result<JournalReader<TimedEvent>> reader =
      JournalReader<TimedEvent>::open(segment.bytes, {.name = "log"});
  if (!reader) return forward_error(reader);
  while (true) {
    Result<std::optional<TimedEvent>> event = reader->next();
    if (!event) return forward_error(event);
    if (!*event) return {};
    // Records of an input do not count if its last ones are torn off, even if they are whole.
    if (reader->good_bytes() <= segment.committed) events.push_back(std::move(**event));
  }
}

Result<std::vector<TimedEvent>> DurableLog::recover() {
  std::vector<TimedEvent> events;
  events.reserve(events_);
  for (const std::unique_ptr<Segment>& segment : segments_) {
    if (Status status = read(*segment, events); !status) return forward_error(status);
    segment->bytes.resize(segment->committed);
  }
  begin();
  return events;
}

}  // namespace orrery
