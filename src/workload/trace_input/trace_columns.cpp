#include "workload/trace_input/trace_columns.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/format/field_writer.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/utf8.hpp"
#include "workload/job_spec.hpp"

namespace orrery {
namespace {

// The text of a job in the column; none: there is no such column.
std::optional<std::string> column_of(const TraceJob& job, std::string_view column) {
  if (column == "name") return job.name;
  if (column == "user") return job.user;
  if (column == "tenant") return job.tenant;
  if (column == "model") return job.model;
  if (column == "types") return job.types;
  if (column == "kind") return job.kind ? std::string(word_of(*job.kind)) : std::string();
  if (column == "status") return std::string(word_of(job.status));
  return std::nullopt;
}

}  // namespace

Status check_job_columns(const TraceOptions& options, const std::string& file) {
  constexpr std::array<std::string_view, 7> kColumns = {"name",  "user", "tenant", "model",
                                                        "types", "kind", "status"};
  for (const TraceOptions::Where& where : options.where) {
    if (column_of(TraceJob(), where.column)) continue;
    return input_error(
        {file, 0, 0}, fmt::format("there is no column \"{}\" to compare{}; the columns are: {}",
                                  printable(where.column, 40), did_you_mean(where.column, kColumns),
                                  fmt::join(kColumns, ", ")));
  }
  return {};
}

bool is_wanted(const TraceJob& job, const TraceOptions& options) {
  return std::all_of(options.where.begin(), options.where.end(),
                     [&](const TraceOptions::Where& where) {
                       return column_of(job, where.column) == where.value;
                     });
}

}  // namespace orrery
