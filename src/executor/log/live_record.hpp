// executor/log/live_record.hpp - a record of a controller's run on disk: its initial state, every
// input and every event, so that `orrery replay` can replay the inputs and compare event by event.
//
// Made by the controller at its start, if it was requested; each start has its own directory.
//
//   DIR/texts/       the texts of the log (store/setup_texts.hpp), and new work
//   DIR/live.yaml    the settings it ran with
//   DIR/catalog/     facts that override the built-in ones, if there are any
//   DIR/begin        a sealed snapshot of the initial state (store/history.hpp)
//   DIR/inputs.log, DIR/events.log   journals
//
// The files are not synced, and if one cannot be written only the recording ends. One thread. Cost:
// that of encoding each input.
#pragma once

#include <memory>
#include <string>

#include "control/core/core.hpp"
#include "control/log/journal.hpp"
#include "executor/live/live_setup.hpp"
#include "store/file_sink.hpp"

namespace orrery {

class LiveRecord {
 public:
  struct Begin {
    const StoreTexts& texts;
    const ControllerSettings& settings;
    std::string catalog;             ///< directory that overrides the built-in catalog; empty: none
    std::string snapshot;            ///< sealed
    std::uint64_t history_hash = 0;  ///< history hash up to the snapshot
    std::string writer;
  };
  /// Makes `directory`, which must be empty or missing. Errors: of the file system.
  [[nodiscard]] static Result<std::unique_ptr<LiveRecord>> create(const std::string& directory,
                                                                  const Begin& begin);
  LiveRecord(std::string directory, std::unique_ptr<FileSink> inputs,
             std::unique_ptr<FileSink> events, const Begin& begin);

  [[nodiscard]] Status put_texts(const StoreTexts& texts) const;
  void note(const Input& input) { input_log_.append(input); }
  void append(Instant at, std::span<const Event> events);
  /// Passes buffered bytes to the system. Errors: any write that failed; the record is unusable
  /// then.
  [[nodiscard]] Status flush();

 private:
  std::string directory_;
  std::unique_ptr<FileSink> inputs_;
  std::unique_ptr<FileSink> events_;
  InputJournal input_log_;
  Journal event_log_;
};

/// The begin of a record: its core has the state and has handled no input yet.
struct RecordedBegin {
  std::unique_ptr<LiveSetup> setup;
  std::unique_ptr<Core> core;
};

/// Whether a directory holds a record of a controller.
[[nodiscard]] bool is_live_record(const std::string& directory);

/// Errors: not a record, damage, texts that this program cannot read.
[[nodiscard]] Result<RecordedBegin> open_live_record(const std::string& directory,
                                                     const Facts& facts);

}  // namespace orrery
