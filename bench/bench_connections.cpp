// A controller of 2,048 nodes, each with an agent of its own over mutual TLS, and 10,000 watchers
// of its events: the cost of a connection, the latency of calls meanwhile, the time an event takes
// to reach all watchers. Agents are the state machine of real ones, run in another process; they
// report launches as up at once without running them. Also a controller of 16,384 nodes without
// agents: its memory with 100,000 jobs, and its restart time with them.
//
//   bench_connections                 the figures
//   bench_connections --agents DIR N  connects them, says so, and goes on until it is killed
//   bench_connections --watchers DIR N  likewise; says when an event has reached all of them
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <deque>

#include "bench/agent_swarm.hpp"
#include "bench/bench_process.hpp"
#include "bench/live_cluster.hpp"
#include "bench/live_load.hpp"
#include "bench/process_spend.hpp"

namespace orrery {
namespace {

constexpr int kAgents = 2'048;
constexpr int kWatchers = 10'000;
constexpr int kWatchersOfAChannel = 100;
constexpr int kSubmissions = 20'000;
constexpr int kNodes = 16'384;
constexpr int kWaiting = 100'000;

// --- Watchers -----------------------------------------------------------------------------------

/// How many watchers have received an update, as far as the benchmark waits for it.
struct Heard {
  std::atomic<int> watchers = 0;
};

class Watcher final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Watcher(grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer>& stub,
          const std::string& token, Heard& heard)
      : heard_(heard) {
    context_.AddMetadata("authorization", "Bearer " + token);
    stub.PrepareBidiStreamingCall(&context_, "/orrery.v1.Orrery/WatchEvents", {}, this);
    StartWriteLast(&request_, {});
    StartRead(&event_);
    StartCall();
  }
  void OnReadDone(bool good) override {
    if (!good) give_up("a watcher lost its stream");
    event_.Clear();
    if (!told_.exchange(true)) ++heard_.watchers;
    StartRead(&event_);
  }
  void OnDone(const grpc::Status& status) override { give_up(status.error_message()); }
  void again() { told_ = false; }

 private:
  Heard& heard_;
  grpc::ClientContext context_;
  grpc::Slice nothing_;
  grpc::ByteBuffer request_{&nothing_, 1};  ///< an empty message; without a slice it is none
  grpc::ByteBuffer event_;
  std::atomic<bool> told_ = false;
};

/// Each line read asks whether all watchers have received an event since the last line.
int run_watchers(const std::string& directory, int count) {
  RealStorage storage;
  const ClusterAddress at = must(read_cluster_address(storage, directory));
  Heard heard;
  std::deque<grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer>> stubs;
  std::deque<Watcher> watchers;
  for (int i = 0; i < count; ++i) {
    if (i % kWatchersOfAChannel == 0) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      stubs.emplace_back(grpc::CreateCustomChannel(
          at.address, grpc::SslCredentials({.pem_root_certs = at.authority}), arguments));
    }
    watchers.emplace_back(stubs.back(), at.token, heard);
  }
  say("made");
  std::array<char, 16> line{};
  while (std::fgets(line.data(), line.size(), stdin) != nullptr) {
    if (line[0] == 'n') {  // start counting anew
      heard.watchers = 0;
      for (Watcher& watcher : watchers) watcher.again();
    }
    say(fmt::format("{}", heard.watchers.load()));
  }
  std::_Exit(0);
}

// --- Processes ----------------------------------------------------------------------------------

void show(const Figure& figure) { print_figure(figure); }

void show(const std::string& name, double value, const std::string& unit,
          std::optional<double> target = std::nullopt) {
  show({.bench = "connections", .name = name, .value = value, .unit = unit, .target = target});
}

std::string fleet_yaml(int nodes) {
  return "apiVersion: orrery/v1\nkind: Fleet\nname: bench\nsites:\n- name: here\n  halls:\n"
         "  - name: hall\n    pods:\n    - name: pod\n      racks:\n" +
         swarm_racks(nodes);
}

std::unique_ptr<Client> client_of(const std::string& directory) {
  RealStorage storage;
  const ClusterAddress at = must(read_cluster_address(storage, directory));
  ClientOptions options = client_options(at);
  options.retry = Duration::minutes(1);
  return std::make_unique<Client>(std::move(options));
}

void measure_agents(const std::string& self, const std::string& directory, pid_t controller,
                    std::unique_ptr<BenchProcess>& agents) {
  const std::unique_ptr<Client> client = client_of(directory);
  const Spent before = spent_by(controller);
  agents = std::make_unique<BenchProcess>(
      std::vector<std::string>{self, "--agents", directory, fmt::format("{}", kAgents)});
  (void)agents->line();
  const double seconds = seconds_of([&] {
    while (call_or_exit<v1::Cluster>(*client, "GetCluster", v1::GetClusterRequest()).nodes_ready() <
           kAgents) {
      pause(0.05);
    }
  });
  const Spent up = spent_by(controller);
  show("2,048 agents, each with a TLS connection, all ready", seconds, "s");
  show("memory of the controller a connection", (up.bytes - before.bytes) / kAgents / 1024, "KiB");
  pause(10);
  const Spent later = spent_by(controller);
  show("its CPU for their beats, of one core", (later.cpu_seconds - up.cpu_seconds) * 10, "%");
}

/// Runs a job on each node, so that jobs submitted from now on wait.
void fill(const std::string& directory) {
  const std::unique_ptr<Client> client = client_of(directory);
  (void)submit_load(*client, "filling", {8, kAgents});
  while (call_or_exit<v1::Cluster>(*client, "GetCluster", v1::GetClusterRequest()).jobs_running() <
         kAgents) {
    pause(0.5);
  }
}

void measure_watchers(const std::string& self, const std::string& directory, pid_t controller) {
  const std::unique_ptr<Client> client = client_of(directory);
  const Spent before = spent_by(controller);
  const BenchProcess watchers({self, "--watchers", directory, fmt::format("{}", kWatchers)});
  (void)watchers.line();
  const std::string all = fmt::format("{}\n", kWatchers);
  // Waits until all watchers are connected: only connected ones see events.
  int number = 0;
  const auto happen = [&] { (void)submit_load(*client, fmt::format("watched-{}", number++), {}); };
  double waited = 0;
  for (std::string heard = watchers.ask("n\n"); heard != all; heard = watchers.ask("?\n")) {
    happen();
    pause(0.5);
    if ((waited += 0.5) > 300) give_up("only " + heard + " watchers are told");
  }
  const Spent up = spent_by(controller);
  show("memory of the controller a watcher", (up.bytes - before.bytes) / kWatchers / 1024, "KiB");
  std::vector<double> delays;
  for (int i = 0; i < 10; ++i) {
    (void)watchers.ask("n\n");
    delays.push_back(seconds_of([&] {
      happen();
      while (watchers.ask("?\n") != all) pause(0.01);
    }));
  }
  std::sort(delays.begin(), delays.end());
  show("a submission until 10,000 watchers have heard of it, median", delays[5], "s");
}

/// A controller's directory, with a fleet of this many nodes.
class BenchDirectory {
 public:
  explicit BenchDirectory(int nodes) {
    std::filesystem::create_directories("build/bench");
    std::string name = "build/bench/connections-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) give_up("no directory");
    path_ = std::filesystem::absolute(name);
    std::ofstream(path_ + "/fleet.yaml") << fleet_yaml(nodes);
  }
  ~BenchDirectory() { std::filesystem::remove_all(path_); }
  BenchDirectory(const BenchDirectory&) = delete;
  BenchDirectory& operator=(const BenchDirectory&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Starts the controller and waits until it serves.
  [[nodiscard]] std::unique_ptr<BenchProcess> start() const {
    auto controller = std::make_unique<BenchProcess>(
        std::vector<std::string>{std::string(ORRERY_PROGRAM) + "d", "--dir", path_});
    while (!std::filesystem::exists(path_ + "/cluster.json")) pause(0.05);
    return controller;
  }

 private:
  std::string path_;
};

void measure_many(const std::string& self) {
  const BenchDirectory directory(kAgents);
  const std::unique_ptr<BenchProcess> controller = directory.start();
  std::unique_ptr<BenchProcess> agents;
  measure_agents(self, directory.path(), controller->pid(), agents);
  fill(directory.path());
  measure_watchers(self, directory.path(), controller->pid());
  const auto make_client = [&] { return client_of(directory.path()); };
  const LoadResult most = submit_together(make_client, {"together", kSubmissions});
  show("a durable submission, 64 clients, under 2,048 agents", 1e6 / most.rate, "us", 500);
  show("list of 100 jobs meanwhile, p99", most.read_p99_ms, "ms");
  const LoadResult paced = submit_together(make_client, {"paced", kSubmissions, kLoadPerSecond});
  show(fmt::format("the same under {:.0f} submissions a second, p99", paced.rate),
       paced.read_p99_ms, "ms", 50);
}

void measure_large() {
  constexpr int kAtOnce = 10'000;
  constexpr double kMiB = 1 << 20;
  const BenchDirectory directory(kNodes);
  std::unique_ptr<BenchProcess> controller = directory.start();
  for (int i = 0; i < kWaiting / kAtOnce; ++i) {
    (void)submit_load(*client_of(directory.path()), fmt::format("waiting-{}", i), {8, kAtOnce});
  }
  show("memory of a controller of 16,384 nodes with 100,000 jobs",
       spent_by(controller->pid()).bytes / kMiB, "MiB", 500);
  (void)::kill(controller->pid(), SIGKILL);
  controller.reset();
  show("back after kill -9 with them", seconds_of([&] {
         controller = directory.start();
         (void)call_or_exit<v1::Cluster>(*client_of(directory.path()), "GetCluster",
                                         v1::GetClusterRequest());
       }),
       "s", 3);
}

void run(const std::string& self) {
  open_many_files();
  measure_large();
  measure_many(self);
}

}  // namespace
}  // namespace orrery

int main(int count, char** arguments) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> words(arguments, arguments + count);
  if (words.size() == 4 && words[1] == "--agents") {
    return orrery::run_agents(words[2], words[2], std::stoi(words[3]));
  }
  if (words.size() == 4 && words[1] == "--watchers") {
    return orrery::run_watchers(words[2], std::stoi(words[3]));
  }
  orrery::run(std::filesystem::absolute(words[0]).string());
  return 0;
}
