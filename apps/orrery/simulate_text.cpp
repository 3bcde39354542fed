#include "apps/orrery/simulate_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/csv_text.hpp"
#include "base/field_writer.hpp"
#include "base/text_table.hpp"
#include "base/utf8.hpp"

namespace orrery {
namespace {

TypeTimes held_by(const PolicyRun& run) {
  TypeTimes held;
  for (const JobOutcome& job : run.outcomes) held += job.usage.devices;
  return held;
}

/// Whether a price is published for the type at each site that has it.
bool has_price(const SimulateRequest& request, FleetTypeId type) {
  const ControlFacts& cluster = request.cluster();
  const Topology& topology = cluster.topology();
  return std::all_of(topology.sites().begin(), topology.sites().end(), [&](const SiteFacts& site) {
    if (topology.device_count(site.domain, type) == 0) return true;
    const DeviceCosts* costs = cluster.costs().find(type, site.domain);
    return costs != nullptr && costs->hire.has_value();
  });
}

/// Whether each type of the fleet has a published price.
bool has_prices(const SimulateRequest& request) {
  const std::uint32_t types = request.cluster().topology().type_count();
  for (std::uint32_t t = 0; t < types; ++t) {
    if (!has_price(request, FleetTypeId(t))) return false;
  }
  return true;
}

/// The types that jobs ran on and that have no published price.
std::vector<std::string> unpriced_types(const SimulateRequest& request, const PolicyRun& run) {
  const Topology& topology = request.cluster().topology();
  const TypeTimes held = held_by(run);
  std::vector<std::string> types;
  for (std::uint32_t t = 0; t < topology.type_count(); ++t) {
    const FleetTypeId type(t);
    if (device_hours(held.of(type)) > 0 && !has_price(request, type)) {
      types.push_back(topology.accelerator(type).id);
    }
  }
  return types;
}

Json deadlines_json(const DeadlineFigures& deadlines) {
  return {{"jobs", deadlines.jobs},
          {"met", deadlines.met},
          {"missed", deadlines.missed},
          {"mean_late_s", deadlines.mean_late_s},
          {"max_late_s", deadlines.max_late_s}};
}

Json summary_json(const SimulateRequest& request, const PolicyRun& run) {
  const SimulationSummary& s = run.summary;
  const std::vector<std::string> unpriced = unpriced_types(request, run);
  Json json = {{"policy", run.report.name},
               {"information", word_of(run.report.information)},
               {"jobs", request.trace().jobs.size()},
               {"played", s.jobs},
               {"finished", s.finished},
               {"failed", s.failed},
               {"cancelled", s.cancelled},
               {"unfinished", s.unfinished},
               {"oversized", request.jobs().oversized.size()},
               {"skipped_rows", request.trace().skipped.size()},
               {"avg_jct_s", s.avg_jct_s},
               {"avg_wait_s", s.avg_wait_s},
               {"p50_jct_s", s.p50_jct_s},
               {"p99_jct_s", s.p99_jct_s},
               {"makespan_s", s.makespan_s},
               {"utilization", s.utilization},
               {"goodput", s.goodput},
               {"energy_kwh", s.energy_kwh},
               {"cost_usd", unpriced.empty() ? Json(s.cost_usd) : Json()},
               {"co2_kg", s.co2_kg},
               {"fleet_energy_kwh", s.fleet.energy_kwh},
               {"fleet_cost_usd", has_prices(request) ? Json(s.fleet.cost_usd) : Json()},
               {"preemptions", s.preemptions},
               {"faults", s.faults},
               {"corrupt", s.corrupt},
               {"restored_from_storage", s.recoveries.from_storage},
               {"restored_from_peers", s.recoveries.from_peers},
               {"restarts_on_ready_nodes", s.recoveries.on_ready_nodes},
               {"inputs", s.inputs},
               {"events", s.events},
               {"passes", s.passes.incremental + s.passes.full},
               {"wall_s", run.report.summary.wall_s},
               {"history_hash", run.report.summary.history_hash}};
  if (!unpriced.empty()) json["unpriced"] = unpriced;
  if (s.deadlines.jobs > 0) json["deadlines"] = deadlines_json(s.deadlines);
  if (!run.story.empty()) json["story"] = run.story;
  const TypeTimes held = held_by(run);
  const Topology& topology = request.cluster().topology();
  Json& by_type = json["accelerator_hours_by_type"];
  for (std::uint32_t t = 0; t < topology.type_count(); ++t) {
    const FleetTypeId type(t);
    by_type[topology.accelerator(type).id] = device_hours(held.of(type));
  }
  Json& idle = json["device_hours"];
  for (const auto& [word, use] : enum_words(DeviceUse{})) {
    double hours = 0;
    for (const UseHours& type : run.report.use) hours += type[static_cast<std::size_t>(use)];
    idle[std::string(word)] = hours;
  }
  return json;
}

/// A word of a command as a shell takes it.
std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain = "_-+=:,./@%";
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || kPlain.find(c) != kPlain.npos;
  });
  if (plain) return text;
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string time_text(double seconds) { return Duration::from_seconds(seconds).text(); }

std::string deadlines_text(const PolicyRun& run) {
  const DeadlineFigures& deadlines = run.summary.deadlines;
  if (deadlines.jobs == 0) return {};
  std::string text =
      fmt::format("\n{}: {} of {} deadlines met", run.report.name, deadlines.met, deadlines.jobs);
  if (deadlines.missed > 0) {
    text += fmt::format(", {} missed by {} on average and {} at most", deadlines.missed,
                        time_text(deadlines.mean_late_s), time_text(deadlines.max_late_s));
  }
  return text + "\n";
}

std::string seconds_cell(Instant at, Instant from) {
  if (at == Instant::max()) return "";
  return fmt::format("{:.3f}", (at - from).count_seconds());
}

}  // namespace

std::string file_name_of(const std::string& label) {
  std::string name = label;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_') c = '_';
  }
  return name;
}

std::string command_text(const CommandOptions& options, const SimulateOptions& asked) {
  std::string command = "orrery";
  if (!options.catalog_directory.empty()) {
    command += " --catalog " + shell_word(options.catalog_directory);
  }
  command += " simulate";
  const Json usual = to_json(SimulateOptions());
  const Json given = to_json(asked);
  for (const auto& [key, value] : given.items()) {
    if (value == usual[key]) continue;
    std::string option = " --" + key;
    std::replace(option.begin(), option.end(), '_', '-');
    const bool flag = value == word_of(SimulateOptions::Flag::kYes);
    for (const Json& each : value.is_array() ? value : Json::array({value})) {
      command += option;
      if (!flag)
        command += " " + shell_word(each.is_string() ? each.get<std::string>() : each.dump());
    }
  }
  return command;
}

Json simulate_json(const SimulateRequest& request, std::span<const PolicyRun> runs) {
  Json policies = Json::array();
  for (const PolicyRun& run : runs) policies.push_back(summary_json(request, run));
  Json json = {{"policies", std::move(policies)},
               {"rules", request.rules().name},
               {"fleet", request.cluster().topology().name()},
               {"accelerators", request.cluster().topology().device_count()},
               {"assumptions", request.assumptions()},
               {"notes", request.notes()}};
  return json;
}

std::string simulate_text(const SimulateRequest& request, const SimulateOptions& asked,
                          std::span<const PolicyRun> runs) {
  TextTable table({{"policy"},
                   {"told"},
                   {"finished", Align::kRight},
                   {"mean JCT", Align::kRight},
                   {"p50", Align::kRight},
                   {"p99", Align::kRight},
                   {"mean wait", Align::kRight},
                   {"makespan", Align::kRight},
                   {"in use", Align::kRight},
                   {"goodput", Align::kRight},
                   {"MWh", Align::kRight},
                   {"cost", Align::kRight},
                   {"preempted", Align::kRight},
                   {"faults", Align::kRight},
                   {"ran in", Align::kRight}});
  for (const PolicyRun& run : runs) {
    const SimulationSummary& s = run.summary;
    table.add({run.report.name, std::string(word_of(run.report.information)),
               fmt::format("{}/{}", s.finished, s.jobs), time_text(s.avg_jct_s),
               time_text(s.p50_jct_s), time_text(s.p99_jct_s), time_text(s.avg_wait_s),
               time_text(s.makespan_s), fmt::format("{:.1f} %", s.utilization * 100),
               fmt::format("{:.1f} %", s.goodput * 100), fmt::format("{:.1f}", s.energy_kwh / 1000),
               unpriced_types(request, run).empty() ? fmt::format("${:.0f}", s.cost_usd) : "-",
               std::to_string(s.preemptions), std::to_string(s.faults),
               fmt::format("{:.2f} s", run.report.summary.wall_s)});
  }
  const std::string& trace = request.trace().name;
  std::string text =
      fmt::format("{} jobs{} on {} accelerators of {}\n\n", request.jobs().jobs.size(),
                  trace.empty() ? "" : " of " + printable(trace, 60),
                  request.cluster().topology().device_count(),
                  request.cluster().topology().name()) +
      table.text();
  for (const PolicyRun& run : runs) {
    if (!run.story.empty()) {
      text += fmt::format("\n{} under {}\n{}", asked.explain, run.report.name, run.story);
    }
  }
  for (const PolicyRun& run : runs) text += deadlines_text(run);
  for (const PolicyRun& run : runs) {
    if (run.summary.corrupt == 0) continue;
    text += fmt::format("\n{}: {} jobs finished with wrong results that nobody noticed\n",
                        run.report.name, run.summary.corrupt);
  }
  std::set<std::string> unpriced;
  for (const PolicyRun& run : runs) {
    for (std::string& type : unpriced_types(request, run)) unpriced.insert(std::move(type));
  }
  if (!unpriced.empty() || !request.notes().empty()) text += "\n";
  if (!unpriced.empty()) {
    text += fmt::format("note: no price is published for {}, so that no cost is told\n",
                        fmt::join(unpriced, ", "));
  }
  for (const std::string& note : request.notes()) text += fmt::format("note: {}\n", note);
  if (!asked.out.empty())
    text += fmt::format("\nresults in {0}: open {0}/report.html\n", asked.out);
  return text;
}

std::string jobs_csv(const SimulateRequest& request, const PolicyRun& run) {
  std::string csv =
      "job,line,state,accelerators,submit_s,start_s,end_s,wait_s,jct_s,device_hours,lost_device_"
      "hours,energy_kwh,cost_usd,co2_kg,preemptions,faults,program_faults,deadline_s,late_s";
  const Topology& topology = request.cluster().topology();
  for (std::uint32_t t = 0; t < topology.type_count(); ++t) {
    csv += ",device_hours_" + csv_text(topology.accelerator(FleetTypeId(t)).id);
  }
  csv += '\n';
  const Instant from = request.begin();
  for (const JobOutcome& job : run.outcomes) {
    const TraceJob& row = request.trace().jobs[job.row];
    const std::optional<Duration> late = lateness_of(job, run.end);
    csv += fmt::format("{},{},{},{},{},{},{},{},{},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{},{},{}",
                       csv_text(row.name), row.line, word_of(job.phase), job.devices,
                       seconds_cell(job.submit, from), seconds_cell(job.start, from),
                       seconds_cell(job.end, from),
                       job.start == Instant::max() ? "" : seconds_cell(job.start, job.submit),
                       seconds_cell(job.end, job.submit), device_hours(job.usage.devices.total()),
                       device_hours(job.usage.lost), job.usage.joules / 3.6e6, job.usage.dollars,
                       job.usage.co2_grams / 1000, job.usage.preemptions, job.usage.faults,
                       job.usage.program_faults);
    csv += fmt::format(",{},{}", job.deadline ? seconds_cell(*job.deadline, from) : "",
                       late ? fmt::format("{:.3f}", late->count_seconds()) : "");
    for (std::uint32_t t = 0; t < topology.type_count(); ++t) {
      csv += fmt::format(",{:.4f}", device_hours(job.usage.devices.of(FleetTypeId(t))));
    }
    csv += '\n';
  }
  return csv;
}

ReportData report_data(const SimulateRequest& request, const SimulateOptions& asked,
                       std::span<const PolicyRun> runs) {
  ReportData data;
  const Topology& topology = request.cluster().topology();
  data.title = "Simulation of " + topology.name();
  data.fleet = fmt::format("{}: {} accelerators in {} nodes", topology.name(),
                           topology.device_count(), topology.node_count());
  data.trace = fmt::format("{}: {} jobs",
                           asked.trace.empty() ? "made up like " + asked.generate : asked.trace,
                           request.trace().jobs.size());
  data.from = request.begin();
  data.to = request.begin();
  data.time = request.dated() ? TimeAxis::kCalendar : TimeAxis::kElapsed;
  data.seed = asked.seed;
  data.failures = asked.failures == "none" ? "" : asked.failures;
  data.notes = request.notes();
  for (std::uint32_t t = 0; t < topology.type_count(); ++t) {
    data.types.push_back(topology.accelerator(FleetTypeId(t)).id);
  }
  for (const PolicyRun& run : runs) {
    data.policies.push_back(run.report);
    if (!run.report.samples.at.empty()) {
      data.to = std::max(data.to, run.report.samples.at.back());
    }
  }
  return data;
}

}  // namespace orrery
