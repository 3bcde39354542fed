// control/log/journal.hpp - the history of control: events (or inputs) in order, as bytes and as a
// hash.
//
// Core's owner appends each decision; two runs are the same exactly when their history hashes are.
// The bytes go to the sink, if there is one, before append() returns; they are durable once the
// sink confirms it. Each record holds its time and, for an input, the request id, then its fields
// (control/codec/codec.hpp); control/log/journal_frame.hpp has the layout. One thread.
// Cost: that of encoding and a checksum, tens of nanoseconds for most records.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "control/event.hpp"
#include "control/input.hpp"
#include "control/log/journal_frame.hpp"
#include "control/log/upcast.hpp"
#include "control/setup.hpp"

namespace orrery {

struct JournalOptions {
  std::string writer;           ///< name and version of the program: "orrery 0.1.0"
  std::string setup;            ///< digest of the facts behind the records
  std::uint64_t before = 0;     ///< history hash of the journal that this one continues
  JournalSink* sink = nullptr;  ///< outlives the journal; none: the hash alone is kept
};

/// A journal of events.
class Journal {
 public:
  /// Writes the head.
  explicit Journal(const JournalOptions& options = {});

  void append(Instant at, const Event& event);

  /// The hash of all records up to now; `before` while there are none.
  [[nodiscard]] std::uint64_t history_hash() const { return frames_.history_hash(); }
  [[nodiscard]] std::uint64_t records() const { return frames_.frames(); }

 private:
  FrameWriter frames_;
};

class InputJournal {
 public:
  explicit InputJournal(const JournalOptions& options = {});

  void append(const Input& input);

  [[nodiscard]] std::uint64_t history_hash() const { return frames_.history_hash(); }
  [[nodiscard]] std::uint64_t records() const { return frames_.frames(); }

 private:
  FrameWriter frames_;
};

struct TimedEvent {
  Instant at;
  Event what;
};

struct JournalReadOptions {
  std::string name;                   ///< name of the file, for messages
  const PlanSource* plans = nullptr;  ///< none: entries of plans stay empty and are not checked
  std::span<const Upcaster> upcasters = builtin_upcasters();
};

/// Reads what a Journal (Record: TimedEvent) or an InputJournal (Record: Input) wrote. Everything
/// borrowed outlives it. Records of older versions are raised to the present one.
template <class Record>
class JournalReader {
 public:
  /// Errors: see FrameReader::open.
  [[nodiscard]] static Result<JournalReader> open(std::string_view bytes,
                                                  JournalReadOptions options);

  /// Returns the next record; none at the end, whether whole or torn. Errors, with the offset:
  /// damage; a type or version that this program does not know, with the name of the writer; bytes
  /// that are not a record, with what was expected; a plan that differs from the logged one. After
  /// an error everything before it is good, and nothing after it is read.
  [[nodiscard]] Result<std::optional<Record>> next();

  /// See FrameReader::go_on. Precondition: no error was returned either.
  void go_on(std::string_view bytes, std::string name);

  [[nodiscard]] const JournalHead& head() const { return frames_.head(); }
  /// Bytes of the journal up to the end of the newest record that next() returned.
  [[nodiscard]] std::uint64_t good_bytes() const { return good_bytes_; }
  /// The history hash of the records up to good_bytes().
  [[nodiscard]] std::uint64_t history_hash() const { return history_hash_; }
  /// See FrameReader::torn: good_bytes() is where to cut.
  [[nodiscard]] bool torn() const { return frames_.torn(); }

 private:
  JournalReader(FrameReader frames, JournalReadOptions options)
      : frames_(std::move(frames)), options_(std::move(options)) {
    stand();
  }
  [[nodiscard]] Result<Record> read(const Frame& frame) const;
  [[nodiscard]] tl::unexpected<Error> fail(Error error);
  /// Records that everything read so far is good.
  void stand() {
    good_bytes_ = frames_.good_bytes();
    history_hash_ = frames_.history_hash();
  }

  FrameReader frames_;
  JournalReadOptions options_;
  std::uint64_t good_bytes_ = 0;
  std::uint64_t history_hash_ = 0;
  std::optional<Error> failed_;
};

extern template class JournalReader<TimedEvent>;
extern template class JournalReader<Input>;

}  // namespace orrery
