#include "base/log.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <iterator>
#include <type_traits>

#include "base/assert.hpp"
#include "base/text/terminal_text.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

enum class Quotes { kEscaped, kPlain };

// A character for which control_length() is not 0.
void append_control(std::string& out, std::string_view sequence) {
  switch (sequence.front()) {
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += terminal_json(sequence);
  }
}

void append_valid(std::string& out, std::string_view text, Quotes quotes) {
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t control = control_length(text, at); control > 0) {
      append_control(out, text.substr(at, control));
      at += control;
      continue;
    }
    const char c = text[at++];
    if (quotes == Quotes::kEscaped && (c == '"' || c == '\\')) out += '\\';
    out += c;
  }
}

// At most kLogTextBytesMax bytes, cut between code points.
std::string_view cut(std::string_view text) {
  if (text.size() <= kLogTextBytesMax) return text;
  std::size_t end = kLogTextBytesMax;
  const auto continues = [&] { return (static_cast<std::uint8_t>(text[end]) & 0xC0) == 0x80; };
  while (end > kLogTextBytesMax - 3 && continues()) --end;
  return text.substr(0, end);
}

void append_text(std::string& out, std::string_view text, Quotes quotes) {
  std::string_view rest = cut(text);
  const bool whole = rest.size() == text.size();
  while (!rest.empty()) {
    const std::size_t bad = first_invalid_utf8(rest);
    append_valid(out, rest.substr(0, bad), quotes);
    if (bad == std::string_view::npos) break;
    out += rest[bad] == '\0' ? "\\u0000" : "\uFFFD";
    rest.remove_prefix(bad + 1);
  }
  if (!whole) out += "...";
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  append_text(out, text, Quotes::kEscaped);
  out += '"';
}

void append_value(std::string& out, const LogField::Value& value, LogEncoding encoding) {
  std::visit(
      [&](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::string_view>) {
          append_quoted(out, held);
        } else if constexpr (std::is_same_v<Held, double>) {
          const bool null = encoding == LogEncoding::kJson && !std::isfinite(held);
          out += null ? "null" : fmt::format("{}", held);
        } else {
          fmt::format_to(std::back_inserter(out), "{}", held);
        }
      },
      value);
}

bool is_key(std::string_view key) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !key.empty() && key.front() >= 'a' && key.front() <= 'z' &&
         std::all_of(key.begin(), key.end(), fits) && key != "time" && key != "level" &&
         key != "event";
}

std::string encode_text(const LogEvent& event, LogFields fields) {
  std::string line = fmt::format("{} {} ", event.time.text(), name_of(event.level));
  append_text(line, event.message, Quotes::kPlain);
  for (const LogField& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    append_value(line, field.value, LogEncoding::kText);
  }
  line += '\n';
  return line;
}

std::string encode_json(const LogEvent& event, LogFields fields) {
  std::string line = fmt::format(R"({{"time":"{}","level":"{}","event":)", event.time.text(),
                                 name_of(event.level));
  append_quoted(line, event.message);
  for (const LogField& field : fields) {
    line += ",\"";
    line += field.key;
    line += "\":";
    append_value(line, field.value, LogEncoding::kJson);
  }
  line += "}\n";
  return line;
}

}  // namespace

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  ORRERY_ASSERT(false, "a LogLevel is one of the above");
}

std::string encode(LogEncoding encoding, const LogEvent& event, LogFields fields) {
  for (const LogField& field : fields) {
    ORRERY_ASSERT(is_key(field.key), "log keys are plain names, and not those every record has");
  }
  switch (encoding) {
    case LogEncoding::kText:
      return encode_text(event, fields);
    case LogEncoding::kJson:
      return encode_json(event, fields);
  }
  ORRERY_ASSERT(false, "a LogEncoding is one of the above");
}

DescriptorLogSink::DescriptorLogSink() : DescriptorLogSink(STDERR_FILENO) {}

void DescriptorLogSink::write_line(std::string_view line) {
  const std::lock_guard<std::mutex> lock(mutex_);
  while (!line.empty()) {
    const ssize_t wrote = ::write(descriptor_, line.data(), line.size());
    if (wrote > 0) {
      line.remove_prefix(static_cast<std::size_t>(wrote));
    } else if (wrote < 0 && errno == EAGAIN) {
      // Another process made it non-blocking; a log still waits for its reader rather than tear a
      // line.
      pollfd room{descriptor_, POLLOUT, 0};
      static_cast<void>(::poll(&room, 1, -1));
    } else if (wrote == 0 || errno != EINTR) {
      return;
    }
  }
}

void Log::write(const LogEvent& event, LogFields fields) const {
  if (enabled(event.level)) sink_->write_line(encode(options_.encoding, event, fields));
}

void Log::info(Instant now, std::string_view message, LogFields fields) const {
  write({now, LogLevel::kInfo, message}, fields);
}

void Log::warning(Instant now, std::string_view message, LogFields fields) const {
  write({now, LogLevel::kWarning, message}, fields);
}

void Log::error(Instant now, std::string_view message, LogFields fields) const {
  write({now, LogLevel::kError, message}, fields);
}

}  // namespace orrery
