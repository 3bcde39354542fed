#include "twin/figures/html_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/quantity.hpp"
#include "base/text/quantity_text.hpp"
#include "report/page/html_page.hpp"
#include "report/svg/svg_canvas.hpp"
#include "twin/figures/policy_figures.hpp"

namespace orrery {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kJoulesPerKwh = 3.6e6;

std::string fact(std::string_view name, std::string_view text) {
  if (text.empty()) return {};
  return fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, escaped_xml(text));
}

std::string window_text(const ReportData& data) {
  std::string length = print(Seconds((data.to - data.from).count_seconds()));
  if (data.time == TimeAxis::kElapsed) return length;
  return fmt::format("{} to {} ({})", data.from.text(), data.to.text(), length);
}

std::string head_html(const ReportData& data) {
  std::string html = "<dl class=\"facts\">\n";
  html += fact("Fleet", data.fleet);
  html += fact("Trace", data.trace);
  html += fact("Window", window_text(data));
  html += fact("Failures", data.failures.empty() ? "none injected" : data.failures);
  html += fact("Measured", data.measured);
  html += fact("Seed", std::to_string(data.seed));
  if (!data.command.empty()) {
    html += "<dt>Command</dt><dd><code>" + escaped_xml(data.command) + "</code></dd>\n";
  }
  for (const std::string& note : data.notes) html += fact("Note", note);
  return html + "</dl>\n";
}

enum class Better : std::uint8_t { kLess, kMore, kNeither };

/// A column of the comparison: a figure of each policy and how it reads beside the largest of them.
struct Column {
  std::string title;
  Better better;
  double (*value)(const PolicySummary&);
  std::string (*text)(double value, double largest);
};

// Formats all values of a column in one unit.
std::string seconds_text(double s, double largest) {
  if (largest >= 30 * 86400.0) return fmt::format("{:.4g} d", s / 86400);
  if (largest >= 2 * 3600.0) return fmt::format("{:.4g} h", s / 3600);
  if (largest >= 120) return fmt::format("{:.4g} min", s / 60);
  return fmt::format("{:.4g} s", s);
}
std::string carbon_text(double kg, double largest) {
  if (largest >= 1e6) return fmt::format("{:.4g} kt", kg / 1e6);
  return largest >= 1e3 ? fmt::format("{:.4g} t", kg / 1e3) : fmt::format("{:.4g} kg", kg);
}
std::string share_text(double share, double /*largest*/) {
  return fmt::format("{:.2f} %", share * 100);
}
std::string energy_text(double kwh, double /*largest*/) {
  return print(Joules(kwh * kJoulesPerKwh));
}
std::string money_text(double usd, double /*largest*/) { return print(Dollars(usd)); }
std::string count_text(double count, double /*largest*/) { return print_count(count); }

std::vector<Column> outcome_columns() {
  using S = PolicySummary;
  return {
      {"avg JCT", Better::kLess, [](const S& s) { return s.avg_jct_s; }, seconds_text},
      {"median JCT", Better::kLess, [](const S& s) { return s.p50_jct_s; }, seconds_text},
      {"99 % JCT", Better::kLess, [](const S& s) { return s.p99_jct_s; }, seconds_text},
      {"avg queueing", Better::kLess, [](const S& s) { return s.avg_queueing_s; }, seconds_text},
      {"99 % queueing", Better::kLess, [](const S& s) { return s.p99_queueing_s; }, seconds_text},
      {"avg time to first start", Better::kLess, [](const S& s) { return s.avg_wait_s; },
       seconds_text},
      {"makespan", Better::kLess, [](const S& s) { return s.makespan_s; }, seconds_text},
      {"utilization", Better::kMore, [](const S& s) { return s.utilization; }, share_text},
      {"goodput", Better::kMore, [](const S& s) { return s.goodput; }, share_text},
      {"energy", Better::kLess, [](const S& s) { return s.energy_kwh; }, energy_text},
      {"cost", Better::kLess, [](const S& s) { return s.cost_usd.value_or(kNone); }, money_text},
      {"CO2", Better::kLess, [](const S& s) { return s.co2_kg.value_or(kNone); }, carbon_text}};
}

template <std::uint64_t PolicySummary::* Member>
double count(const PolicySummary& summary) {
  return static_cast<double>(summary.*Member);
}

std::vector<Column> run_columns() {
  using S = PolicySummary;
  return {{"jobs", Better::kNeither, count<&S::jobs>, count_text},
          {"preemptions", Better::kLess, count<&S::preemptions>, count_text},
          {"faults", Better::kNeither, count<&S::faults>, count_text},
          {"corrupt results", Better::kLess, count<&S::corrupt>, count_text},
          {"can never run", Better::kLess, count<&S::never>, count_text},
          {"too large", Better::kNeither, count<&S::oversized>, count_text},
          {"events", Better::kNeither, count<&S::events>, count_text},
          {"wall time", Better::kNeither, [](const S& s) { return s.wall_s; }, seconds_text}};
}

enum class Field : std::uint8_t { kAll, kWithoutOracles };

// The best figure of the column; none when all are equal, as then none is best.
std::optional<double> best_of(const ReportData& data, const Column& column, Field field) {
  std::optional<double> best;
  bool differ = false;
  for (const PolicyReport& policy : data.policies) {
    if (field == Field::kWithoutOracles && policy.information == Information::kOracle) continue;
    const double value = column.value(policy.summary);
    if (!std::isfinite(value)) continue;
    differ = differ || (best && value != *best);
    const bool better = !best || (column.better == Better::kLess ? value < *best : value > *best);
    if (better) best = value;
  }
  return differ && column.better != Better::kNeither ? best : std::nullopt;
}

double largest_of(const ReportData& data, const Column& column) {
  double largest = 0;
  for (const PolicyReport& policy : data.policies) {
    const double value = column.value(policy.summary);
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  return largest;
}

Cell cell_of(const ReportData& data, const Column& column, const PolicyReport& policy) {
  const double value = column.value(policy.summary);
  if (!std::isfinite(value)) return {"-"};
  std::string text = column.text(value, largest_of(data, column));
  if (value == best_of(data, column, Field::kAll)) return {std::move(text), CellMark::kBest};
  const bool kin = policy.information != Information::kOracle &&
                   value == best_of(data, column, Field::kWithoutOracles);
  return {std::move(text), kin ? CellMark::kBestOfKin : CellMark::kNone};
}

std::vector<TextTable::Column> titles_of(const std::vector<Column>& columns) {
  std::vector<TextTable::Column> titles = {{"policy"}, {"known run times"}};
  for (const Column& column : columns) titles.push_back({column.title, Align::kRight});
  return titles;
}

std::string_view knowledge(Information information) {
  switch (information) {
    case Information::kOracle:
      return "true (oracle)";
    case Information::kEstimate:
      return "estimated (estimate)";
    case Information::kBlind:
      return "none (blind)";
  }
  return "";
}

std::vector<Cell> row_of(const ReportData& data, const std::vector<Column>& columns,
                         const PolicyReport& policy) {
  std::vector<Cell> cells = {{policy.name}, {std::string(knowledge(policy.information))}};
  for (const Column& column : columns) cells.push_back(cell_of(data, column, policy));
  return cells;
}

// Drops the columns that no policy has a figure for.
std::vector<Column> filled(std::vector<Column> columns, const ReportData& data) {
  std::erase_if(columns, [&](const Column& column) {
    return std::ranges::none_of(data.policies, [&](const PolicyReport& policy) {
      return std::isfinite(column.value(policy.summary));
    });
  });
  return columns;
}

std::string comparison_html(const ReportData& data) {
  const std::vector<Column> outcome = filled(outcome_columns(), data);
  const std::vector<Column> run = run_columns();
  HtmlTable outcomes(titles_of(outcome));
  std::vector<TextTable::Column> run_titles = titles_of(run);
  run_titles.push_back({"history hash"});
  HtmlTable runs(std::move(run_titles));
  for (const PolicyReport& policy : data.policies) {
    outcomes.add(row_of(data, outcome, policy));
    std::vector<Cell> cells = row_of(data, run, policy);
    cells.push_back({policy.summary.history_hash, CellMark::kCode});
    runs.add(cells);
  }
  std::string html = "<h2>Comparison of policies</h2>\n" + outcomes.html();
  if (data.policies.size() > 1) {
    html +=
        "<p class=\"note\"><span class=\"best\">Best</span> value of the column; <span "
        "class=\"kin\">best</span> value among policies without true run times, if an oracle has "
        "the best value. JCT: job completion time, from submission to completion. Queueing: time "
        "in which a job was ready to run but did not run, before its first start and after each "
        "stop, without the time in which it was held or waited for another job.</p>\n";
  }
  html += figures_html(comparison_figures(data));
  return html + "<h3>Simulation runs</h3>\n" + runs.html();
}

}  // namespace

std::string html_report(const ReportData& data) {
  std::string body = head_html(data);
  if (data.policies.empty()) {
    body += "<p>No policy was run.</p>\n";
  } else {
    body += comparison_html(data);
  }
  std::vector<Tab> tabs;
  tabs.reserve(data.policies.size());
  for (const PolicyReport& policy : data.policies) {
    tabs.push_back({policy.name, policy_html(data, policy)});
  }
  return page_html({.title = data.title, .body_html = body + tabs_html(tabs)});
}

}  // namespace orrery
