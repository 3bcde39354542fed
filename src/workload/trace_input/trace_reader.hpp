// workload/trace_input/trace_reader.hpp - public traces of clusters, and our own, read from their
// files.
//
// Text or gzip, distinguished by the first bytes. docs/formats.md has every format with its
// columns.
// Cost: O(bytes): 64,000 rows in less than a tenth of a second.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/time.hpp"
#include "workload/trace/trace.hpp"
#include "workload/trace/trace_options.hpp"

namespace orrery {

/// The most text that is read, or that a gzip file may expand to.
inline constexpr std::size_t kTraceBytesMax = std::size_t{256} << 20;

/// Errors, with file:line:column: no known format, a column missing or unknown, and, unless they
/// are to be skipped, rows that do not fit. Rows that `where` leaves out are not looked at further.
[[nodiscard]] Result<Trace> read_trace(std::string_view bytes, const std::string& file,
                                       const TraceOptions& options);
[[nodiscard]] Result<Trace> load_trace(const std::string& path, const TraceOptions& options);

/// The format whose required columns the first line has, or that a JSON text begins as. Errors:
/// none; lists the formats.
[[nodiscard]] Result<TraceFormat> guess_trace_format(std::string_view text,
                                                     const std::string& file);

/// A point in time as an option of a command gives it: a wall clock (without a zone it is UTC), a
/// date (its first second), or seconds since the trace's epoch. Errors (without position): none of
/// these.
[[nodiscard]] Result<Instant> parse_trace_time(std::string_view text);

}  // namespace orrery
