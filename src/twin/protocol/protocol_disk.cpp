#include "twin/protocol/protocol_disk.hpp"

#include <utility>

namespace orrery {

Result<std::vector<TimedEvent>> ProtocolDisk::begin() {
  appended_ = 0;
  return log_.recover();
}

std::uint64_t ProtocolDisk::append(Instant at, std::span<const Event> events) {
  waiting_.push_back({at, {events.begin(), events.end()}});
  ++appended_;
  if (writing_ == 0) write();
  return appended_;
}

void ProtocolDisk::write() {
  if (waiting_.empty()) return;
  writing_ = waiting_.size();
  const DiskRules& rules = context_.rules().disk;
  Duration takes;
  if (rules.slow_write > 0 && context_.chance(rules.slow_write)) {
    context_.note("the disk is slow");
    takes = Duration::nanoseconds(static_cast<std::int64_t>(
        context_.rng().below(static_cast<std::uint64_t>(rules.write_max.count_ns()))));
  }
  context_.time().after(takes, [this, by = controller_] {
    if (by != controller_) return;
    commit();
    outside_.written();
  });
}

void ProtocolDisk::commit() {
  for (; writing_ > 0; --writing_) {
    const Waiting input = std::move(waiting_.front());
    waiting_.pop_front();
    log_.commit(input.at, input.events);
    outside_.durable(input.events);
  }
}

bool ProtocolDisk::crash() {
  if (writing_ > 0 && context_.chance(0.5)) {
    // All writes under way reached the disk, but no client was answered.
    commit();
  } else if (!waiting_.empty()) {
    log_.tear(waiting_.front().at, waiting_.front().events, context_.rng());
  }
  const bool all = waiting_.empty();
  waiting_.clear();
  writing_ = 0;
  ++controller_;
  return all;
}

}  // namespace orrery
