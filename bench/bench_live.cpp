// A real controller with real agents on this machine: how many submissions it makes durable a
// second, how long a reader waits meanwhile, how fast small jobs turn over, how soon it is back
// after a kill with many jobs waiting.
#include <unistd.h>

#include <csignal>

#include "bench/live_cluster.hpp"
#include "bench/live_load.hpp"

namespace orrery {
namespace {

constexpr int kAlone = 500;
constexpr int kTogether = 20'000;
constexpr int kTurnover = 2'000;
constexpr int kWaiting = 100'000;

double submit_alone(const LiveCluster& cluster) {
  const std::unique_ptr<Client> client = cluster.client();
  const double seconds = seconds_of([&] {
    for (int i = 0; i < kAlone; ++i) (void)submit_load(*client, fmt::format("alone-{}", i), {});
  });
  return kAlone / seconds;
}

/// From the submission of an array of jobs that do nothing to the end of the last of them.
double turnover(const LiveCluster& cluster) {
  const std::unique_ptr<Client> client = cluster.client();
  const double seconds = seconds_of([&] {
    const std::uint64_t first = submit_load(*client, "turnover", {1, kTurnover});
    for (std::uint64_t id = first; id < first + kTurnover; ++id) {
      v1::WaitJobRequest asked;
      asked.set_id(id);
      (void)call_or_exit<v1::Job>(*client, "WaitJob", asked);
    }
  });
  return kTurnover / seconds;
}

struct Restart {
  double seconds = 0;
  double bytes = 0;
};

/// Killed with so many jobs waiting; until it has answered what it knows.
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

void show(const std::string& name, double value, const std::string& unit,
          std::optional<double> target = std::nullopt) {
  print_figure({.bench = "live", .name = name, .value = value, .unit = unit, .target = target});
}

void run() {
  const LiveCluster cluster(4, 8);
  show("a job that does nothing, from end to end, over 4 agents", 1e6 / turnover(cluster), "us",
       2000);
  // Those fill the nodes and then wait.
  show("a durable submission, 1 client", 1e6 / submit_alone(cluster), "us");
  const LoadResult together = submit_together([&] { return cluster.client(); }, kTogether);
  show("a durable submission, 64 clients", 1e6 / together.rate, "us", 500);
  show("list of 100 jobs meanwhile, p99", together.read_p99_ms, "ms", 50);
  const Restart after = restart(cluster);
  show("back after kill -9 with 100,000 jobs", after.seconds, "s", 3);
  show("memory of the controller with them", after.bytes / (1 << 20), "MiB", 500);
}

}  // namespace
}  // namespace orrery

int main() {
  orrery::run();
  return 0;
}
