#include "executor/start/log_sight.hpp"

#include <algorithm>

namespace orrery {

void LogSight::see(const WriterSeen& seen, Instant now) {
  if (!(seen == seen_)) claim_.reset();
  seen_ = seen;
  at_ = now;
  expect(seen.newest);
}

Instant LogSight::begin_claim(Instant now) {
  if (!claim_) claim_ = now;
  return *claim_;
}

void LogSight::expect(std::uint64_t batch) { newest_ = std::max(newest_, batch); }

StandbyProgress LogSight::progress(std::uint64_t applied, Instant now) const {
  return {.leader = seen_.writer,
          .term = seen_.term,
          .batch = applied,
          .behind_batches = newest_ - std::min(newest_, applied),
          .behind = now - at_};
}

}  // namespace orrery
