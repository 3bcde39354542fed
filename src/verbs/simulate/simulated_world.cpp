#include "verbs/simulate/simulated_world.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/format/gzip.hpp"
#include "base/text/utf8.hpp"
#include "twin/faults/failure_file.hpp"
#include "twin/series_csv.hpp"
#include "twin/world/arrivals.hpp"
#include "verbs/option_text.hpp"

namespace orrery {
namespace {

constexpr std::size_t kSeriesBytesMax = std::size_t{64} << 20;

Result<std::string> read_maybe_gzip(const std::string& path) {
  Result<std::string> bytes = read_file(path, kSeriesBytesMax);
  if (!bytes || !is_gzip(*bytes)) return bytes;
  return gunzip(*bytes, kSeriesBytesMax);
}

/// Repeats a series over the run: hours of a trace with dates are those of the series, or the same
/// of another of its periods.
template <class Value>
Result<StepSeries<Value>> played(const CsvSeries<Value>& series, std::string_view option,
                                 const SimulatedWorld::Loading& loading, Instant until) {
  const Instant begin = loading.trace.begin;
  std::vector<std::string>& notes = loading.of.notes.notes;
  const Instant first = series.steps.front().from;
  if (!loading.trace.dated()) {
    notes.push_back(
        fmt::format("--{}: the trace has no dates; the series starts at its first row, {}", option,
                    first.text()));
  } else if (begin < first || begin >= first + series.period) {
    notes.push_back(
        fmt::format("--{}: the series starts at {} and does not cover {}; it repeats every {}",
                    option, first.text(), begin.text(), series.period.text()));
  }
  constexpr Duration kCentury = Duration::hours(24) * 36'525;
  const std::size_t periods = std::max<std::size_t>((kSeriesStepsMax - 1) / series.steps.size(), 1);
  Duration length = std::min(series.period * static_cast<std::int64_t>(periods), kCentury);
  if (until != Instant::max()) {
    length = std::max(until - begin, Duration::seconds(1));
  } else if (length < kCentury) {
    notes.push_back(
        fmt::format("--{}: the series is too dense and is used for {} only; after that its last "
                    "row applies (--until ends the run earlier)",
                    option, length.text()));
  }
  return repeated(series,
                  {.from = loading.trace.dated() ? begin : first, .at = begin, .length = length});
}

/// Jobs of a trace know their tenants by number.
bool same_tenants(const TenantTree& a, const TenantTree& b) {
  if (a.size() != b.size()) return false;
  for (std::uint32_t t = 0; t < a.size(); ++t) {
    if (a.path(TenantId(t)) != b.path(TenantId(t))) return false;
  }
  return true;
}

}  // namespace

Result<std::optional<FailureSpec>> failures_asked_for(const SimulateOptions& asked,
                                                      const Catalog& catalog, SpecFiles& files) {
  const std::string& name = asked.world.failures;
  if (name == "none") return std::optional<FailureSpec>();
  if (is_file_name(name)) {
    Result<Document> document = files.keep(name);
    if (!document) return forward_error(document);
    Result<FailureSpec> spec = read_failure_spec(*document, catalog);
    if (!spec) return forward_error(spec);
    return std::optional<FailureSpec>(*std::move(spec));
  }
  Result<const FailureSpec*> known = catalog.require<FailureSpec>(name);
  if (!known) return wrong("failures", known.error().message);
  return std::optional<FailureSpec>(**known);
}

Status SimulatedWorld::load_series(const SimulateOptions& asked, const Loading& loading) {
  if (!asked.world.prices.empty()) {
    Result<std::string> text = read_maybe_gzip(asked.files.path(asked.world.prices));
    if (!text) return forward_error(text);
    const auto series = read_price_series(*text, asked.world.prices);
    if (!series) return tl::unexpected(series.error());
    auto steps = played(*series, "prices", loading, until);
    if (!steps) return forward_error(steps);
    electricity = *std::move(steps);
  }
  if (!asked.world.carbon.empty()) {
    Result<std::string> text = read_maybe_gzip(asked.files.path(asked.world.carbon));
    if (!text) return forward_error(text);
    const auto series = read_carbon_series(*text, asked.world.carbon);
    if (!series) return tl::unexpected(series.error());
    auto steps = played(*series, "carbon", loading, until);
    if (!steps) return forward_error(steps);
    carbon = *std::move(steps);
  }
  return {};
}

// "mi300x:180 days:90 days,h100:never"
Status SimulatedWorld::load_arrivals(const std::string& list, const Loading& loading) {
  if (list.empty()) return {};
  std::vector<Delivery> deliveries;
  for (const std::string& piece : pieces(list)) {
    const std::size_t colon = std::min(piece.find(':'), piece.size());
    const std::string name = piece.substr(0, colon);
    const Result<const Accelerator*> known = loading.fleet.catalog().require<Accelerator>(name);
    if (!known) return wrong("arrivals", known.error().message);
    const std::optional<FleetTypeId> type = loading.fleet.topology().find_type((*known)->id);
    if (!type) return wrong("arrivals", fmt::format("no {} in this fleet", (*known)->id));
    Delivery& delivery = deliveries.emplace_back(Delivery{*type, Duration::max(), {}});
    const std::string times = piece.substr(std::min(colon + 1, piece.size()));
    if (times == "never") continue;
    const std::size_t second = std::min(times.find(':'), times.size());
    Result<Seconds> after = quantity_option<Seconds>("arrivals", times.substr(0, second));
    if (!after) return forward_error(after);
    delivery.after = Duration::from_seconds(after->value());
    if (second == times.size()) continue;
    Result<Seconds> over = quantity_option<Seconds>("arrivals", times.substr(second + 1));
    if (!over) return forward_error(over);
    delivery.over = Duration::from_seconds(over->value());
  }
  arrivals = arrivals_of(loading.fleet.topology(), deliveries, loading.trace.begin);
  return {};
}

Status SimulatedWorld::load_events(const std::string& name, const Loading& loading) {
  if (name.empty()) return {};
  SpecFiles& files = loading.of.files;
  const Topology& topology = loading.fleet.topology();
  Result<Document> document = files.keep(name);
  if (!document) return forward_error(document);
  const auto tenants = [&](const std::string& file) -> Result<std::string> {
    Result<Document> figures = files.keep(file);
    if (!figures) return forward_error(figures);
    Result<TenantsSpec> read = read_tenants_spec(*figures);
    if (!read) return forward_error(read);
    Result<TenantTree> tree = build_tenant_tree(*read, topology);
    if (!tree) return forward_error(tree);
    if (!same_tenants(*tree, loading.fleet.cluster().tenants())) {
      return input_error({file, 1, 1}, "expected the tenants of the simulation, in their order");
    }
    return files.texts.at(file);
  };
  Result<PlannedEvents> read =
      read_planned_events(*document, {topology, loading.trace.begin, tenants});
  if (!read) return forward_error(read);
  planned = *std::move(read);
  const std::string of = planned.name.empty() ? name : printable(planned.name, 60);
  loading.of.notes.notes.push_back(fmt::format("events of {}: {} operator actions, {} faults", of,
                                               planned.commands.size(), planned.faults.size()));
  return {};
}

Status SimulatedWorld::load(const SimulateOptions& asked, const Loading& loading) {
  spares = asked.world.spares;
  if (!asked.world.until.empty()) {
    Result<Instant> at = parse_trace_time(asked.world.until);
    if (!at) return wrong("until", at.error().message);
    until = *at;
  }
  if (Status status = load_series(asked, loading); !status) return status;
  if (Status status = load_arrivals(asked.world.arrivals, loading); !status) return status;
  return load_events(asked.world.events, loading);
}

}  // namespace orrery
