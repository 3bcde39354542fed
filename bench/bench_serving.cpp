// What a router between clients and the replicas of a service costs: orrery-gateway, beside nginx
// and routers of PyPI, in the same run, before the same stand-in replicas (bench/serving).
//
//   bench_serving [--only capacity|latency|streams|memory] [--rounds N] [--seconds S]
//                 [--streams N] [--rate R] [--router-peers DIR]
//
// The router runs on one core, replicas and clients on another. Each figure is the median of the
// rounds (6, each of S seconds: 3), in which the routers take turns, in one order and then in the
// other. The interval of a ratio to a peer is one of the rounds' ratios for their median (sign
// test). CPU time is the router's own with all its processes, of /proc; requests and answers have 1
// KiB. --router-peers names a virtual environment with routers (scripts/bench makes it).
// --rate is the open loop's of `latency`, requests a second, where the core of replicas and clients
// cannot carry 70 % of what the routers can.
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/bench_process.hpp"
#include "bench/figure.hpp"
#include "bench/process_spend.hpp"
#include "bench/serving/routers.hpp"

namespace orrery {
namespace {

struct Options {
  std::string only;
  int rounds = 6;
  double seconds = 3;
  int streams = 10'000;
  double rate = 0;
  std::string router_peers;
};

// --- Load ---------------------------------------------------------------------------------------

std::string on_load_core(const std::string& command) {
  return fmt::format("taskset -c {} {}", kLoadCore, command);
}

/// What the load program has counted.
struct LoadFigures {
  double requests = 0;
  double errors = 0;
  double seconds = 0;
  double events = 0;
  std::map<std::string, double> quantiles;  ///< microseconds
};

LoadFigures load(const std::string& address, const std::string& options) {
  const std::string command =
      on_load_core(fmt::format("{} --to {} --key {} {}", program_beside_orrery("serving_load"),
                               address, kServingKey, options));
  const std::optional<std::string> said = all_output_of(command);
  if (!said) give_up(command + " failed");
  const Json json = Json::parse(*said);
  LoadFigures figures{json["requests"].get<double>(),
                      json["errors"].get<double>(),
                      json["seconds"].get<double>(),
                      json["events"].get<double>(),
                      {}};
  for (const char* name : {"p50_us", "p99_us", "first_p50_us", "first_p99_us"}) {
    figures.quantiles[name] = json[name].get<double>();
  }
  if (figures.errors > 0) {
    fmt::print(stderr, "bench_serving: {} of {} requests to {} failed\n", figures.errors,
               figures.requests + figures.errors, address);
  }
  if (figures.requests == 0) give_up("no request succeeded");
  return figures;
}

/// The stand-in replicas, and the routers before them.
class TestBed {
 public:
  TestBed(const std::vector<RouterKind>& kinds, int replicas, const std::string& options) {
    std::vector<std::string> words = {"taskset",
                                      "-c",
                                      fmt::to_string(kLoadCore),
                                      program_beside_orrery("serving_mock"),
                                      "--ports",
                                      fmt::to_string(replicas)};
    for (std::size_t at = 0; at < options.size();) {
      const std::size_t end = std::min(options.find(' ', at), options.size());
      words.push_back(options.substr(at, end - at));
      at = end + 1;
    }
    mock_ = std::make_unique<BenchProcess>(std::move(words));
    for (int each = 0; each < replicas; ++each) {
      std::string line = mock_->line();
      line.pop_back();
      workers_.push_back(std::move(line));
    }
    for (const RouterKind& kind : kinds) {
      routers_.push_back(std::make_unique<RouterProcess>(kind, workers_));
    }
  }

  [[nodiscard]] const std::vector<std::string>& workers() const { return workers_; }
  [[nodiscard]] const std::vector<std::unique_ptr<RouterProcess>>& routers() const {
    return routers_;
  }

  /// Measures each router in each round, in alternating order; a value for each round and router.
  template <class Measure>
  [[nodiscard]] std::vector<std::vector<double>> rounds(int count, Measure&& measure) const {
    std::vector<std::vector<double>> values(routers_.size());
    for (int round = 0; round < count; ++round) {
      for (std::size_t i = 0; i < routers_.size(); ++i) {
        const std::size_t at = round % 2 == 0 ? i : routers_.size() - 1 - i;
        values[at].push_back(measure(*routers_[at]));
      }
    }
    return values;
  }

 private:
  std::unique_ptr<BenchProcess> mock_;
  std::vector<std::string> workers_;
  std::vector<std::unique_ptr<RouterProcess>> routers_;
};

// --- Figures ------------------------------------------------------------------------------------

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// How many of n sorted values to leave out at each end, so that the others hold the median of what
/// they are drawn from with 95 % or more: by the binomial distribution; none: n is too small.
std::optional<std::size_t> left_out(std::size_t n) {
  double chance = std::pow(0.5, static_cast<double>(n));  // of this many values below the median
  double below = chance;
  std::optional<std::size_t> count;
  for (std::size_t k = 0; 2 * below <= 0.05; ++k) {
    count = k;
    chance *= static_cast<double>(n - k) / static_cast<double>(k + 1);
    below += chance;
  }
  return count;
}

/// " (peer/own 1.1, 95 % 1.05 to 1.15)", of the rounds' ratios; nothing where a value is not
/// positive or there are fewer than six rounds.
std::string interval_text(const std::vector<double>& own, const std::vector<double>& peer) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i] <= 0 || peer[i] <= 0) return "";
    ratios.push_back(peer[i] / own[i]);
  }
  const std::optional<std::size_t> skipped = left_out(ratios.size());
  if (!skipped) return "";
  std::ranges::sort(ratios);
  return fmt::format(" (peer/own {:.2f}, 95 % {:.2f} to {:.2f})", median(ratios), ratios[*skipped],
                     ratios[ratios.size() - 1 - *skipped]);
}

struct Row {
  std::string name;
  std::string unit;
  std::optional<double> target;
};

/// A figure for each peer; one without where there is none. values[0] are those of the gateway.
void show(const Row& row, const TestBed& bed, const std::vector<std::vector<double>>& values) {
  Figure figure{.bench = "serving",
                .name = row.name,
                .value = median(values[0]),
                .unit = row.unit,
                .target = row.target};
  for (std::size_t at = 1; at < values.size(); ++at) {
    figure.peer = bed.routers()[at]->name();
    figure.peer_value = median(values[at]);
    figure.name = row.name + interval_text(values[0], values[at]);
    print_figure(figure);
  }
  if (values.size() == 1) print_figure(figure);
  (void)std::fflush(stdout);
}

// --- R1: requests a CPU-second ------------------------------------------------------------------

/// Microseconds of a router's CPU for each of what a load counts.
template <class Load>
double cpu_us(const RouterProcess& router, Load&& load_it) {
  const double before = spent_by_tree(router.pid()).cpu_seconds;
  const double count = load_it();
  return (spent_by_tree(router.pid()).cpu_seconds - before) / count * 1e6;
}

/// Runs wrk, another load program, where it is installed; gives the number of answers.
double load_by_wrk(const RouterProcess& router, double seconds) {
  const std::string script = "build/bench/serving_wrk.lua";
  std::ofstream(script) << fmt::format(
      "wrk.method = 'POST'\nwrk.headers['Content-Type'] = 'application/json'\n"
      "wrk.headers['Authorization'] = 'Bearer {}'\n"
      "wrk.body = '{{\"model\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":\"{}\"}}],"
      "\"max_tokens\":16}}'\n"
      "done = function(all) io.write('answers ', all.requests - all.errors.status, '\\n') end\n",
      kServingKey, std::string(940, 'x'));
  const auto said = all_output_of(
      on_load_core(fmt::format("wrk -t1 -c64 -d{}s -s {} http://{}/v1/chat/completions",
                               std::max(static_cast<int>(seconds), 1), script, router.address())));
  const std::size_t at = said ? said->find("answers ") : std::string::npos;
  if (at == std::string::npos) give_up("wrk failed: " + said.value_or(""));
  return std::strtod(said->c_str() + at + std::size("answers ") - 1, nullptr);
}

/// Requests a second in the closed loop, by router.
using Rates = std::map<std::string, double>;

Rates measure_capacity(const std::vector<RouterKind>& kinds, const Options& options, int replicas) {
  const TestBed bed(kinds, replicas, "");
  std::map<std::string, std::vector<double>> rates;
  const auto values = bed.rounds(options.rounds, [&](const RouterProcess& router) {
    return cpu_us(router, [&] {
      const LoadFigures figures =
          load(router.address(), fmt::format("--seconds {}", options.seconds));
      rates[router.name()].push_back(figures.requests / figures.seconds);
      return figures.requests;
    });
  });
  show({fmt::format("R1: router CPU of a request, {} replicas", replicas), "us", 50}, bed, values);
  if (!all_output_of("command -v wrk")) {
    fmt::print(stderr, "bench_serving: NOT MEASURED: load by wrk: it is not installed\n");
  } else {
    const auto by_wrk = bed.rounds(options.rounds, [&](const RouterProcess& router) {
      return cpu_us(router, [&] { return load_by_wrk(router, options.seconds); });
    });
    show({fmt::format("R1: the same, load by wrk, {} replicas", replicas), "us", 50}, bed, by_wrk);
  }
  Rates medians;
  for (const auto& [name, each] : rates) {
    medians[name] = median(each);
    fmt::print(stderr, "bench_serving: {}, {} replicas: {:.0f} requests a second, closed loop\n",
               name, replicas, medians[name]);
  }
  return medians;
}

// --- R2: added latency --------------------------------------------------------------------------

/// At 70 % of what the slower of the gateway and nginx carries; a slower peer is left out.
void measure_latency(const std::vector<RouterKind>& kinds, const Options& options,
                     const Rates& rates) {
  double rate = options.rate > 0 ? options.rate : 0.7 * rates.at(kinds[0].name);
  for (const auto& [name, most] : rates) {
    if (options.rate == 0 && name.starts_with("nginx")) rate = std::min(rate, 0.7 * most);
  }
  std::vector<RouterKind> able;
  for (const RouterKind& kind : kinds) {
    if (0.9 * rates.at(kind.name) >= rate) {
      able.push_back(kind);
    } else {
      fmt::print(stderr, "bench_serving: NOT MEASURED: latency of {}: it carries {:.0f}/s alone\n",
                 kind.name, rates.at(kind.name));
    }
  }
  const TestBed bed(able, 1, "");
  const std::string how = fmt::format("--rate {:.0f} --seconds {}", rate, options.seconds);
  std::vector<std::vector<double>> p50(bed.routers().size());
  std::vector<std::vector<double>> p99(bed.routers().size());
  std::vector<double> alone[2];
  for (int round = 0; round < options.rounds; ++round) {
    const LoadFigures direct = load(bed.workers()[0], how);
    for (std::size_t i = 0; i < bed.routers().size(); ++i) {
      const std::size_t at = round % 2 == 0 ? i : bed.routers().size() - 1 - i;
      const LoadFigures through = load(bed.routers()[at]->address(), how);
      p50[at].push_back(through.quantiles.at("p50_us") - direct.quantiles.at("p50_us"));
      p99[at].push_back(through.quantiles.at("p99_us") - direct.quantiles.at("p99_us"));
    }
    alone[0].push_back(direct.quantiles.at("p50_us"));
    alone[1].push_back(direct.quantiles.at("p99_us"));
  }
  fmt::print(stderr, "bench_serving: without a router p50 {:.0f} us, p99 {:.0f} us\n",
             median(alone[0]), median(alone[1]));
  const std::string at = fmt::format(", {:.0f} requests a second, open loop", rate);
  show({"R2: added latency, p50" + at, "us", 50}, bed, p50);
  show({"R2: added latency, p99" + at, "us", 300}, bed, p99);
}

// --- R3: streams --------------------------------------------------------------------------------

struct StreamLoad {
  std::string name;
  std::string mock;
  int streams = 0;
  int events = 0;  ///< of each stream
};

void measure_streams(const std::vector<RouterKind>& kinds, const Options& options,
                     const StreamLoad& streams) {
  const TestBed bed(kinds, 4, streams.mock);
  const auto values = bed.rounds(options.rounds, [&](const RouterProcess& router) {
    return cpu_us(router, [&] {
      return load(router.address(), fmt::format("--connections {} --stream {} --seconds {}",
                                                streams.streams, streams.events, options.seconds))
          .events;
    });
  });
  show({"R3: router CPU of an event, " + streams.name, "us", 2}, bed, values);
}

/// Raises the limit of open files of what this program starts as far as it goes, and returns it.
rlim_t raise_open_files() {
  rlimit files{};
  (void)::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &files);
  return files.rlim_max;
}

/// Streams that one router can hold, with two descriptors each and some to spare.
int streams_possible(int asked) {
  const rlim_t files = raise_open_files();
  const auto most = static_cast<int>((std::min<rlim_t>(files, 1 << 20) - 1'000) / 2);
  if (most >= asked) return asked;
  fmt::print(stderr, "bench_serving: the limit of open files, {}, allows for {} streams, not {}\n",
             files, most, asked);
  return most;
}

/// Resident bytes of a router for each stream that it holds.
double bytes_per_stream(const RouterKind& kind, int streams) {
  const TestBed bed({kind}, 4, "--rate 1");
  const pid_t router = bed.routers()[0]->pid();
  const double before = spent_by_tree(router).bytes;
  const BenchProcess load(std::vector<std::string>{
      "taskset", "-c", fmt::to_string(kLoadCore), program_beside_orrery("serving_load"), "--to",
      bed.routers()[0]->address(), "--key", kServingKey, "--stream", "1000000", "--open",
      fmt::to_string(streams)});
  const std::string said = load.line();
  int opened = 0;
  int failed = 0;
  (void)std::sscanf(said.c_str(), "open %d %d", &opened, &failed);
  if (failed > 0) {
    fmt::print(stderr, "bench_serving: {}: {} of {} streams failed\n", kind.name, failed, streams);
  }
  if (opened == 0) give_up("no stream began");
  return (spent_by_tree(router).bytes - before) / opened;
}

void measure_memory(const std::vector<RouterKind>& kinds, const Options& options) {
  const int streams = streams_possible(options.streams);
  std::vector<double> kib;
  for (const RouterKind& kind : kinds) kib.push_back(bytes_per_stream(kind, streams) / 1024);
  Figure figure{.bench = "serving",
                .name = fmt::format("R3: router memory of an open stream, {} of them", streams),
                .value = kib[0],
                .unit = "KiB",
                .target = 16};
  for (std::size_t at = 1; at < kib.size(); ++at) {
    figure.peer = kinds[at].name;
    figure.peer_value = kib[at];
    print_figure(figure);
  }
  if (kib.size() == 1) print_figure(figure);
}

void run(const Options& options) {
  if (std::thread::hardware_concurrency() < 2) give_up("it needs two cores");
  (void)raise_open_files();
  std::vector<RouterKind> kinds = {{"orrery-gateway", &gateway_command}};
  for (RouterKind& peer : installed_peers(options.router_peers)) kinds.push_back(std::move(peer));
  const auto wanted = [&](std::string_view part) {
    return options.only.empty() || options.only == part;
  };
  if (wanted("capacity") || wanted("latency")) {
    const Rates rates = measure_capacity(kinds, options, 1);
    if (wanted("latency")) measure_latency(kinds, options, rates);
  }
  if (wanted("capacity")) (void)measure_capacity(kinds, options, 64);
  if (wanted("streams")) {
    measure_streams(kinds, options, {"a write each, 256 streams at 50/s", "--rate 50", 256, 150});
    measure_streams(kinds, options, {"16 in a write, 64 streams", "--burst 16", 64, 1'600});
  }
  if (wanted("memory")) measure_memory(kinds, options);
}

}  // namespace
}  // namespace orrery

int main(int count, char** arguments) {
  orrery::Options options;
  for (int at = 1; at + 1 < count; at += 2) {
    const std::string_view option = arguments[at];
    const char* const value = arguments[at + 1];
    if (option == "--only") options.only = value;
    if (option == "--rounds") options.rounds = std::max(std::atoi(value), 1);
    if (option == "--seconds") options.seconds = std::strtod(value, nullptr);
    if (option == "--streams") options.streams = std::max(std::atoi(value), 1);
    if (option == "--rate") options.rate = std::strtod(value, nullptr);
    if (option == "--router-peers") options.router_peers = value;
  }
  orrery::run(options);
  return 0;
}
