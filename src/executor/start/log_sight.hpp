// executor/start/log_sight.hpp - what a standby has seen of the writer of a shared log, and how far
// behind the log it is.
//
// A value of the standby, on its loop. The log has at least the batches that the standby knows of;
// a standby that the store does not tell of newer ones does not count them, but its age grows: the
// writer shows itself every StoreTraits::beat_every.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/time.hpp"
#include "store/shared_store.hpp"

namespace orrery {

/// How far a standby is, for those who watch over it.
struct StandbyProgress {
  std::string leader;                ///< WriterSeen::writer; empty: none is known
  std::uint64_t term = 0;            ///< newest claim that was seen; 0: none
  std::uint64_t batch = 0;           ///< newest batch that was applied
  std::uint64_t behind_batches = 0;  ///< known batches that were not applied
  Duration behind;                   ///< since it last had all that the writer had written
};

class LogSight {
 public:
  /// Begins at `now`, with nothing seen.
  explicit LogSight(Instant now) : at_(now) {}

  /// The writer was seen, and everything it had written then was applied. Instants are of the
  /// monotonic clock.
  void see(const WriterSeen& seen, Instant now);
  /// A claim that names the writer as it was seen begins. Returns when the first such claim began:
  /// a store that gave no answer to it may have carried it out then.
  [[nodiscard]] Instant begin_claim(Instant now);
  /// The log has batches up to this one.
  void expect(std::uint64_t batch);

  [[nodiscard]] const WriterSeen& writer() const { return seen_; }
  /// `applied`: the newest batch that was.
  [[nodiscard]] StandbyProgress progress(std::uint64_t applied, Instant now) const;

 private:
  WriterSeen seen_;
  std::uint64_t newest_ = 0;      ///< batch that is known to exist
  Instant at_;                    ///< when the writer was seen last
  std::optional<Instant> claim_;  ///< when the first claim since then began
};

}  // namespace orrery
