// base/log.hpp - structured log records, one line each, as text for people or as JSON lines.
//
//   2026-01-31T23:59:59Z info agent registered node=17 address="tcp:10.0.0.7:7000"
//   {"time":"2026-01-31T23:59:59Z","level":"info","event":"agent registered","node":17,...}
//
// main() makes a sink and a Log over it and hands the Log down; there is no global one and the log
// reads no clock. Whatever the values hold, a record is exactly one line of valid UTF-8 without
// control characters. A Log is a small value that may be copied; copies on any thread may share a
// sink. Secrets are never logged: what to log is the caller's choice.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>
#include <variant>

#include "base/error.hpp"
#include "base/time.hpp"

namespace orrery {

enum class LogLevel { kInfo, kWarning, kError };

/// "info", "warning", "error".
[[nodiscard]] std::string_view name_of(LogLevel level);

enum class LogEncoding { kText, kJson };

/// key=value. The key is a name in the code: a lower-case letter, then lower-case letters, digits
/// and '_'; not "time", "level" or "event". A string value is borrowed for the call.
struct LogField {
  using Value = std::variant<std::string_view, bool, std::int64_t, std::uint64_t, double>;

  LogField(std::string_view name, std::string_view text) : key(name), value(text) {}
  LogField(std::string_view name, const std::string& text)
      : LogField(name, std::string_view(text)) {}
  LogField(std::string_view name, const char* text) : LogField(name, std::string_view(text)) {}
  LogField(std::string_view name, std::same_as<bool> auto truth) : key(name), value(truth) {}
  LogField(std::string_view name, std::signed_integral auto n)
      : key(name), value(std::int64_t{n}) {}
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  LogField(std::string_view name, T n) : key(name), value(std::uint64_t{n}) {}
  LogField(std::string_view name, double x) : key(name), value(x) {}

  std::string_view key;
  Value value;
};

using LogFields = std::initializer_list<LogField>;

/// What happened when, without its fields.
struct LogEvent {
  Instant time;
  LogLevel level = LogLevel::kInfo;
  std::string_view message;
};

/// A string longer than this many bytes is cut there and ends in "...".
inline constexpr std::size_t kLogTextBytesMax = 4096;

/// The record's line, with its newline. In text, strings stand in quotes and the message does not;
/// quotes and backslashes in them, control characters and line separators are escaped as in JSON,
/// bytes that are no UTF-8 become U+FFFD. JSON has no word for NaN and infinity: they become null.
[[nodiscard]] std::string encode(LogEncoding encoding, const LogEvent& event, LogFields fields);

/// The destination of log lines.
class LogSink {
 public:
  virtual ~LogSink() = default;
  /// Thread-safe. `line` ends in a newline.
  virtual void write_line(std::string_view line) = 0;
};

/// Writes each line to a file descriptor, standard error unless told otherwise, with one write(2);
/// only a descriptor that takes part of a line sees more. A line it refuses (disk full, reader
/// gone) is lost. A program whose log may be a pipe ignores SIGPIPE.
class DescriptorLogSink final : public LogSink {
 public:
  DescriptorLogSink();
  /// `descriptor` stays the caller's.
  explicit DescriptorLogSink(int descriptor) : descriptor_(descriptor) {}

  void write_line(std::string_view line) override;

 private:
  int descriptor_;
  std::mutex mutex_;  ///< keeps a line whole even when it takes several writes
};

class Log {
 public:
  struct Options {
    LogLevel minimum = LogLevel::kInfo;
    LogEncoding encoding = LogEncoding::kText;
  };

  /// `sink` must outlive the Log and its copies.
  explicit Log(LogSink& sink) : Log(sink, Options{}) {}
  Log(LogSink& sink, Options options) : sink_(&sink), options_(options) {}

  /// For work that only a record needs.
  [[nodiscard]] bool enabled(LogLevel level) const { return level >= options_.minimum; }

  void write(const LogEvent& event, LogFields fields = {}) const;
  void info(Instant now, std::string_view message, LogFields fields = {}) const;
  void warning(Instant now, std::string_view message, LogFields fields = {}) const;
  void error(Instant now, std::string_view message, LogFields fields = {}) const;

 private:
  LogSink* sink_;
  Options options_;
};

}  // namespace orrery
