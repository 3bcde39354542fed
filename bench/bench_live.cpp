// A real controller with real agents on this machine: how many submissions it makes durable a
// second, how long a reader waits meanwhile, how fast small jobs turn over, how soon it is back
// after a kill with many jobs waiting.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <thread>

#include "bench/live_cluster.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {
namespace {

constexpr int kClients = 64;
constexpr int kAlone = 500;
constexpr int kTogether = 20'000;
constexpr int kTurnover = 2'000;
constexpr int kWaiting = 100'000;

template <class Response>
Response call(Client& client, const char* method, const google::protobuf::MessageLite& request) {
  Result<Response> answer = client.call<Response>(method, request);
  if (answer) return *std::move(answer);
  fmt::print(stderr, "bench_live: {}: {}\n", method, answer.error().text());
  std::exit(1);
}

/// Of one job, or of an array.
std::uint64_t submit(Client& client, const std::string& request, std::uint32_t accelerators,
                     int count = 1) {
  v1::SubmitJobRequest asked;
  asked.set_request_id(request);
  asked.set_spec(
      fmt::format("apiVersion: orrery/v1\nkind: Batch\nname: bench\n"
                  "roles: [{{accelerators: {}}}]\nlaunch: {{command: [\"true\"]}}\n{}",
                  accelerators, count > 1 ? fmt::format("array: {{count: {}}}\n", count) : ""));
  return call<v1::SubmitJobResponse>(client, "SubmitJob", asked).id();
}

double submit_alone(const LiveCluster& cluster) {
  const std::unique_ptr<Client> client = cluster.client();
  const double seconds = seconds_of([&] {
    for (int i = 0; i < kAlone; ++i) (void)submit(*client, fmt::format("alone-{}", i), 8);
  });
  return kAlone / seconds;
}

struct Together {
  double rate = 0;
  double read_p99_ms = 0;
};

/// 64 clients that submit, and one that lists 100 jobs again and again.
Together submit_together(const LiveCluster& cluster) {
  std::atomic<int> next = 0;
  std::atomic<bool> over = false;
  std::vector<double> reads;
  std::thread reader([&] {
    const std::unique_ptr<Client> client = cluster.client();
    v1::ListJobsRequest asked;
    asked.set_page_size(100);
    while (!over) {
      reads.push_back(
          seconds_of([&] { (void)call<v1::ListJobsResponse>(*client, "ListJobs", asked); }));
    }
  });
  std::vector<std::thread> clients;
  clients.reserve(kClients);
  const double seconds = seconds_of([&] {
    for (int at = 0; at < kClients; ++at) {
      clients.emplace_back([&] {
        const std::unique_ptr<Client> client = cluster.client();
        for (int i = next++; i < kTogether; i = next++) {
          (void)submit(*client, fmt::format("together-{}", i), 8);
        }
      });
    }
    for (std::thread& client : clients) client.join();
  });
  over = true;
  reader.join();
  std::sort(reads.begin(), reads.end());
  return {kTogether / seconds, reads[reads.size() * 99 / 100] * 1e3};
}

/// From the submission of an array of jobs that do nothing to the end of the last of them.
double turnover(const LiveCluster& cluster) {
  const std::unique_ptr<Client> client = cluster.client();
  const double seconds = seconds_of([&] {
    const std::uint64_t first = submit(*client, "turnover", 1, kTurnover);
    for (std::uint64_t id = first; id < first + kTurnover; ++id) {
      v1::WaitJobRequest asked;
      asked.set_id(id);
      (void)call<v1::Job>(*client, "WaitJob", asked);
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
    (void)submit(*client, fmt::format("waiting-{}", i), 8, kAtOnce);
  }
  Restart restart{.bytes = cluster.controller_bytes()};
  (void)::kill(cluster.controller(), SIGKILL);
  restart.seconds = seconds_of([&] {
    cluster.run("up");
    (void)call<v1::Cluster>(*client, "GetCluster", v1::GetClusterRequest());
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
  const Together together = submit_together(cluster);
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
