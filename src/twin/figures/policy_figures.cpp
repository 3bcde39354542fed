#include "twin/figures/policy_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "base/quantity.hpp"
#include "base/text/quantity_text.hpp"
#include "report/plot/plot.hpp"
#include "report/svg/svg_canvas.hpp"
#include "twin/figures/use_figures.hpp"

namespace orrery {
namespace {

Axis waiting_axis(const std::string& title) {
  return {.title = title, .unit = AxisUnit::kDuration, .scale = AxisScale::kLog};
}

Axis share_axis(const std::string& title) { return {.title = title, .unit = AxisUnit::kShare}; }

std::string duration(Duration value) { return print(Seconds(value.count_seconds())); }

/// Waits below a second do not matter to a job, and zero has no logarithm.
std::vector<double> at_least_a_second(std::vector<double> values) {
  for (double& value : values) value = std::max(value, 1.0);
  return values;
}

enum class Clock : std::uint8_t { kQueueing, kCompletion };

const std::vector<double>& times_of(const JobClass& jobs, Clock clock) {
  return clock == Clock::kQueueing ? jobs.queueing_s : jobs.jct_s;
}

// Times of the jobs of all classes, ascending.
std::vector<double> all_times(const PolicyReport& policy, Clock clock) {
  std::vector<double> all;
  for (const JobClass& jobs : policy.classes) {
    const auto& times = times_of(jobs, clock);
    const auto sorted = static_cast<std::ptrdiff_t>(all.size());
    all.insert(all.end(), times.begin(), times.end());
    std::inplace_merge(all.begin(), all.begin() + sorted, all.end());
  }
  return all;
}

std::string cdf_html(std::vector<Line> lines, Clock clock) {
  return plot_html(LinePlot{
      .x = waiting_axis(clock == Clock::kQueueing ? "queueing time" : "job completion time"),
      .y = share_axis("share of jobs"),
      .lines = std::move(lines)});
}

std::vector<Line> lines_by_policy(const ReportData& data, Clock clock) {
  std::vector<Line> lines;
  lines.reserve(data.policies.size());
  for (const PolicyReport& policy : data.policies) {
    lines.push_back(cdf_line(policy.name, at_least_a_second(all_times(policy, clock))));
  }
  return lines;
}

std::vector<Line> lines_by_class(const PolicyReport& policy, Clock clock) {
  std::vector<Line> lines;
  lines.reserve(policy.classes.size());
  for (const JobClass& jobs : policy.classes) {
    lines.push_back(cdf_line(jobs.name, at_least_a_second(times_of(jobs, clock))));
  }
  return lines;
}

constexpr std::string_view kFloorNote =
    "Time in which a job was ready to run but did not run, before its first start and after each "
    "stop. Logarithmic axis; less than 1 s is drawn at 1 s.";

void add_distributions(std::vector<Figure>& figures, const PolicyReport& policy) {
  if (policy.classes.empty()) return;
  figures.push_back({.title = "Queueing time by class of job",
                     .note = std::string(kFloorNote),
                     .html = cdf_html(lines_by_class(policy, Clock::kQueueing), Clock::kQueueing)});
  figures.push_back(
      {.title = "Completion time by class of job",
       .note = "Time from submission to completion, logarithmic axis.",
       .html = cdf_html(lines_by_class(policy, Clock::kCompletion), Clock::kCompletion)});
}

constexpr std::size_t kTypesMax = 7;

// The types with the most devices in use, and the sum of the others.
std::vector<StackLayer> busy_layers(const ReportData& data, const FleetSamples& samples) {
  std::vector<std::size_t> order(std::min(samples.busy.size(), data.types.size()));
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto total = [&](std::size_t type) {
    double sum = 0;
    for (const double devices : samples.busy[type]) sum += std::isfinite(devices) ? devices : 0;
    return sum;
  };
  std::ranges::stable_sort(order, std::greater(), total);
  std::vector<StackLayer> layers;
  layers.reserve(kTypesMax + 2);
  for (const std::size_t type : order) {
    if (samples.busy[type].size() != samples.at.size()) continue;
    if (layers.size() < kTypesMax) {
      layers.push_back({.name = data.types[type], .values = samples.busy[type]});
      continue;
    }
    StackLayer& others = layers.back();
    others.name = "other types";
    for (std::size_t i = 0; i < others.values.size(); ++i)
      others.values[i] += samples.busy[type][i];
  }
  return layers;
}

void add_devices(std::vector<Figure>& figures, const ReportData& data, const PolicyReport& policy) {
  const FleetSamples& samples = policy.samples;
  std::vector<StackLayer> layers = busy_layers(data, samples);
  if (!samples.free.empty()) layers.push_back({"free", samples.free, Tone::kMuted});
  if (!samples.down.empty()) layers.push_back({"down", samples.down, Tone::kAlarm});
  if (layers.empty()) return;
  const ReportClock clock = clock_of(data);
  figures.push_back({.title = "Devices in use",
                     .note = "Devices in use by type, with free and failed devices on top.",
                     .html = plot_html(StackedPlot{.x = clock.axis,
                                                   .y = {.title = "devices"},
                                                   .at = clock.at(samples.at),
                                                   .layers = std::move(layers),
                                                   .span = clock.span})});
}

struct Course {
  std::string title;
  Axis axis;
  const std::vector<double>& values;
  const std::vector<double>* cap = nullptr;  ///< what the values may not exceed
};

void add_course(std::vector<Figure>& figures, const ReportData& data, const PolicyReport& policy,
                const Course& course) {
  if (course.values.empty()) return;
  const ReportClock clock = clock_of(data);
  std::vector<Line> lines = {
      {.name = course.title, .x = clock.at(policy.samples.at), .y = course.values}};
  if (course.cap != nullptr && !course.cap->empty()) {
    lines.push_back({.name = "cap", .x = clock.at(policy.samples.at), .y = *course.cap});
  }
  figures.push_back(
      {.title = course.title,
       .html = plot_html(LinePlot{
           .x = clock.axis, .y = course.axis, .lines = std::move(lines), .span = clock.span})});
}

void add_courses(std::vector<Figure>& figures, const ReportData& data, const PolicyReport& policy) {
  const FleetSamples& samples = policy.samples;
  add_course(figures, data, policy, {"Queue", {.title = "jobs waiting"}, samples.queue});
  add_course(figures, data, policy,
             {"Power of the nodes",
              {.title = "power", .unit = AxisUnit::kPhysical, .symbol = "W"},
              samples.power_w,
              &samples.cap_w});
  add_course(figures, data, policy,
             {"Price of electricity",
              {.title = "price per MWh", .unit = AxisUnit::kMoney},
              samples.usd_per_mwh});
  add_course(figures, data, policy,
             {"Carbon of electricity",
              {.title = "carbon intensity", .symbol = "g/kWh"},
              samples.g_per_kwh});
}

using ByComponent = std::map<std::string, std::vector<const FailureRecord*>>;

ByComponent by_component(const PolicyReport& policy) {
  ByComponent groups;
  for (const FailureRecord& failure : policy.failures) {
    groups[failure.component].push_back(&failure);
  }
  return groups;
}

void add_failures(std::vector<Figure>& figures, const ReportData& data,
                  const PolicyReport& policy) {
  if (policy.failures.empty()) return;
  const ReportClock clock = clock_of(data);
  std::vector<Dots> groups;
  for (const auto& [component, failures] : by_component(policy)) {
    Dots dots{.name = component};
    for (const FailureRecord* failure : failures) {
      dots.x.push_back(clock.at(failure->at));
      const double back = (failure->detection + failure->repair).count_seconds();
      dots.y.push_back(std::max(back, 1.0));
    }
    groups.push_back(std::move(dots));
  }
  figures.push_back({.title = "Failures",
                     .note = "Each dot is a failure; its height is the time from failure to return "
                             "to service, logarithmic.",
                     .html = plot_html(ScatterPlot{.x = clock.axis,
                                                   .y = waiting_axis("time to return to service"),
                                                   .groups = std::move(groups),
                                                   .span = clock.span})});
}

// The value that this percentage of the values does not exceed. Precondition: not empty.
Duration percentile(std::vector<Duration> values, std::size_t percent) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) * percent / 100);
  std::ranges::nth_element(values, at);
  return *at;
}

std::string failure_table(const PolicyReport& policy) {
  if (policy.failures.empty()) return {};
  HtmlTable table({{"component"},
                   {"failures", Align::kRight},
                   {"detection, median", Align::kRight},
                   {"detection, 95th", Align::kRight},
                   {"repair, median", Align::kRight},
                   {"repair, 95th", Align::kRight},
                   {"affected jobs", Align::kRight}});
  for (const auto& [component, failures] : by_component(policy)) {
    std::vector<Duration> detection;
    std::vector<Duration> repair;
    double jobs = 0;
    for (const FailureRecord* failure : failures) {
      detection.push_back(failure->detection);
      repair.push_back(failure->repair);
      jobs += failure->jobs_hit;
    }
    table.add({{component},
               {print_count(static_cast<double>(failures.size()))},
               {duration(percentile(detection, 50))},
               {duration(percentile(detection, 95))},
               {duration(percentile(repair, 50))},
               {duration(percentile(repair, 95))},
               {print_count(jobs)}});
  }
  return "<h3>Failures by component</h3>\n" + table.html();
}

/// Names of places without the path that all of them share: "rack-2/n3" of "site/hall/rack-2/n3".
std::vector<std::string> without_shared_path(std::vector<std::string> names) {
  if (names.size() < 2) return names;
  std::size_t shared = names.front().rfind('/') + 1;  // 0 where there is none
  for (const std::string& name : names) {
    while (shared > 0 && name.compare(0, shared, names.front(), 0, shared) != 0) {
      shared = shared < 2 ? 0 : names.front().rfind('/', shared - 2) + 1;
    }
  }
  for (std::string& name : names) name.erase(0, shared);
  return names;
}

struct Heat {
  std::string title;
  std::string note;
  std::string value;
  const RowMap& map;
};

void add_heat(std::vector<Figure>& figures, const ReportData& data, const Heat& heat) {
  if (heat.map.shares.empty()) return;
  const ReportClock clock = clock_of(data);
  figures.push_back({.title = heat.title,
                     .note = heat.note,
                     .html = plot_html(HeatMap{.x = clock.axis,
                                               .span = clock.span,
                                               .value = heat.value,
                                               .columns = heat.map.columns,
                                               .rows = without_shared_path(heat.map.rows),
                                               .cells = heat.map.shares})});
}

void add_heats(std::vector<Figure>& figures, const ReportData& data, const PolicyReport& policy) {
  add_heat(figures, data,
           {"Use by place", "Mean share of the devices that are allocated to jobs.", "share in use",
            policy.in_use});
  add_heat(figures, data,
           {"Power by place",
            "Planned power as a share of the limit of each rack, or of the rated power of its "
            "nodes if it has no limit.",
            "share of the limit", policy.power});
  add_heat(figures, data,
           {"Fragmentation",
            "Share of the free devices that are in partly used nodes, which a gang of whole nodes "
            "cannot use.",
            "stranded share", policy.fragmentation});
}

void add_gantt(std::vector<Figure>& figures, const ReportData& data, const PolicyReport& policy) {
  const GanttChart& chart = policy.gantt;
  if (chart.bars.empty()) return;
  const ReportClock clock = clock_of(data);
  GanttPlot plot{.x = clock.axis,
                 .span = clock.span,
                 .value = "allocated devices",
                 .rows = {},
                 .groups = chart.groups,
                 .bars = {},
                 .fault = "ended by a fault"};
  std::vector<std::string> places;
  places.reserve(chart.rows.size());
  for (const GanttRow& row : chart.rows) places.push_back(row.name);
  places = without_shared_path(std::move(places));
  for (std::size_t r = 0; r < places.size(); ++r) {
    plot.rows.push_back({places[r], static_cast<double>(chart.rows[r].devices)});
  }
  for (const GanttBar& bar : chart.bars) {
    plot.bars.push_back({.row = bar.row,
                         .group = bar.group,
                         .from = clock.at(bar.from),
                         .to = clock.at(std::min(bar.to, data.to)),
                         .amount = bar.devices,
                         .label = fmt::format("{}, {} of {} devices", bar.job, bar.devices,
                                              chart.rows[bar.row].devices),
                         .fault = bar.fault});
  }
  std::string note =
      "Each bar shows the devices of one job at a place, coloured by " + chart.grouped_by + ".";
  if (chart.left_out > 0) {
    note += fmt::format(" The {} attempts with the least work are omitted.",
                        print_count(static_cast<double>(chart.left_out)));
  }
  figures.push_back({.title = "Jobs by place", .note = note, .html = plot_html(plot)});
}

// Anchor of the page's section with the course of the i-th of the slowest jobs.
std::string course_id(const ReportData& data, const PolicyReport& policy, std::size_t i) {
  return fmt::format("course-{}-{}", &policy - data.policies.data(), i);
}

std::string courses_html(const ReportData& data, const PolicyReport& policy) {
  std::string html;
  for (std::size_t i = 0; i < policy.slowest.size(); ++i) {
    const SlowJob& job = policy.slowest[i];
    if (job.course.empty()) continue;
    html += fmt::format("<h4 id=\"{}\">{}</h4>\n<ol class=\"course\">", course_id(data, policy, i),
                        escaped_xml(job.id));
    for (const std::string& line : job.course) html += "<li>" + escaped_xml(line) + "</li>";
    html += "</ol>\n";
    if (!job.reason.empty()) {
      html += "<p class=\"note\">Reasons for waiting: " + escaped_xml(job.reason) + ".</p>\n";
    }
  }
  if (html.empty()) return html;
  return "<h3>History of the slowest jobs</h3>\n<p class=\"note\"><code>orrery simulate --explain "
         "JOB</code> prints each reason why a job waited and what would have helped.</p>\n" +
         html;
}

std::string slow_jobs(const ReportData& data, const PolicyReport& policy) {
  if (policy.slowest.empty()) return {};
  HtmlTable table({{"job"},
                   {"tenant"},
                   {"kind"},
                   {"devices", Align::kRight},
                   {"queueing", Align::kRight},
                   {"completion time", Align::kRight},
                   {"reason for waiting"}});
  for (std::size_t i = 0; i < policy.slowest.size(); ++i) {
    const SlowJob& job = policy.slowest[i];
    table.add({{job.id, CellMark::kCode, job.course.empty() ? "" : course_id(data, policy, i)},
               {job.tenant},
               {job.kind},
               {print_count(job.devices)},
               {duration(job.queueing)},
               {duration(job.jct)},
               {job.reason, CellMark::kProse}});
  }
  return "<h3>Slowest jobs</h3>\n" + table.html() + courses_html(data, policy);
}

}  // namespace

std::vector<double> ReportClock::at(std::span<const Instant> times) const {
  std::vector<double> seconds;
  seconds.reserve(times.size());
  for (const Instant time : times) seconds.push_back(at(time));
  return seconds;
}

ReportClock clock_of(const ReportData& data) {
  const bool calendar = data.time == TimeAxis::kCalendar;
  ReportClock clock{.axis = {.title = calendar ? "time" : "time since the start",
                             .unit = calendar ? AxisUnit::kCalendar : AxisUnit::kElapsed},
                    .origin = calendar ? Instant() : data.from};
  clock.span = {clock.at(data.from), clock.at(data.to)};
  return clock;
}

std::vector<Figure> comparison_figures(const ReportData& data) {
  std::vector<Figure> figures = {
      {.title = "Queueing time",
       .note = std::string(kFloorNote),
       .html = cdf_html(lines_by_policy(data, Clock::kQueueing), Clock::kQueueing)},
      {.title = "Completion time",
       .note = "Time from submission to completion, logarithmic axis.",
       .html = cdf_html(lines_by_policy(data, Clock::kCompletion), Clock::kCompletion)}};
  const ReportClock clock = clock_of(data);
  std::vector<Line> queues;
  for (const PolicyReport& policy : data.policies) {
    if (policy.samples.queue.empty()) continue;
    queues.push_back(
        {.name = policy.name, .x = clock.at(policy.samples.at), .y = policy.samples.queue});
  }
  figures.push_back({.title = "Queue",
                     .html = plot_html(LinePlot{.x = clock.axis,
                                                .y = {.title = "jobs waiting"},
                                                .lines = std::move(queues),
                                                .span = clock.span})});
  figures.push_back(use_by_policy(data));
  return figures;
}

std::string policy_html(const ReportData& data, const PolicyReport& policy) {
  std::vector<Figure> figures;
  add_devices(figures, data, policy);
  add_gantt(figures, data, policy);
  add_courses(figures, data, policy);
  add_distributions(figures, policy);
  add_use(figures, data, policy);
  add_failures(figures, data, policy);
  add_heats(figures, data, policy);
  add_tenants(figures, policy);
  return figures_html(figures) + use_table(data, policy) + groups_html(policy) +
         failure_table(policy) + slow_jobs(data, policy);
}

}  // namespace orrery
