// orrery simulate
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <filesystem>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output_file.hpp"
#include "apps/orrery/record_file.hpp"
#include "apps/orrery/simulate_request.hpp"
#include "apps/orrery/simulate_text.hpp"
#include "base/real_clock.hpp"
#include "base/terminal_text.hpp"
#include "twin/html_report.hpp"

namespace orrery {
namespace {

constexpr std::uint64_t kSeedMax = std::uint64_t{1} << 53;  // JSON keeps a whole number so far

double seconds_now() { return static_cast<double>(RealClock().now_monotonic().ns()) * 1e-9; }

/// One line on a terminal, written over and over.
class ProgressLine {
 public:
  ProgressLine(const std::string& label, std::size_t jobs)
      : label_(terminal_text(label, Newlines::kEscaped)), jobs_(jobs), begin_(seconds_now()) {}
  ~ProgressLine() {
    if (shown_) print_progress("\r\x1b[K");
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(Instant at, const Simulation& simulation) {
    if (::isatty(2) == 0) return;
    const double now = seconds_now();
    if (now - last_ < kEvery) return;
    const double passed = (at - simulation.state().setup().begin).count_seconds();
    const std::size_t ended = simulation.state().ended_jobs();
    const std::size_t tenths = jobs_ == 0 ? 0 : ended * kWidth / jobs_;
    print_progress(fmt::format("\r\x1b[K{} [{:<{}}] {} of {} jobs, {}, {:.0f} x real time", label_,
                               std::string(tenths, '#'), kWidth, ended, jobs_, at.text(),
                               passed / std::max(now - begin_, 1e-9)));
    last_ = now;
    shown_ = true;
  }

 private:
  static constexpr double kEvery = 0.2;
  static constexpr std::size_t kWidth = 24;
  std::string label_;
  std::size_t jobs_;
  double begin_;
  double last_ = 0;
  bool shown_ = false;
};

Status write_results(const SimulateOptions& asked, const SimulateRequest& request,
                     const ReportData& data, std::span<const PolicyRun> runs) {
  if (asked.out.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(asked.out, error);
  if (error) return environment_error(fmt::format("{}: {}", asked.out, error.message()));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string path =
        fmt::format("{}/jobs-{}.csv", asked.out, request.policies()[i].file_name);
    if (Status status = write_output_file(path, jobs_csv(request, runs[i])); !status) return status;
  }
  const std::string summary = simulate_json(request, runs).dump(2) + "\n";
  if (Status status = write_output_file(asked.out + "/summary.json", summary); !status) {
    return status;
  }
  return write_output_file(asked.out + "/report.html", html_report(data));
}

Status run_simulate(const CommandOptions& options, const SimulateOptions& asked) {
  Result<std::unique_ptr<SimulateRequest>> request = SimulateRequest::load(options, asked);
  if (!request) return forward_error(request);
  SimulateRequest& r = **request;
  if (Status status = r.check_prices(asked); !status) return status;
  std::vector<PolicyRun> runs;
  for (const NamedRun& named : r.policies()) {
    PolicyRunInputs in = r.inputs(named);
    if (!asked.explain.empty()) {
      Result<JobId> job = r.find(asked.explain);
      if (!job) return forward_error(job);
      in.explain = *job;
    }
    std::optional<RunRecord> record;
    if (!asked.record.empty()) {
      Result<RunRecord> opened = RunRecord::create(options, asked, r, named);
      if (!opened) return forward_error(opened);
      record = *std::move(opened);
      in.events = record->events.get();
      in.inputs = record->inputs.get();
      in.setup = record->setup;
    }
    ProgressLine line(named.label, r.jobs().jobs.size());
    in.progress = [&](Instant at, const Simulation& simulation) { line.show(at, simulation); };
    const double begin = seconds_now();
    Result<PolicyRun> run = run_policy(in);
    if (!run) return forward_error(run);
    run->report.summary.wall_s = seconds_now() - begin;
    if (record) {
      if (Status status = record->finish(); !status) return status;
    }
    runs.push_back(*std::move(run));
  }
  ReportData data = report_data(r, asked, runs);
  data.command = command_text(options, asked);
  if (Status status = write_results(asked, r, data, runs); !status) return status;
  if (options.output == OutputFormat::kJson) {
    print_json(simulate_json(r, runs));
  } else {
    print_text(simulate_text(r, asked, runs));
  }
  return {};
}

/// What runs, and on what.
void add_work_options(CLI::App& verb, const std::shared_ptr<SimulateOptions>& asked) {
  SimulateOptions& a = *asked;
  verb.add_option("--fleet", a.fleet, "a fleet spec");
  verb.add_option("--accelerators", a.accelerators, "TYPE:N[,TYPE:N..] in usual nodes");
  verb.add_option(
      "--price", a.price,
      "owned or on-demand: how the machines of --accelerators are paid (on-demand; owned "
      "with --prices)");
  verb.add_option("--trace", a.trace, "FILE[:FORMAT], plain or gzip");
  verb.add_option("--generate", a.generate,
                  "philly, helios, acme: make up a trace with their published statistics");
  verb.add_option("--jobs", a.jobs, "how many to make up, or");
  verb.add_option("--span", a.span, "for how long: \"7 days\"");
  verb.add_option("--load", a.load, "of what the fleet can do, how much is asked for")
      ->capture_default_str();
  verb.add_option("--format", a.format, fmt::format("{}", fmt::join(kTraceFormatWords, ", ")));
  verb.add_option("--where", a.rows, "column=value: only these rows; may be given again");
  verb.add_option("--from", a.from, "first submit, inclusive");
  verb.add_option("--to", a.to, "last submit, inclusive");
  verb.add_flag_callback(
      "--skip-bad", [asked] { asked->bad_rows = SimulateOptions::Flag::kYes; },
      "leave out rows that cannot be read, and count them");
  verb.add_flag_callback(
      "--map", [asked] { asked->map = SimulateOptions::Flag::kYes; },
      "give jobs a model, a kind, a range of sizes and speeds by type by the committed mapping");
}

/// Who decides, what goes wrong, and what comes of it.
void add_world_options(CLI::App& verb, SimulateOptions& a) {
  verb.add_option("--tenants", a.tenants, "a file of tenants");
  verb.add_option("--policy", a.policies, "NAME[:key=value,..] or a file; several by commas")
      ->capture_default_str();
  verb.add_option("--rules", a.rules, "orrery, helios, muri, gavel: whose simulator to equal")
      ->capture_default_str();
  verb.add_option("--information", a.information,
                  "oracle, estimate, blind: what policies know of run times")
      ->capture_default_str();
  verb.add_option("--seed", a.seed, "of everything random")
      ->check(CLI::Range(std::uint64_t{0}, kSeedMax))
      ->capture_default_str();
  verb.add_option("--failures", a.failures,
                  "llama3, rsc1, rsc2, all-causes, measured, infinitehbd, none, or a file")
      ->capture_default_str();
  verb.add_option(
      "--arrivals", a.arrivals,
      "nodes not there yet, TYPE:AFTER[:OVER] or TYPE:never: \"mi300x:90 days:30 days\"");
  verb.add_option("--events", a.events,
                  "drains, caps, faults, lost links, quotas at stated times (kind: Events)")
      ->type_name("FILE");
  verb.add_option("--spares", a.spares, "nodes kept back to replace lost ones");
  verb.add_option("--restart", a.restart, "of a trace's job from a checkpoint: \"60 s\"");
  verb.add_option("--warm-restart", a.warm_restart,
                  "of one that goes on on its own nodes and spares: \"60 s\", or as published");
  verb.add_option("--restart-policy", a.restart_policy,
                  "at-once, after-lease, when-safe, never: when a job whose node has fallen silent "
                  "may start elsewhere")
      ->capture_default_str();
  verb.add_option("--fencing", a.fencing, "until an operator has cut a lost node off: \"15 min\"");
  verb.add_option("--checkpoint-cost", a.checkpoint_cost, "of one checkpoint: \"20 s\"");
  verb.add_option("--checkpoint-interval", a.checkpoint_interval,
                  "between them: \"30 min\"; else the best for the cost and the failures");
  verb.add_option("--throughputs", a.throughputs, "steps a second, as Gavel has them (JSON)");
  verb.add_option("--prices", a.prices,
                  "hourly prices of electricity (CSV), paid for what is owned");
  verb.add_option("--carbon", a.carbon, "hourly carbon intensity (CSV)");
  verb.add_option("--until", a.until, "ends the simulation early");
  verb.add_option("--measure", a.measure,
                  "FROM..TO: figures are of the jobs submitted then and of the devices in that "
                  "time; dates, or since the begin: \"1 day..8 days\"");
  verb.add_option("--out", a.out, "directory for jobs-POLICY.csv, summary.json, report.html");
  verb.add_option("--record", a.record, "directory for inputs and events, for `orrery replay`");
  verb.add_option("--explain", a.explain, "JOB: tells what became of it and why it waited");
}

}  // namespace

void add_simulate_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<SimulateOptions>();
  CLI::App& verb = *app.add_subcommand(
      "simulate", "play a trace of jobs on a fleet, in virtual time, under one or more policies");
  verb.footer(
      "Examples:\n"
      "  orrery simulate --accelerators h100:512 --generate philly --span \"7 days\"\n"
      "  orrery simulate --fleet fleet.yaml --trace jobs.csv:philly --policy fifo,easy,capacity "
      "--out results\n"
      "  orrery simulate --accelerators v100:64 --trace philly.csv --format philly --where "
      "cluster=6c71a0\n    --from 2017-10-01T00:00:00 --to 2017-10-14T23:59:59 --rules helios "
      "--policy fifo -o json");
  add_work_options(verb, asked);
  add_world_options(verb, *asked);
  verb.callback([&options, &chosen, asked] {
    chosen = [&options, asked] { return run_simulate(options, *asked); };
  });
}

}  // namespace orrery
