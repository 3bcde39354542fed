#include "verbs/simulate/simulate_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <set>

#include "base/format/field_writer.hpp"
#include "base/text/count_text.hpp"
#include "base/text/csv_text.hpp"
#include "base/text/text_table.hpp"
#include "base/text/utf8.hpp"
#include "workload/job_spec.hpp"

namespace orrery {
namespace {

TypeTimes held_by(const PolicyRun& run) {
  TypeTimes held;
  for (const JobOutcome& job : run.outcomes) held += job.usage.devices;
  return held;
}

/// The types that jobs ran on and that have no published price.
std::vector<std::string> unpriced_types(const SimulateRequest& request, const PolicyRun& run) {
  const Topology& topology = request.cluster().topology();
  const TypeTimes held = held_by(run);
  std::vector<std::string> types;
  for (const FleetTypeId type : run.unpriced) {
    if (device_hours(held.of(type)) > 0) types.push_back(topology.accelerator(type).id);
  }
  return types;
}

Json bills_json(const BillFigures& bills) {
  return {{"compared", bills.compared},
          {"not_compared", bills.not_compared},
          {"within_5_percent", bills.within},
          {"error_p50", bills.error_p50},
          {"error_p95", bills.error_p95}};
}

Json deadlines_json(const DeadlineFigures& deadlines) {
  return {{"jobs", deadlines.jobs},
          {"met", deadlines.met},
          {"missed", deadlines.missed},
          {"mean_late_s", deadlines.mean_late_s},
          {"max_late_s", deadlines.max_late_s}};
}

Json groups_json(std::span<const GroupFigures> groups) {
  Json json = Json::array();
  for (const GroupFigures& group : groups) {
    json.push_back({{"name", group.name},
                    {"jobs", group.jobs},
                    {"avg_jct_s", group.avg_jct_s},
                    {"avg_queueing_s", group.avg_queueing_s},
                    {"avg_stretch", group.avg_stretch}});
  }
  return json;
}

Json tenants_json(std::span<const GroupFigures> tenants) {
  Json json = groups_json(tenants);
  for (std::size_t t = 0; t < tenants.size(); ++t) {
    json[t]["finish_time_fairness"] = tenants[t].rho;
    json[t]["dominant_share"] = tenants[t].dominant_share;
  }
  return json;
}

void add_fairness(Json& json, const FairnessFigures& fairness) {
  json["avg_stretch"] = fairness.avg_stretch;
  json["finish_time_fairness"] = fairness.rho;
  json["jain_index"] = fairness.jain;
  json["tenants"] = tenants_json(fairness.tenants);
  json["kinds"] = groups_json(fairness.kinds);
}

Json limits_json(const Topology& topology, std::span<const WatchedLimit> limits) {
  Json json = Json::array();
  for (const WatchedLimit& limit : limits) {
    json.push_back({{"domain", topology.power_name(limit.domain)},
                    {"fullest", limit.fullest},
                    {"above_s", limit.above.count_seconds()}});
  }
  return json;
}

void add_judgement(Json& json, const PolicyRun& run) {
  const SimulationSummary& s = run.summary;
  if (s.bills.compared > 0) json["bills"] = bills_json(s.bills);
  if (s.deadlines.jobs > 0) json["deadlines"] = deadlines_json(s.deadlines);
  add_fairness(json, run.report.fairness);
}

void add_trace(Json& json, const SimulateRequest& request) {
  const Trace& trace = request.trace();
  json["jobs"] = trace.jobs.size();
  json["oversized"] = request.jobs().oversized.size();
  json["skipped_rows"] = trace.skipped.size();
  json["left_out_rows"] =
      std::accumulate(trace.left_out.begin(), trace.left_out.end(), std::size_t{0},
                      [](std::size_t rows, const LeftOutRows& each) { return rows + each.rows; });
}

Json summary_json(const SimulateRequest& request, const PolicyRun& run) {
  const SimulationSummary& s = run.summary;
  const std::vector<std::string> unpriced = unpriced_types(request, run);
  Json json = {{"policy", run.report.name},
               {"information", word_of(run.report.information)},
               {"played", s.jobs},
               {"measured", s.measured},
               {"finished", s.finished},
               {"failed", s.failed},
               {"cancelled", s.cancelled},
               {"unfinished", s.unfinished},
               {"avg_jct_s", s.avg_jct_s},
               {"avg_wait_s", s.avg_wait_s},
               {"avg_queueing_s", s.avg_queueing_s},
               {"p50_queueing_s", s.p50_queueing_s},
               {"p90_queueing_s", s.p90_queueing_s},
               {"p99_queueing_s", s.p99_queueing_s},
               {"p50_jct_s", s.p50_jct_s},
               {"p99_jct_s", s.p99_jct_s},
               {"makespan_s", s.makespan_s},
               {"utilization", s.utilization},
               {"goodput", s.goodput},
               {"energy_kwh", s.energy_kwh},
               {"cost_usd", unpriced.empty() ? Json(s.cost_usd) : Json()},
               {"co2_kg", s.co2_kg},
               {"fleet_energy_kwh", s.fleet.energy_kwh},
               {"fleet_cost_usd", run.unpriced.empty() ? Json(s.fleet.cost_usd) : Json()},
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
  add_trace(json, request);
  add_judgement(json, run);
  if (!run.story.empty()) json["story"] = run.story;
  const TypeTimes held = held_by(run);
  const Topology& topology = request.cluster().topology();
  if (!run.limits.empty()) json["power_limits"] = limits_json(topology, run.limits);
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

/// A row a policy.
std::string policies_text(const SimulateRequest& request, std::span<const PolicyRun> runs) {
  TextTable table({{"policy"},
                   {"information"},
                   {"finished", Align::kRight},
                   {"mean JCT", Align::kRight},
                   {"p50", Align::kRight},
                   {"p99", Align::kRight},
                   {"mean queueing", Align::kRight},
                   {"p99 queueing", Align::kRight},
                   {"mean time to start", Align::kRight},
                   {"makespan", Align::kRight},
                   {"in use", Align::kRight},
                   {"goodput", Align::kRight},
                   {"MWh", Align::kRight},
                   {"cost", Align::kRight},
                   {"preempted", Align::kRight},
                   {"faults", Align::kRight},
                   {"wall time", Align::kRight}});
  for (const PolicyRun& run : runs) {
    const SimulationSummary& s = run.summary;
    table.add({run.report.name, std::string(word_of(run.report.information)),
               fmt::format("{}/{}", s.finished, s.measured), time_text(s.avg_jct_s),
               time_text(s.p50_jct_s), time_text(s.p99_jct_s), time_text(s.avg_queueing_s),
               time_text(s.p99_queueing_s), time_text(s.avg_wait_s), time_text(s.makespan_s),
               fmt::format("{:.1f} %", s.utilization * 100),
               fmt::format("{:.1f} %", s.goodput * 100), fmt::format("{:.1f}", s.energy_kwh / 1000),
               unpriced_types(request, run).empty() ? fmt::format("${:.0f}", s.cost_usd) : "-",
               std::to_string(s.preemptions), std::to_string(s.faults),
               fmt::format("{:.2f} s", run.report.summary.wall_s)});
  }
  return table.text();
}

/// Tenants and kinds of all policies, a row each, where there are several.
std::string groups_text(std::span<const PolicyRun> runs) {
  std::string text;
  TextTable tenants({{"policy"},
                     {"tenant"},
                     {"jobs", Align::kRight},
                     {"mean JCT", Align::kRight},
                     {"mean queueing", Align::kRight},
                     {"stretch", Align::kRight},
                     {"finish-time fairness", Align::kRight},
                     {"dominant share", Align::kRight}});
  TextTable kinds({{"policy"},
                   {"kind"},
                   {"jobs", Align::kRight},
                   {"mean JCT", Align::kRight},
                   {"mean queueing", Align::kRight},
                   {"stretch", Align::kRight}});
  std::string jain;
  for (const PolicyRun& run : runs) {
    const FairnessFigures& fairness = run.report.fairness;
    for (const GroupFigures& of : fairness.tenants) {
      tenants.add({run.report.name, of.name, std::to_string(of.jobs), time_text(of.avg_jct_s),
                   time_text(of.avg_queueing_s), fmt::format("{:.3g}", of.avg_stretch),
                   fmt::format("{:.3g}", of.rho),
                   fmt::format("{:.1f} %", of.dominant_share * 100)});
    }
    for (const GroupFigures& of : fairness.kinds) {
      kinds.add({run.report.name, of.name, std::to_string(of.jobs), time_text(of.avg_jct_s),
                 time_text(of.avg_queueing_s), fmt::format("{:.3g}", of.avg_stretch)});
    }
    jain += fmt::format("Jain's index of the tenants' fairness under {}: {:.3f}\n", run.report.name,
                        fairness.jain);
  }
  if (runs.front().report.fairness.tenants.size() > 1) text += "\n" + tenants.text() + jain;
  if (runs.front().report.fairness.kinds.size() > 1) text += "\n" + kinds.text();
  return text;
}

/// "64 accelerators (h100:64)", "64 accelerators (fleet lab)".
std::string fleet_text(const SimulateRequest& request, const SimulateOptions& asked) {
  const Topology& topology = request.cluster().topology();
  const std::string number = counted(topology.device_count(), "accelerator");
  if (!asked.machines.accelerators.empty())
    return fmt::format("{} ({})", number, asked.machines.accelerators);
  return fmt::format("{} (fleet {})", number, topology.name());
}

/// Which jobs the figures are of. Precondition: a window was asked for.
std::string measured_text(const SimulateOptions& asked, std::span<const PolicyRun> runs) {
  return fmt::format("{} of {}, submitted in {}, and the device use in that window",
                     counted(runs.front().summary.measured, "job"), runs.front().summary.jobs,
                     asked.results.measure);
}

/// As the trace names it, or the model of the first role that a spec describes.
std::string model_of(const TraceJob& row) {
  if (row.spec == nullptr) return row.model;
  for (const RoleSpec& role : row.spec->roles) {
    if (role.work) return role.work->model;
  }
  return {};
}

std::string times_cells(const SimulateRequest& request, const JobOutcome& job) {
  const TraceJob& row = request.trace().jobs[job.row];
  const Instant from = request.begin();
  return fmt::format("{},{},{},{},{},{},{},{},{}", csv_text(row.name), row.line, word_of(job.phase),
                     job.devices, seconds_cell(job.submit, from), seconds_cell(job.start, from),
                     seconds_cell(job.end, from), seconds_cell(job.start, job.submit),
                     seconds_cell(job.end, job.submit));
}

std::string usage_cells(const PolicyRun& run, const JobOutcome& job) {
  const JobUsage& usage = job.usage;
  const std::string cost =
      is_priced(usage, run.unpriced) ? fmt::format("{:.4f}", usage.dollars) : "";
  return fmt::format(",{:.4f},{:.4f},{:.4f},{},{:.4f},{},{},{}",
                     device_hours(usage.devices.total()), device_hours(usage.lost),
                     usage.joules / 3.6e6, cost, usage.co2_grams / 1000, usage.preemptions,
                     usage.faults, usage.program_faults);
}

std::string description_cells(const SimulateRequest& request, const PolicyRun& run,
                              std::size_t at) {
  const PlayedJob& job = request.jobs().jobs[at];
  const WatchedJob& watched = run.outcomes[at].watched;
  return fmt::format(",{:.3f},{:.3f},{},{},{},{},{}", watched.queued.count_seconds(),
                     (watched.queued - watched.queued_to_start).count_seconds(),
                     csv_text(job.tenant), word_of(job.submission.request.kind),
                     csv_text(model_of(request.trace().jobs[job.row])), watched.nodes,
                     run.outcomes[at].measured ? "yes" : "no");
}

}  // namespace

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
    const bool flag = key == "skip_bad" || key == "map";
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
  const std::string& trace = request.trace().name;
  std::string text =
      fmt::format("{}{} on {}\n\n", counted(request.jobs().jobs.size(), "job"),
                  trace.empty() ? "" : " of " + printable(trace, 60), fleet_text(request, asked)) +
      policies_text(request, runs);
  if (request.measure()) {
    text += fmt::format("\nmeasured: {}\n", measured_text(asked, runs));
  }
  text += groups_text(runs);
  for (const PolicyRun& run : runs) {
    if (!run.story.empty()) {
      text += fmt::format("\n{} under {}\n{}", asked.results.explain, run.report.name, run.story);
    }
  }
  for (const PolicyRun& run : runs) text += deadlines_text(run);
  for (const PolicyRun& run : runs) {
    if (run.summary.corrupt == 0) continue;
    text += fmt::format("\n{}: {} finished with undetected wrong results\n", run.report.name,
                        counted(run.summary.corrupt, "job"));
  }
  std::set<std::string> unpriced;
  for (const PolicyRun& run : runs) {
    for (std::string& type : unpriced_types(request, run)) unpriced.insert(std::move(type));
  }
  if (!unpriced.empty() || !request.notes().empty()) text += "\n";
  if (!unpriced.empty()) {
    text += fmt::format("note: no price is published for {}, so that no cost is shown\n",
                        fmt::join(unpriced, ", "));
  }
  for (const std::string& note : request.notes()) text += fmt::format("note: {}\n", note);
  if (!asked.results.out.empty())
    text += fmt::format("\nresults are in {0}: open {0}/report.html\n", asked.results.out);
  return text;
}

namespace {

/// ",deadline,lateness"; empty cells: it has none, or is not late.
std::string deadline_cells(const SimulateRequest& request, const PolicyRun& run,
                           const JobOutcome& job) {
  const std::optional<Duration> late = lateness_of(job, run.end);
  return fmt::format(",{},{}", job.deadline ? seconds_cell(*job.deadline, request.begin()) : "",
                     late ? fmt::format("{:.3f}", late->count_seconds()) : "");
}

}  // namespace

std::string jobs_csv(const SimulateRequest& request, const PolicyRun& run) {
  std::string csv =
      "job,line,state,accelerators,submit_s,start_s,end_s,wait_s,jct_s,device_hours,lost_device_"
      "hours,energy_kwh,cost_usd,co2_kg,preemptions,faults,program_faults,queueing_s,queueing_"
      "after_start_s,tenant,kind,model,nodes,measured,deadline_s,late_s";
  const Topology& topology = request.cluster().topology();
  for (std::uint32_t t = 0; t < topology.type_count(); ++t) {
    csv += ",device_hours_" + csv_text(topology.accelerator(FleetTypeId(t)).id);
  }
  csv += '\n';
  for (std::size_t i = 0; i < run.outcomes.size(); ++i) {
    csv += times_cells(request, run.outcomes[i]) + usage_cells(run, run.outcomes[i]) +
           description_cells(request, run, i) + deadline_cells(request, run, run.outcomes[i]);
    for (std::uint32_t t = 0; t < topology.type_count(); ++t) {
      csv += fmt::format(",{:.4f}", device_hours(run.outcomes[i].usage.devices.of(FleetTypeId(t))));
    }
    csv += '\n';
  }
  return csv;
}

ReportData report_data(const SimulateRequest& request, const SimulateOptions& asked,
                       std::span<const PolicyRun> runs) {
  ReportData data;
  const Topology& topology = request.cluster().topology();
  const bool listed = !asked.machines.accelerators.empty();
  const std::string fleet = listed ? asked.machines.accelerators : topology.name();
  data.title = "Simulation of " + fleet;
  data.fleet = fmt::format("{}: {} in {}", fleet, counted(topology.device_count(), "accelerator"),
                           counted(topology.node_count(), "node"));
  data.trace = fmt::format(
      "{}: {}",
      asked.trace.file.empty() ? "generated like " + asked.generated.style : asked.trace.file,
      counted(request.trace().jobs.size(), "job"));
  data.from = request.begin();
  data.to = request.begin();
  data.time = request.dated() ? TimeAxis::kCalendar : TimeAxis::kElapsed;
  data.seed = asked.world.seed;
  data.failures = asked.world.failures == "none" ? "" : asked.world.failures;
  data.notes = request.notes();
  if (request.measure()) data.measured = measured_text(asked, runs);
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
