// bench_serving_twin: how fast a service plays in virtual time.
//
// Steps a second of a core where each step is an event of its own, and the seconds that a day's
// worth of a tool agent's requests takes on eight replicas: 23,600 drawn requests with prompts of
// Mooncake's toolagent trace's size (8,600 tokens, of which half are a conversation so far), an
// answer of 180. Where there are files it plays them in place of the drawn requests, and the
// second half of each so fast that replicas are saturated, by the router's rule and at random.
//
//   bench_serving_twin [--traces DIR] [--replay-peer DIR] [FILE...]
//
// --traces adds the files of Mooncake in DIR/serving. --replay-peer names a virtual environment
// with Dynamo (scripts/bench --peers makes it), whose replay plays the files of Mooncake as well.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/format/document.hpp"
#include "bench/command_output.hpp"
#include "bench/figure.hpp"
#include "twin/serving/service_run.hpp"
#include "workload/requests/request_reader.hpp"

namespace orrery {
namespace {

/// A server of one 80 GB accelerator with a model of 8 billion parameters, in round numbers.
constexpr EngineStepCost kCost = {.step_s = 6e-3,
                                  .sequence_s = 3e-5,
                                  .context_token_s = 4e-8,
                                  .prompt_token_s = 3e-5,
                                  .prompt_pair_s = 1.3e-9};

constexpr std::uint32_t kReplicas = 8;
constexpr std::uint32_t kSequencesMax = 256;
constexpr std::uint64_t kStepTokens = 8192;
constexpr std::uint64_t kKvBlocks = 30'000;  ///< of 16 tokens

ServiceSetup setup_of(EngineRules::Steps steps) {
  ServiceSetup setup;
  setup.groups.push_back({.name = "bench",
                          .count = kReplicas,
                          .rules = {.sequences_max = kSequencesMax,
                                    .step_tokens = kStepTokens,
                                    .kv_blocks = kKvBlocks,
                                    .steps = steps},
                          .cost = kCost});
  setup.queue_wait = Duration::hours(10);
  setup.router.queue_max = 1'000'000;
  return setup;
}

RequestTrace drawn_requests() {
  RequestSpec spec;
  spec.span = Seconds(3600);
  spec.rate = 23'600.0 / 3600;
  spec.prompt = {.median = 2800, .sigma = 1, .max = 120'000};
  spec.output = {.median = 120, .sigma = 0.9, .max = 2000};
  spec.sessions = SessionSpec{.turns = 2, .think = Seconds(30), .shared = 2560, .prefixes = 20};
  return must(generate_requests(spec, {}, 1));
}

/// Many answers of a thousand tokens at a time, so that steps are most of the work.
RequestTrace long_answers() {
  RequestSpec spec;
  spec.span = Seconds(600);
  spec.rate = 60;
  spec.prompt = {.median = 300, .sigma = 0.5, .max = 2000};
  spec.output = {.median = 800, .sigma = 0.3, .max = 2000};
  return must(generate_requests(spec, {}, 1));
}

/// What another simulator takes for the same requests.
struct PeerTime {
  std::string name;
  double seconds = 0;
};

/// Returns the wall time of Dynamo's replay of a file of Mooncake, as it measures it itself,
/// without the start of Python; none: the file is of another kind, or the peer is missing or fails.
/// Its router knows the caches, its workers have as many sequences, tokens a step and blocks (in
/// blocks of 64 tokens, its default) as ours, and the pace of its default engine.
std::optional<PeerTime> replayed(const std::string& python, const std::string& file) {
  if (python.empty() || file.find("mooncake") == std::string::npos) return std::nullopt;
  const auto version =
      command_output(fmt::format("{}/bin/python -c 'import importlib.metadata as m; "
                                 "print(m.version(\"ai-dynamo\"), end=\"\")'",
                                 python));
  Json engine;
  engine["block_size"] = 64;
  engine["num_gpu_blocks"] = kKvBlocks / 4;
  engine["max_num_seqs"] = kSequencesMax;
  engine["max_num_batched_tokens"] = kStepTokens;
  const auto report = command_output(fmt::format(
      "d=$(mktemp -d) && case {1} in *.gz) gunzip -c {1};; *) cat {1};; esac >$d/trace.jsonl && "
      "DYN_LOG=error {0}/bin/python -m dynamo.replay $d/trace.jsonl --trace-format mooncake "
      "--replay-mode offline --router-mode kv_router --num-workers {2} --extra-engine-args '{3}' "
      "--report-json $d/report >$d/log 2>&1; cat $d/report; rm -r $d",
      python, file, kReplicas, engine.dump()));
  const Json read = report ? Json::parse(*report, nullptr, false) : Json();
  if (!version || !read.is_object() || !read.contains("wall_time_ms")) {
    fmt::print(stderr, "bench_serving_twin: NOT MEASURED: dynamo.replay: {} cannot run it\n",
               python);
    return std::nullopt;
  }
  return PeerTime{"dynamo.replay " + *version, read["wall_time_ms"].get<double>() / 1e3};
}

void play(const std::string& name, const RequestTrace& trace,
          const std::optional<PeerTime>& peer = {}) {
  ServiceFigures figures;
  const ServiceSetup setup = setup_of(EngineRules::Steps::kSkipped);
  const double seconds = seconds_of([&] { figures = run_service(trace, setup); });
  fmt::print(stderr,
             "{}: {} requests, {} completed, {} steps in {} events, hit rate {:.3f} of {:.3f}, "
             "TTFT p50 {:.3f} p99 {:.3f}, TPOT p50 {:.4f} p99 {:.4f}, {} preempted\n",
             name, figures.all.requests, figures.all.completed, figures.replicas.steps,
             figures.replicas.events, figures.hit_rate, figures.oracle_rate, figures.all.ttft.p50,
             figures.all.ttft.p99, figures.all.tpot.p50, figures.all.tpot.p99,
             figures.detours.preemptions);
  print_figure({.bench = "serving_twin",
                .name = fmt::format("seconds of {}, 8 replicas", name),
                .value = seconds,
                .unit = "s",
                .target = peer ? std::min(1.0, peer->seconds / 2) : 1.0,
                .peer = peer ? peer->name : "",
                .peer_value = peer ? std::optional(peer->seconds) : std::nullopt});
}

ServiceFigures saturated(RequestTrace trace, RoutePolicy policy) {
  constexpr double kSpeed = 3.5;
  keep_half(trace, TraceHalf::kSecond);
  speed_up(trace, kSpeed);
  ServiceSetup setup = setup_of(EngineRules::Steps::kSkipped);
  setup.groups[0].rules.kv_blocks = 250'000;
  setup.router.policy = policy;
  return run_service(trace, setup);
}

void compare_routes(const std::string& name, const RequestTrace& trace) {
  const ServiceFigures ours = saturated(trace, RoutePolicy::kCost);
  const ServiceFigures random = saturated(trace, RoutePolicy::kRandom);
  print_figure({.bench = "serving_twin",
                .name = fmt::format("TTFT p90 of {}, saturated", name),
                .value = ours.all.ttft.p90,
                .unit = "s",
                .target = random.all.ttft.p90 / 5,
                .peer = "random routing",
                .peer_value = random.all.ttft.p90});
  print_figure({.bench = "serving_twin",
                .name = fmt::format("prompt tokens of {} computed again, saturated", name),
                .value = ours.oracle_rate - ours.hit_rate,
                .unit = "share",
                .target = 0.02,
                .peer = "random routing",
                .peer_value = random.oracle_rate - random.hit_rate});
}

void count_steps() {
  const RequestTrace trace = long_answers();
  const ServiceSetup setup = setup_of(EngineRules::Steps::kEach);
  ServiceFigures figures;
  const double seconds = seconds_of([&] { figures = run_service(trace, setup); });
  print_figure({.bench = "serving_twin",
                .name = "nanoseconds of a step that is an event",
                .value = seconds * 1e9 / static_cast<double>(figures.replicas.events),
                .unit = "ns",
                .target = 1000});
}

/// Files of Mooncake below a folder of traces, in the order of their names.
std::vector<std::string> mooncake_files(const std::string& traces) {
  std::vector<std::string> files;
  std::error_code missing;
  for (const auto& each : std::filesystem::directory_iterator(traces + "/serving", missing)) {
    if (each.path().filename().string().find("mooncake") != std::string::npos)
      files.push_back(each.path());
  }
  std::ranges::sort(files);
  if (files.empty()) {
    fmt::print(stderr, "bench_serving_twin: NOT MEASURED: no file of Mooncake in {}/serving\n",
               traces);
  }
  return files;
}

void run(int count, char** arguments) {
  std::vector<std::string> files;
  std::string peer;
  for (int at = 1; at < count; ++at) {
    const std::string_view word = arguments[at];
    if (word == "--traces" && at + 1 < count) {
      for (std::string& each : mooncake_files(arguments[++at])) files.push_back(std::move(each));
    } else if (word == "--replay-peer" && at + 1 < count) {
      peer = arguments[++at];
    } else {
      files.emplace_back(word);
    }
  }
  count_steps();
  if (files.empty()) play("23,600 requests of an agent", drawn_requests());
  for (const std::string& file : files) {
    const RequestTrace trace = must(load_requests(file, {}));
    const std::string name = std::filesystem::path(file).filename().string();
    play(name, trace, replayed(peer, file));
    compare_routes(name, trace);
  }
}

}  // namespace
}  // namespace orrery

int main(int count, char** arguments) {
  orrery::run(count, arguments);
  return 0;
}
