#include "workload/trace_input/trace_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/format/document.hpp"
#include "base/format/gzip.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/utf8.hpp"
#include "workload/kubernetes_list.hpp"
#include "workload/trace/trace_file.hpp"
#include "workload/trace/trace_formats.hpp"
#include "workload/trace_input/trace_kubernetes.hpp"
#include "workload/trace_input/trace_text.hpp"

namespace orrery {
namespace {

// From the columns that only one format has to those that many have.
constexpr std::array<TraceFormat, 7> kNamedTables = {
    TraceFormat::kOpenb, TraceFormat::kMuri,    TraceFormat::kTiresias, TraceFormat::kSia,
    TraceFormat::kAcme,  TraceFormat::kPaiJobs, TraceFormat::kPhilly};

bool has_cells(std::string_view line, TraceFormat format) {
  const TraceTable& table = trace_table(format);
  std::vector<std::string_view> cells;
  return split_cells(line, table.separator, cells) && cells.size() == table.columns.size();
}

// A row of as many cells, whose fourth is a status, or the names of the columns.
bool is_pai(std::string_view line) {
  constexpr std::array<std::string_view, 4> kStatus = {"Running", "Terminated", "Failed",
                                                       "Waiting"};
  const TraceTable& table = trace_table(TraceFormat::kPai);
  std::vector<std::string_view> cells;
  if (!split_cells(line, table.separator, cells) || cells.size() != table.columns.size()) {
    return false;
  }
  return std::find(kStatus.begin(), kStatus.end(), cells[3]) != kStatus.end() ||
         names_columns(table, line);
}

std::optional<TraceFormat> format_of(std::string_view line) {
  if (line.starts_with(';') || has_cells(line, TraceFormat::kSwf)) return TraceFormat::kSwf;
  if (has_cells(line, TraceFormat::kGavel)) return TraceFormat::kGavel;
  std::vector<std::string_view> names;
  if (split_cells(line, ',', names)) {
    for (const TraceFormat format : kNamedTables) {
      if (TraceHeader::from_names(trace_table(format), names, {})) return format;
    }
  }
  const TraceTable& sacct = trace_table(TraceFormat::kSacct);
  if (split_cells(line, sacct.separator, names) && TraceHeader::from_names(sacct, names, {})) {
    return TraceFormat::kSacct;
  }
  if (is_pai(line)) return TraceFormat::kPai;
  constexpr std::array<std::string_view, 5> kOurs = {"apiVersion", "kind", "name", "#", "---"};
  const auto begins = [&](std::string_view word) { return line.starts_with(word); };
  if (std::any_of(kOurs.begin(), kOurs.end(), begins)) return TraceFormat::kOrrery;
  return std::nullopt;
}

Result<Trace> read_text(std::string_view text, const std::string& file,
                        const TraceOptions& options) {
  std::optional<TraceFormat> format = options.format;
  if (!format) {
    const Result<TraceFormat> guessed = guess_trace_format(text, file);
    if (!guessed) return tl::unexpected<Error>(guessed.error());
    format = *guessed;
  }
  if (*format == TraceFormat::kOrrery) return read_trace_file(text, file, options);
  if (*format == TraceFormat::kKubernetes) return read_kubernetes_trace(text, file, options);
  return read_trace_table(trace_table(*format), text, file, options);
}

}  // namespace

std::string_view word_of(TraceFormat format) {
  return kTraceFormatWords[static_cast<std::size_t>(format)];
}

Result<TraceFormat> trace_format(std::string_view word) {
  const auto found = std::find(kTraceFormatWords.begin(), kTraceFormatWords.end(), word);
  if (found != kTraceFormatWords.end()) {
    return static_cast<TraceFormat>(found - kTraceFormatWords.begin());
  }
  return input_error(
      {}, fmt::format("\"{}\" is no format of traces{}; expected one of {}", printable(word, 40),
                      did_you_mean(word, kTraceFormatWords), fmt::join(kTraceFormatWords, ", ")));
}

Result<TraceFormat> guess_trace_format(std::string_view text, const std::string& file) {
  if (begins_kubernetes_list(text)) return TraceFormat::kKubernetes;
  // JSON may be one line of any length; no table begins like that.
  const std::string_view from = without_byte_order_mark(text);
  const std::size_t begin = from.find_first_not_of(" \t\r\n");
  if (begin != from.npos && from[begin] == '{') return TraceFormat::kOrrery;
  TraceLines lines(from);
  if (!lines.next()) return input_error({file, 1, 1}, "the file is empty, expected a trace");
  const SourcePosition where{file, lines.number(), 1};
  if (Status fine = check_trace_line(lines.line(), where); !fine) return forward_error(fine);
  if (const std::optional<TraceFormat> format = format_of(lines.line())) return *format;
  return input_error(
      where, fmt::format("\"{}\" is the first line of no known format of traces; expected "
                         "one of {}, or a format said beside the file",
                         printable(trimmed(lines.line()), 60), fmt::join(kTraceFormatWords, ", ")));
}

Result<Instant> parse_trace_time(std::string_view text) {
  constexpr std::size_t kDate = std::string_view("2017-10-01").size();
  if (looks_like_wall_clock(text)) {
    return parse_wall_clock(text.size() == kDate ? std::string(text) + "T00:00:00"
                                                 : std::string(text));
  }
  const std::optional<std::int64_t> ns = parse_nanoseconds(text, TimeUnit::kSeconds);
  if (ns) return Instant::from_ns(*ns);
  return input_error({}, fmt::format("\"{}\" is not a time; expected \"2017-10-01T00:00:00\" or "
                                     "seconds since the trace's epoch",
                                     printable(text, 40)));
}

Result<Trace> read_trace(std::string_view bytes, const std::string& file,
                         const TraceOptions& options) {
  if (!is_gzip(bytes)) return read_text(bytes, file, options);
  Result<std::string> text = gunzip(bytes, kTraceBytesMax);
  if (!text) return input_error({file, 0, 0}, std::move(text.error().message));
  return read_text(*text, file, options);
}

Result<Trace> load_trace(const std::string& path, const TraceOptions& options) {
  Result<std::string> bytes = read_file(path, kTraceBytesMax);
  if (!bytes) return forward_error(bytes);
  return read_trace(*bytes, path == "-" ? "<stdin>" : path, options);
}

}  // namespace orrery
