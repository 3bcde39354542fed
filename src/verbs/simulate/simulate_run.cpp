#include "verbs/simulate/simulate_run.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/system/real_clock.hpp"
#include "twin/figures/html_report.hpp"
#include "verbs/output_file.hpp"
#include "verbs/record/record_file.hpp"
#include "verbs/simulate/simulate_text.hpp"

namespace orrery {
namespace {

double seconds_now() { return static_cast<double>(RealClock().now_monotonic().ns()) * 1e-9; }

/// What every policy of a call is played with.
struct Call {
  const CommandOptions& options;
  const SimulateOptions& asked;
  SimulateRequest& request;
  const PlayWatch& watch;
};

/// Plays one policy; records it where that is asked for.
Result<PolicyRun> play(const Call& call, const NamedRun& named) {
  PolicyRunInputs in = call.request.inputs(named);
  if (!call.asked.results.explain.empty()) {
    Result<JobId> job = call.request.find(call.asked.results.explain);
    if (!job) return forward_error(job);
    in.explain = *job;
  }
  std::optional<RunRecord> record;
  if (!call.asked.results.record.empty()) {
    Result<RunRecord> opened = RunRecord::create(call.options, call.asked, call.request, named);
    if (!opened) return forward_error(opened);
    record = *std::move(opened);
    in.events = record->events.get();
    in.inputs = record->inputs.get();
    in.setup = record->setup;
  }
  if (call.watch) in.progress = call.watch(named.label, call.request.jobs().jobs.size());
  const double begin = seconds_now();
  Result<PolicyRun> run = run_policy(in);
  if (!run) return forward_error(run);
  run->report.summary.wall_s = seconds_now() - begin;
  if (record) {
    if (Status status = record->finish(); !status) return forward_error(status);
  }
  return run;
}

Status write_results(const SimulateOptions& asked, const SimulateRequest& request,
                     const ReportData& data, std::span<const PolicyRun> runs) {
  if (asked.results.out.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(asked.results.out, error);
  if (error) return environment_error(fmt::format("{}: {}", asked.results.out, error.message()));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string path =
        fmt::format("{}/jobs-{}.csv", asked.results.out, request.policies()[i].file_name);
    if (Status status = write_output_file(path, jobs_csv(request, runs[i])); !status) return status;
  }
  const std::string summary = simulate_json(request, runs).dump(2) + "\n";
  if (Status status = write_output_file(asked.results.out + "/summary.json", summary); !status) {
    return status;
  }
  return write_output_file(asked.results.out + "/report.html", html_report(data));
}

}  // namespace

Result<VerbAnswer> simulate(const CommandOptions& options, const SimulateOptions& asked,
                            const PlayWatch& watch) {
  Result<std::unique_ptr<SimulateRequest>> request = SimulateRequest::load(options, asked);
  if (!request) return forward_error(request);
  SimulateRequest& r = **request;
  if (Status status = r.check_prices(asked); !status) return forward_error(status);
  std::vector<PolicyRun> runs;
  for (const NamedRun& named : r.policies()) {
    Result<PolicyRun> run = play({options, asked, r, watch}, named);
    if (!run) return forward_error(run);
    runs.push_back(*std::move(run));
  }
  ReportData data = report_data(r, asked, runs);
  data.command = command_text(options, asked);
  if (Status status = write_results(asked, r, data, runs); !status) return forward_error(status);
  return VerbAnswer{simulate_text(r, asked, runs), simulate_json(r, runs)};
}

}  // namespace orrery
