// executor/live_record.hpp - a stretch of a controller's life on disk: where it began, every input
// and every event, so that `orrery replay` can play the inputs again and compare event by event.
//
// Made by the controller at its start, where it was asked for; another directory each start.
//
//   DIR/texts/       those that the log rests on (store/setup_texts.hpp), and new work
//   DIR/live.yaml    the settings it ran with
//   DIR/catalog/     facts laid over those compiled in, where there were any
//   DIR/begin        a sealed snapshot of the state it began with (store/history.hpp)
//   DIR/inputs.log, DIR/events.log   journals
//
// It rests on no disk: it is not synced, and where it cannot be written recording ends, nothing
// else does. One thread. Cost: that of encoding each input.
#pragma once

#include <memory>
#include <string>

#include "control/core.hpp"
#include "control/journal.hpp"
#include "executor/live_setup.hpp"
#include "store/file_sink.hpp"

namespace orrery {

class LiveRecord {
 public:
  struct Begin {
    const StoreTexts& texts;
    const ControllerSettings& settings;
    std::string catalog;             ///< directory laid over the one compiled in; empty: none is
    std::string snapshot;            ///< sealed
    std::uint64_t history_hash = 0;  ///< up to it
    std::string writer;
  };
  /// Makes `directory`, which nothing may be in. Errors: of the file system.
  [[nodiscard]] static Result<std::unique_ptr<LiveRecord>> create(const std::string& directory,
                                                                  const Begin& begin);
  LiveRecord(std::string directory, std::unique_ptr<FileSink> inputs,
             std::unique_ptr<FileSink> events, const Begin& begin);

  [[nodiscard]] Status put_texts(const StoreTexts& texts) const;
  void note(const Input& input) { input_log_.append(input); }
  void append(Instant at, std::span<const Event> events);
  /// Hands what is buffered to the system. Errors: any write that failed; it is of no use then.
  [[nodiscard]] Status flush();

 private:
  std::string directory_;
  std::unique_ptr<FileSink> inputs_;
  std::unique_ptr<FileSink> events_;
  InputJournal input_log_;
  Journal event_log_;
};

/// What a record begins with: its core has the state and has handled nothing yet.
struct RecordedBegin {
  std::unique_ptr<LiveSetup> setup;
  std::unique_ptr<Core> core;
};

/// Whether a directory holds a record of a controller.
[[nodiscard]] bool is_live_record(const std::string& directory);

/// Errors: no record, damage, texts that this program cannot read.
[[nodiscard]] Result<RecordedBegin> open_live_record(const std::string& directory,
                                                     const ControlFacts::Facts& facts);

}  // namespace orrery
