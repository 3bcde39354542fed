// verbs/record/record_player.hpp - plays the inputs of a record to a core again, and compares event
// by event.
//
// Pure: journals are bytes, and nothing outside the core is touched. One thread. Cost: that of
// reading both journals and handling the inputs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "control/core/core.hpp"

namespace orrery {

/// How a record may end.
enum class RecordEnd : std::uint8_t {
  kWhole,     ///< with the last event
  kMayBeCut,  ///< anywhere: its writer may have been killed
};

/// The journals of a record.
struct RecordedJournals {
  std::string_view inputs;  ///< the bytes of inputs.log
  std::string_view events;  ///< the bytes of events.log
  RecordEnd end = RecordEnd::kWhole;
  std::string directory = {};  ///< of the record, for messages
  std::string setup = {};      ///< digest of its setup; empty: not compared
};

struct ReplayedRecord {
  std::uint64_t inputs = 0;
  std::uint64_t events = 0;
  std::uint64_t history_hash = 0;
};

/// `core` has handled nothing. Errors: damage of a journal; its setup is not the one that the
/// inputs were recorded with; inputs that run backwards; the first event that differs from the one
/// on record, is missing, or that no input leads to.
[[nodiscard]] Result<ReplayedRecord> play_record(const RecordedJournals& record,
                                                 std::unique_ptr<Core> core);

}  // namespace orrery
