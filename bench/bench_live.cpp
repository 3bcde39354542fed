// A real controller with real agents on this machine: how many submissions it makes durable a
// second, how long a reader waits meanwhile, how fast small jobs turn over, how soon it is back
// after a kill with many jobs waiting, and what a rank loses by running under a keeper.
//
//   bench_live                the figures
//   bench_live --work FILE    computes for a second or two, a line every few milliseconds, and adds
//   to FILE how long it took bench_live --slurm TOOLS  also those that a real Slurm on this machine
//   gives in the same run
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "bench/live_cluster.hpp"
#include "bench/live_load.hpp"
#include "bench/live_turnover.hpp"
#include "bench/slurm_peer.hpp"

namespace orrery {
namespace {

constexpr int kAlone = 500;
constexpr int kTogether = 20'000;
constexpr int kPaced = 10'000;
constexpr int kTurnover = 2'000;
constexpr int kWaiting = 100'000;
constexpr int kPeerTurnover = 300;
constexpr int kPeerHeld = 5'000;

double submit_alone(const LiveCluster& cluster) {
  const std::unique_ptr<Client> client = cluster.client();
  const double seconds = seconds_of([&] {
    for (int i = 0; i < kAlone; ++i) (void)submit_load(*client, fmt::format("alone-{}", i), {});
  });
  return kAlone / seconds;
}

/// Products of a matrix that stays in the cache, with a line as of a training step after each few:
/// work that neither waits nor shares. Returns seconds.
double work() {
  constexpr int kSize = 96;
  constexpr int kSteps = 200;
  constexpr int kProducts = 80;
  std::vector<float> a(kSize * kSize, 0.5F);
  std::vector<float> b(kSize * kSize, 0.25F);
  std::vector<float> c(kSize * kSize, 0.0F);
  return seconds_of([&] {
    for (int step = 0; step < kSteps; ++step) {
      for (int product = 0; product < kProducts; ++product) {
        for (int i = 0; i < kSize; ++i) {
          for (int k = 0; k < kSize; ++k) {
            for (int j = 0; j < kSize; ++j) c[i * kSize + j] += a[i * kSize + k] * b[k * kSize + j];
          }
        }
      }
      fmt::print("step {} loss {}\n", step, c[static_cast<std::size_t>(step)]);
      (void)std::fflush(stdout);
    }
  });
}

/// How much longer the same work takes under a keeper than started by hand, in turns: by the
/// medians, percent.
double keeper_overhead(const LiveCluster& cluster, const std::string& self) {
  constexpr int kTurns = 21;
  const std::unique_ptr<Client> client = cluster.client();
  const std::string file = cluster.path() + "/work";
  const auto took = [&] {
    std::ifstream text(file);
    double seconds = 0;
    text >> seconds;
    std::filesystem::remove(file);
    if (seconds <= 0) {
      fmt::print(stderr, "bench_live: the work wrote no time\n");
      std::exit(1);
    }
    return seconds;
  };
  std::vector<double> bare;
  std::vector<double> kept;
  for (int turn = 0; turn < kTurns; ++turn) {
    const std::string line = fmt::format("{} --work {} >{}.log", self, file, file);
    if (std::system(line.c_str()) != 0) std::exit(1);
    bare.push_back(took());
    v1::WaitJobRequest asked;
    asked.set_id(submit_load(
        *client, fmt::format("work-{}", turn),
        {.accelerators = 1, .command = fmt::format(R"("{}", "--work", "{}")", self, file)}));
    (void)call_or_exit<v1::Job>(*client, "WaitJob", asked);
    kept.push_back(took());
  }
  std::ranges::sort(bare);
  std::ranges::sort(kept);
  return (kept[kTurns / 2] / bare[kTurns / 2] - 1) * 100;
}

struct Restart {
  double seconds = 0;
  double bytes = 0;
};

/// Kills the controller with this many jobs waiting; measures until it has answered about them.
Restart restart(const LiveCluster& cluster) {
  const std::unique_ptr<Client> client = cluster.client();
  constexpr int kAtOnce = 10'000;
  for (int i = 0; i < kWaiting / kAtOnce; ++i) {
    (void)submit_load(*client, fmt::format("waiting-{}", i), {8, kAtOnce});
  }
  Restart restart{.bytes = cluster.controller_bytes()};
  (void)::kill(cluster.controller(), SIGKILL);
  restart.seconds = seconds_of([&] {
    cluster.run("up");
    (void)call_or_exit<v1::Cluster>(*client, "GetCluster", v1::GetClusterRequest());
  });
  return restart;
}

void show(const Figure& figure) {
  Figure own = figure;
  own.bench = "live";
  print_figure(own);
}

/// Slurm's figures for the same work, in microseconds; none: not measured.
struct PeerFigures {
  std::string name;
  std::optional<double> turnover;
  std::optional<double> held;
};

PeerFigures ask_slurm(const std::string& tools) {
  if (tools.empty()) return {};
  if (const std::string missing = SlurmPeer::missing(tools); !missing.empty()) {
    fmt::print(stderr, "bench_live: NO SIDE BY SIDE WITH SLURM: {} is missing\n", missing);
    return {};
  }
  const SlurmPeer slurm(tools);
  return {SlurmPeer::description(), slurm.turn_over(kPeerTurnover, kLoadClients) * 1e6,
          slurm.submit_held(kPeerHeld, kLoadClients) * 1e6};
}

void run(const std::string& self, const std::string& slurm_tools) {
  const PeerFigures peer = ask_slurm(slurm_tools);
  const LiveCluster cluster({.up = "--nodes 4 --accelerators 8"});
  const Turnover whole = turn_over(cluster, "whole", {8, kTurnover});
  show({.name = "a job that does nothing, from end to end, over 4 agents",
        .value = whole.seconds * 1e6,
        .unit = "us",
        .target = 2000});
  show({.name = "its CPU time: controller, agents, keepers and ranks",
        .value = whole.cpu_seconds * 1e6,
        .unit = "us"});
  show({.name = "the same, jobs of one accelerator, 32 at a time",
        .value = turn_over(cluster, "single", {1, kTurnover}).seconds * 1e6,
        .unit = "us",
        .peer = peer.name,
        .peer_value = peer.turnover});
  show({.name = "what a rank loses under a keeper",
        .value = keeper_overhead(cluster, self),
        .unit = "%",
        .target = 0.5});
  // What is submitted from now on waits.
  (void)start_endless(*cluster.client(), 32);
  show({.name = "a durable submission, 1 client",
        .value = 1e6 / submit_alone(cluster),
        .unit = "us"});
  const auto make_client = [&] { return cluster.client(); };
  const LoadResult together = submit_together(make_client, {"together", kTogether});
  show({.name = "a durable submission, 64 clients",
        .value = 1e6 / together.rate,
        .unit = "us",
        .target = 500,
        .peer = peer.name,
        .peer_value = peer.held});
  show({.name = "list of 100 jobs meanwhile, p99", .value = together.read_p99_ms, .unit = "ms"});
  const LoadResult paced = submit_together(make_client, {"paced", kPaced, kLoadPerSecond});
  show({.name = fmt::format("the same under {:.0f} submissions a second, p99", paced.rate),
        .value = paced.read_p99_ms,
        .unit = "ms",
        .target = 50});
  const Restart after = restart(cluster);
  show({.name = "back after kill -9 with 100,000 jobs",
        .value = after.seconds,
        .unit = "s",
        .target = 3});
  show({.name = "memory of the controller with them",
        .value = after.bytes / (1 << 20),
        .unit = "MiB",
        .target = 500});
}

}  // namespace
}  // namespace orrery

int main(int count, char** arguments) {
  const std::string self = std::filesystem::absolute(arguments[0]).string();
  if (count == 3 && std::string_view(arguments[1]) == "--work") {
    std::ofstream(arguments[2]) << orrery::work() << '\n';
    return 0;
  }
  std::string slurm_tools;
  for (int at = 1; at + 1 < count; ++at) {
    if (std::string_view(arguments[at]) == "--slurm") slurm_tools = arguments[at + 1];
  }
  orrery::run(self, slurm_tools);
  return 0;
}
