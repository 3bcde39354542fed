#include "verbs/simulate/simulated_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/text/count_text.hpp"
#include "verbs/option_text.hpp"
#include "workload/trace/trace_generator.hpp"
#include "workload/trace/trace_mapping.hpp"

namespace orrery {
namespace {

Result<Trace> generated(const SimulateOptions& asked, std::uint32_t devices) {
  TraceShape shape;
  Result<TraceStyle> style = word_option<TraceStyle>("generate", asked.generated.style);
  if (!style) return forward_error(style);
  shape.style = *style;
  shape.accelerators = devices;
  shape.utilisation = asked.generated.load;
  if (asked.generated.jobs > 0) shape.jobs = asked.generated.jobs;
  if (!asked.generated.span.empty()) {
    Result<Seconds> span = quantity_option<Seconds>("span", asked.generated.span);
    if (!span) return forward_error(span);
    shape.span = Duration::from_seconds(span->value());
  }
  if (Status status = check_trace_shape(shape); !status) {
    return wrong("generate", status.error().message + " (--jobs or --span, --load)");
  }
  return generate_trace(shape, asked.world.seed);
}

/// Tells what was left out of a trace, and whether its times run backwards.
void note_rows(const Trace& trace, const std::string& path, const TraceOptions& options,
               std::vector<std::string>& notes) {
  if (!trace.skipped.empty()) {
    notes.push_back(fmt::format(
        "{} of the trace could not be read and {} skipped; the first: {}: {}",
        counted(trace.skipped.size(), "row"), trace.skipped.size() == 1 ? "was" : "were",
        trace.skipped.front().where.text(), trace.skipped.front().reason));
  } else if (options.bad_rows == TraceOptions::BadRows::kSkip) {
    notes.push_back("all rows of the trace could be read");
  }
  for (const std::string& assumed : trace.notes) notes.push_back("trace: " + assumed);
  for (const LeftOutRows& rows : trace.left_out) {
    notes.push_back(fmt::format("{} of the trace {} {} left out; the first is line {}",
                                counted(rows.rows, "row"), rows.reason,
                                rows.rows == 1 ? "was" : "were", rows.first_line));
  }
  const auto earlier = std::is_sorted_until(
      trace.jobs.begin(), trace.jobs.end(),
      [](const TraceJob& a, const TraceJob& b) { return a.submit < b.submit; });
  if (earlier == trace.jobs.end()) return;
  notes.push_back(
      fmt::format("{}: line {} has an earlier submit time than the line before it; jobs are "
                  "simulated in the order of their submit times",
                  path, earlier->line));
}

struct TracePlace {
  std::string path;
  TraceOptions options;
};

/// Reads --trace and the options that say which rows of it are meant. "jobs.csv:philly" is a path
/// with a format, unless --format gives one.
Result<TracePlace> place_of(const SimulateOptions& asked) {
  TracePlace place{.path = asked.trace.file, .options = {}};
  std::string& path = place.path;
  TraceOptions& options = place.options;
  std::string format = asked.trace.format;
  const std::size_t colon = path.rfind(':');
  if (format.empty() && colon != std::string::npos && trace_format(path.substr(colon + 1))) {
    format = path.substr(colon + 1);
    path.resize(colon);
  }
  if (!format.empty()) {
    Result<TraceFormat> known = trace_format(format);
    if (!known) return wrong("format", known.error().message);
    options.format = *known;
  }
  for (const std::string& where : asked.trace.rows) {
    const std::size_t equals = where.find('=');
    if (equals == std::string::npos) {
      return wrong("where", fmt::format("\"{}\": expected column=value", where));
    }
    options.where.push_back({where.substr(0, equals), where.substr(equals + 1)});
  }
  for (const auto& [name, text, target] : {std::tuple{"from", &asked.trace.from, &options.from},
                                           std::tuple{"to", &asked.trace.to, &options.to}}) {
    if (text->empty()) continue;
    Result<Instant> at = parse_trace_time(*text);
    if (!at) return wrong(name, at.error().message);
    *target = *at;
  }
  if (asked.trace.bad_rows == SimulateOptions::Flag::kYes) {
    options.bad_rows = TraceOptions::BadRows::kSkip;
  }
  return place;
}

/// Loads the file of --throughputs; those of Gavel lie beside its traces.
Result<std::optional<GavelThroughputs>> load_throughputs(const SimulateOptions& asked,
                                                         const ReplayRules& rules,
                                                         const std::string& trace) {
  std::string throughputs = asked.files.path(asked.trace.throughputs);
  if (throughputs.empty() && rules.name == "gavel") {
    for (const char* name : {"simulation_throughputs.json", "simulation_throughputs.json.gz"}) {
      const std::filesystem::path beside = std::filesystem::path(trace).parent_path() / name;
      std::error_code error;
      if (std::filesystem::exists(beside, error)) throughputs = beside.string();
    }
  }
  if (throughputs.empty()) return std::optional<GavelThroughputs>();
  Result<GavelThroughputs> rates = GavelThroughputs::load(throughputs);
  if (!rates) return forward_error(rates);
  return std::optional<GavelThroughputs>(*std::move(rates));
}

}  // namespace

Result<SimulatedTrace> SimulatedTrace::load(const SimulateOptions& asked,
                                            const SimulatedFleet::Loading& loading,
                                            std::uint32_t devices) {
  if (asked.trace.file.empty() == asked.generated.style.empty()) {
    return input_error({}, "expected either --trace FILE or --generate STYLE");
  }
  SimulatedTrace of;
  const bool mapped = asked.trace.map == SimulateOptions::Flag::kYes;
  if (!asked.generated.style.empty()) {
    Result<Trace> made = generated(asked, devices);
    if (!made) return forward_error(made);
    of.trace = *std::move(made);
    if (mapped) map_trace(of.trace, {}, asked.world.seed);
    return of;
  }
  Result<TracePlace> place = place_of(asked);
  if (!place) return forward_error(place);
  const auto text = asked.files.texts.find(place->path);
  const std::string path = asked.files.path(place->path);
  Result<Trace> trace = text == asked.files.texts.end()
                            ? load_trace(path, place->options)
                            : read_trace(text->second, text->first, place->options);
  if (!trace) return forward_error(trace);
  of.trace = *std::move(trace);
  note_rows(of.trace, path, place->options, loading.notes.notes);
  if (mapped) map_trace(of.trace, {}, asked.world.seed);
  if (!loading.rules.all_at_start && !of.trace.jobs.empty()) {
    of.begin = place->options.from.value_or(of.trace.first_submit());
  }
  Result<std::optional<GavelThroughputs>> rates = load_throughputs(asked, loading.rules, path);
  if (!rates) return forward_error(rates);
  of.throughputs = *std::move(rates);
  return of;
}

}  // namespace orrery
