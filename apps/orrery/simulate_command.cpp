// orrery simulate
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "base/system/real_clock.hpp"
#include "base/text/terminal_text.hpp"
#include "verbs/service_simulation/service_simulation.hpp"
#include "verbs/simulate/simulate_run.hpp"

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

std::function<void(Instant, const Simulation&)> watch_play(const std::string& label,
                                                           std::size_t jobs) {
  const auto line = std::make_shared<ProgressLine>(label, jobs);
  return [line](Instant at, const Simulation& simulation) { line->show(at, simulation); };
}

/// What runs, and on what.
void add_work_options(CLI::App& verb, const std::shared_ptr<SimulateOptions>& asked) {
  SimulateOptions& a = *asked;
  verb.add_option("--fleet", a.machines.fleet, "fleet spec");
  verb.add_option("--accelerators", a.machines.accelerators,
                  "accelerators of the fleet, in nodes of the usual size: TYPE:N[,TYPE:N..]");
  verb.add_option("--price", a.machines.price,
                  "price basis of the nodes of --accelerators: owned or on-demand (default: "
                  "on-demand; with --prices: owned)");
  verb.add_option("--trace", a.trace.file, "trace to simulate: FILE[:FORMAT], plain or gzip");
  verb.add_option("--generate", a.generated.style,
                  "generate a trace with the published statistics of philly, helios or acme");
  verb.add_option("--jobs", a.generated.jobs, "number of jobs to generate");
  verb.add_option("--span", a.generated.span, "time span to generate: \"7 days\"");
  verb.add_option("--load", a.generated.load,
                  "offered load of the generated trace, as a fraction of the capacity of the fleet")
      ->capture_default_str();
  verb.add_option("--format", a.trace.format,
                  fmt::format("format of the trace: {}", fmt::join(kTraceFormatWords, ", ")));
  verb.add_option("--where", a.trace.rows, "only rows with column=value; may be repeated");
  verb.add_option("--from", a.trace.from, "earliest submit time, inclusive");
  verb.add_option("--to", a.trace.to, "latest submit time, inclusive");
  verb.add_flag_callback(
      "--skip-bad", [asked] { asked->trace.bad_rows = SimulateOptions::Flag::kYes; },
      "skip rows that cannot be read, and count them");
  verb.add_flag_callback(
      "--map", [asked] { asked->trace.map = SimulateOptions::Flag::kYes; },
      "assign each job a model, a kind, a range of sizes and a speed per accelerator type, by the "
      "built-in mapping");
}

/// Who decides, what goes wrong, and what comes of it.
void add_world_options(CLI::App& verb, SimulateOptions& a) {
  verb.add_option("--tenants", a.scheduling.tenants, "Tenants file");
  verb.add_option("--policy", a.scheduling.policies,
                  "policies, separated by commas: NAME[:key=value,..] or a Policy file; with "
                  "--serve: policies of the router, or all")
      ->capture_default_str();
  verb.add_option("--rules", a.scheduling.rules,
                  "replay rules of the simulator to reproduce: orrery, helios, muri, gavel")
      ->capture_default_str();
  verb.add_option("--information", a.scheduling.information,
                  "run times known to policies: oracle (true run times), estimate or blind (none)")
      ->capture_default_str();
  verb.add_option("--seed", a.world.seed, "seed of all random numbers")
      ->check(CLI::Range(std::uint64_t{0}, kSeedMax))
      ->capture_default_str();
  verb.add_option(
          "--failures", a.world.failures,
          "failure profile: llama3, rsc1, rsc2, all-causes, measured, infinitehbd, none, or a file")
      ->capture_default_str();
  verb.add_option(
      "--arrivals", a.world.arrivals,
      "nodes that arrive later, TYPE:AFTER[:OVER] or TYPE:never: \"mi300x:90 days:30 days\"");
  verb.add_option(
          "--events", a.world.events,
          "file of drains, caps, faults, lost links and quotas at given times (kind: Events)")
      ->type_name("FILE");
  verb.add_option("--spares", a.world.spares, "number of spare nodes that replace lost nodes");
  verb.add_option("--restart", a.restarts.restart,
                  "restart time of a trace job from a checkpoint: \"60 s\"");
  verb.add_option(
      "--warm-restart", a.restarts.warm,
      "restart time of a job on its own nodes and spares: \"60 s\" (default: the published time)");
  verb.add_option("--restart-policy", a.restarts.policy,
                  "when a job may restart on other nodes after its node falls silent: at-once, "
                  "after-lease, when-safe or never")
      ->capture_default_str();
  verb.add_option("--fencing", a.restarts.fencing,
                  "time until an operator fences a lost node: \"15 min\"");
  verb.add_option("--checkpoint-cost", a.restarts.checkpoint_cost,
                  "time to write a checkpoint: \"20 s\"");
  verb.add_option("--checkpoint-interval", a.restarts.checkpoint_interval,
                  "time between checkpoints: \"30 min\" (default: the optimum for the cost and the "
                  "failure rate)");
  verb.add_option("--throughputs", a.trace.throughputs,
                  "rates in steps per second, in the format of Gavel (JSON)");
  verb.add_option("--prices", a.world.prices,
                  "hourly electricity prices (CSV), paid for owned nodes");
  verb.add_option("--carbon", a.world.carbon, "hourly carbon intensity of electricity (CSV)");
  verb.add_option("--until", a.world.until, "time at which the simulation ends early");
  verb.add_option("--measure", a.results.measure,
                  "measurement window FROM..TO, for jobs submitted and devices used within it: "
                  "dates, or times since the start, such as \"1 day..8 days\"");
  verb.add_option("--out", a.results.out,
                  "directory for jobs-POLICY.csv, summary.json, report.html");
  verb.add_option("--record", a.results.record,
                  "directory for inputs and events, for `orrery replay`");
  verb.add_option("--explain", a.results.explain,
                  "job whose history and reasons for waiting are printed");
}

/// Options of simulations of jobs that those of services have, too.
constexpr std::array<std::string_view, 5> kShared = {"--help", "--accelerators", "--policy",
                                                     "--seed", "--out"};

/// A service in place of jobs.
void add_service_options(CLI::App& verb, ServiceSimulationOptions& asked) {
  const std::vector<CLI::Option*> others = verb.get_options();
  CLI::Option* requests = verb.add_option("--requests", asked.requests.file,
                                          "simulate a service with these requests: "
                                          "FILE[:azure|mooncake|servegen|orrery], plain or gzip");
  for (CLI::Option* each : others) {
    const std::string name = each->get_single_name();
    const bool shared = std::ranges::find(kShared, "--" + name) != kShared.end();
    if (!shared) requests->excludes(each);
  }
  const auto add = [&](const char* name, auto& value, const char* text) {
    return verb.add_option(name, value, text)->needs(requests);
  };
  add("--serve", asked.serve,
      "with --requests: Serve file of the service (default: replicas of one accelerator)");
  add("--half", asked.requests.half, "with --requests: only the first or the second half of them");
  add("--speed", asked.requests.speed, "with --requests: factor on the rate at which they arrive")
      ->capture_default_str();
  add("--pace", asked.pace.file,
      "with --requests: log of steps of orrery-serve --step-log, or JSON of the terms of a step; "
      "else "
      "--accelerators");
  add("--model", asked.pace.model,
      "with --requests and --accelerators: model (default: the spec's)");
  add("--replicas", asked.replicas,
      "with --requests: replicas (default: as many as N of --accelerators TYPE:N hold, else the "
      "spec's)")
      ->check(CLI::Range(1, 4096));
  add("--gateways", asked.gateways,
      "with --requests: gateways that share the requests and tell each other their loads")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  add("--scale", asked.scale,
      "with --requests: replicas follow the requests between these numbers, \"1..8\"; none: their "
      "number stays (default: as the spec's scaling says)");
  add("--crash", asked.trouble.crashes,
      "with --requests: time at which a replica crashes, \"10 min\"; may be repeated");
  add("--cold-start", asked.trouble.cold_start,
      "with --requests: time from a crash or an order until a replica takes requests")
      ->capture_default_str();
  add("--kv-tokens", asked.kv_tokens,
      "with --requests: tokens in a replica's cache (default: those that fit)")
      ->check(CLI::PositiveNumber);
}

}  // namespace

void add_simulate_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<SimulateOptions>();
  auto service = std::make_shared<ServiceSimulationOptions>();
  CLI::App& verb = *app.add_subcommand(
      "simulate",
      "simulate a trace of jobs on a fleet in virtual time, under one or more policies");
  verb.footer(
      "Examples:\n"
      "  orrery simulate --accelerators h100:512 --generate philly --span \"7 days\"\n"
      "  orrery simulate --fleet fleet.yaml --trace jobs.csv:philly --policy fifo,easy,capacity "
      "--out results\n"
      "  orrery simulate --accelerators v100:64 --trace philly.csv --format philly --where "
      "cluster=6c71a0\n    --from 2017-10-01T00:00:00 --to 2017-10-14T23:59:59 --rules helios "
      "--policy fifo -o json\n"
      "  orrery simulate --requests requests.jsonl --serve chat.yaml --pace steps.csv --policy "
      "all\n"
      "  orrery simulate --requests trace.csv:azure --accelerators h100:4 --model llama-3.1-8b");
  add_work_options(verb, asked);
  add_world_options(verb, *asked);
  add_service_options(verb, *service);
  verb.callback([&options, &chosen, asked, service] {
    chosen = [&options, asked, service] {
      if (!service->requests.file.empty()) {
        service->pace.accelerators = asked->machines.accelerators;
        service->seed = asked->world.seed;
        service->out = asked->results.out;
        if (asked->scheduling.policies != SimulateOptions{}.scheduling.policies) {
          service->policies = asked->scheduling.policies;
        }
        return print_answer(options, simulate_service(options, *service));
      }
      return print_answer(options, simulate(options, *asked, watch_play));
    };
  });
}

}  // namespace orrery
