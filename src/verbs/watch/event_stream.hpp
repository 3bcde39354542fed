// verbs/watch/event_stream.hpp - changes in a cluster: those that the log has, and those that
// happen, each once.
//
// Made by a verb for one call; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/format/field_writer.hpp"
#include "base/time.hpp"
#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/live_session.hpp"

namespace orrery {

/// Which events are shown, as typed; an empty text stands for any.
struct EventChoice {
  std::string job;
  std::string node;
  std::string kind;
  std::string tenant;
  std::string since;  ///< an age or an instant; empty: the last 100 events
};

/// Returns the request for the log's events. Errors (kInput): the job is no number; a time that is
/// none.
[[nodiscard]] Result<v1::ListEventsRequest> history_request(const EventChoice& selection,
                                                            Instant now);
/// Returns the request for events that happen, with a mark where the stream begins.
[[nodiscard]] Result<v1::WatchEventsRequest> watch_request(const EventChoice& selection);

/// Reads "2h" as so long before `now`, or an instant. Error (kInput): neither.
[[nodiscard]] Result<Instant> read_since(const std::string& text, Instant now);

/// Returns "2026-11-24T10:00:00.250Z  JobStarted  job=3 ...", one line that is escaped.
[[nodiscard]] std::string event_text(const v1::EventRow& row);
/// Returns the event as JSON, its fields as they are in the log.
[[nodiscard]] Json event_json(const v1::EventRow& row);
/// Returns the event as JSON on a line of its own; control characters are escaped as in JSON.
[[nodiscard]] std::string event_json_line(const v1::EventRow& row);

/// Shows events each once, those of the log and those of a stream that begins while the log is
/// read, also when the stream is lost and begins anew.
class EventOrder {
 public:
  using Show = std::function<void(const v1::EventRow&)>;
  /// Whether a stream follows, which may bring what the log had.
  enum class Stream : std::uint8_t { kNone, kFollows };
  EventOrder(Stream stream, Show show) : stream_(stream), show_(std::move(show)) {}

  /// Begins to read the log, a first time or once more: what it has that was shown is left out.
  void begin_history();
  /// Takes an event of the log.
  void add_history(const v1::EventRow& row);
  /// Takes an event of the stream.
  void add_live(const v1::EventRow& row);

  /// Returns the time of the newest event that was shown; nothing before the first.
  [[nodiscard]] const std::optional<Instant>& newest() const { return newest_; }

 private:
  using Rows = std::multiset<std::string>;

  /// Whether the row was among them; it is not any more.
  static bool take(Rows& rows, const v1::EventRow& row);
  void show(const v1::EventRow& row);

  Stream stream_;
  Show show_;
  Rows from_history_;              ///< shown, which the stream may bring once more
  Rows before_;                    ///< shown, which the log brings once more
  std::optional<Instant> newest_;  ///< time of the newest shown event
  Rows newest_rows_;               ///< those of that instant
};

/// Reads the log of events through a session of its own.
class EventLogReader {
 public:
  EventLogReader(LiveSession& session, EventChoice selection, EventOrder& order)
      : session_(session), selection_(std::move(selection)), order_(order) {}

  /// Shows what was asked for; a second time, what came since the newest that was shown. Errors:
  /// those of the selection and of the controller.
  [[nodiscard]] Status read(Instant now);

  [[nodiscard]] EventOrder& order() { return order_; }

 private:
  LiveSession& session_;
  EventChoice selection_;
  EventOrder& order_;
  bool again_ = false;
};

/// Shows events that happen until the stream ends, or `wanted` returns false after one. The log is
/// read each time that the stream has begun, so that nothing is missed in between. `history` has a
/// session of its own. Errors: those of the selection and of the controller.
[[nodiscard]] Status watch_events(LiveSession& session, const EventChoice& selection,
                                  EventLogReader& history, const std::function<bool()>& wanted);

}  // namespace orrery
