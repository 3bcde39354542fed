// What Orrery does inside pilots of a real Slurm and on a log that controllers share, beside its
// own agents, Slurm's own jobs and SQLite in the same run: how fast jobs that do nothing and the
// ranks of gangs turn over, what that costs slurmctld, how soon a node that has died is lost, how
// many submissions are durable a second, how soon a standby decides, also under 2,048 agents.
//
//   bench_engines [--only jobs|deaths|submissions|takeovers|agents] [--takeovers N]
//   bench_engines --agents DIR AUTHORITY N   connects agents, and goes on until it is killed
//
// The first two need root and the packages of Slurm, the others etcd; what is missing is said,
// and the rest is measured.
#include <unistd.h>

#include <csignal>
#include <string_view>

#include "bench/live_takeover.hpp"
#include "bench/live_turnover.hpp"
#include "bench/slurm_peer.hpp"
#include "bench/slurm_pilots.hpp"
#include "bench/swarm_takeover.hpp"

namespace orrery {
namespace {

constexpr int kNodes = 4;
constexpr int kAccelerators = 8;  // of a node
constexpr int kTurns = 3;
constexpr int kSlurmJobs = 300;
constexpr int kSubmissions = 10'000;
constexpr int kDyingNodes = 8;
constexpr int kAgents = 2'048;
constexpr int kSwarmTakeovers = 5;

void show(const Figure& figure) {
  Figure own = figure;
  own.bench = "engines";
  print_figure(own);
  (void)std::fflush(stdout);
}

/// Says that something is not measured.
void skip(std::string_view what, std::string_view why) {
  fmt::print(stderr, "bench_engines: NOT MEASURED: {}: {}\n", what, why);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::string own_options(int nodes) {
  return fmt::format("--nodes {} --accelerators {}", nodes, kAccelerators);
}

// --- Jobs in pilots -----------------------------------------------------------------------------

/// Medians of turns.
struct Pace {
  double seconds = 0;
  double cpu_seconds = 0;
};

struct PaceOfBoth {
  Pace pilots;
  Pace own;
};

/// Turns jobs over in pilots and on own agents, by turns.
PaceOfBoth pace_of_both(const LiveCluster& pilots, const LiveCluster& own, const LoadJob& jobs) {
  struct Turns {
    std::vector<double> seconds;
    std::vector<double> cpu_seconds;
  } turns[2];
  for (int turn = 0; turn < kTurns; ++turn) {
    const std::string request = fmt::format("turn-{}-{}", jobs.accelerators, turn);
    const LiveCluster* clusters[2] = {&pilots, &own};
    for (int each = 0; each < 2; ++each) {
      const int at = (turn + each) % 2;  // each goes first in turn
      const Turnover turnover = turn_over(*clusters[at], request, jobs);
      turns[at].seconds.push_back(turnover.seconds);
      turns[at].cpu_seconds.push_back(turnover.cpu_seconds);
    }
  }
  return {{median(turns[0].seconds), median(turns[0].cpu_seconds)},
          {median(turns[1].seconds), median(turns[1].cpu_seconds)}};
}

struct JobFigures {
  LoadJob jobs;
  std::string name;
  double parts = 1;  ///< into which a job is divided: its ranks
  double target = 0;
};

/// Shows the figures of a kind of job. Returns the time of a job in pilots.
double show_pace(const LiveCluster& pilots, const LiveCluster& own, const JobFigures& kind) {
  const PaceOfBoth pace = pace_of_both(pilots, own, kind.jobs);
  const double us = 1e6 / kind.parts;
  show({.name = kind.name,
        .value = pace.pilots.seconds * us,
        .unit = "us",
        .target = kind.target,
        .peer = "own agents",
        .peer_value = pace.own.seconds * us});
  show({.name = "its CPU time: controller, agents, keepers and ranks",
        .value = pace.pilots.cpu_seconds * us,
        .unit = "us",
        .peer = "own agents",
        .peer_value = pace.own.cpu_seconds * us});
  return pace.pilots.seconds;
}

/// Calls by which the controller looks at Slurm every two seconds, whatever runs.
bool is_poll(std::string_view call) {
  return call == "REQUEST_JOB_USER_INFO" || call == "REQUEST_JOB_INFO" ||
         call == "REQUEST_NODE_INFO" || call == "REQUEST_PARTITION_INFO";
}

/// Calls of the daemons on the nodes, and that of sdiag.
bool is_foreign(std::string_view call) {
  return call == "MESSAGE_NODE_REGISTRATION_STATUS" || call == "REQUEST_STATS_INFO" ||
         call == "REQUEST_PING";
}

struct SlurmCalls {
  long polls = 0;
  long others = 0;
};

SlurmCalls calls_since(const SlurmCluster& slurm, const std::map<std::string, long>& before) {
  SlurmCalls calls;
  for (const auto& [kind, count] : slurm_calls(slurm)) {
    const auto past = before.find(kind);
    const long more = count - (past == before.end() ? 0 : past->second);
    if (is_poll(kind)) calls.polls += more;
    if (is_poll(kind) || is_foreign(kind) || more == 0) continue;
    fmt::print(stderr, "bench_engines: {} calls {} of slurmctld\n", more, kind);
    calls.others += more;
  }
  return calls;
}

/// Polls a second while no job runs.
double idle_polls(const SlurmCluster& slurm) {
  constexpr double kSeconds = 20;
  const std::map<std::string, long> before = slurm_calls(slurm);
  pause(kSeconds);
  return static_cast<double>(calls_since(slurm, before).polls) / kSeconds;
}

void measure_jobs() {
  const std::unique_ptr<SlurmCluster> slurm = start_slurm(kNodes, kSlurmScheduler);
  const double peer = slurm_turnover(*slurm, kSlurmJobs);
  const SlurmPilots pilots(*slurm, kNodes);
  const LiveCluster own({.up = own_options(kNodes)});
  const double idle = idle_polls(*slurm);
  const std::vector<JobFigures> kinds = {
      {{1, 2'000}, "a job of one accelerator that does nothing, in pilots", 1, 2'500},
      {{8, 500}, "start and end of a rank, gangs of 8 in pilots", 8, 2'000},
      {{32, 150}, "start and end of a rank, gangs of 32 on four nodes in pilots", 32, 2'000},
  };
  const std::map<std::string, long> before = slurm_calls(*slurm);
  double single = 0;
  int jobs = 0;
  const double seconds = seconds_of([&] {
    for (const JobFigures& kind : kinds) {
      const double job = show_pace(pilots.cluster(), own, kind);
      if (kind.parts == 1) single = job;
      jobs += kTurns * kind.jobs.count;
    }
  });
  const SlurmCalls calls = calls_since(*slurm, before);
  show({.name = "the job of one accelerator beside Slurm's own of one CPU",
        .value = single * 1e6,
        .unit = "us",
        .peer = SlurmPeer::description(),
        .peer_value = peer * 1e6});
  show({.name = "calls of slurmctld for an attempt",
        .value = static_cast<double>(calls.others) / jobs,
        .unit = "calls",
        .target = 0});
  show({.name = "calls of slurmctld by polls, a second",
        .value = static_cast<double>(calls.polls) / seconds,
        .unit = "calls",
        .peer = "without jobs",
        .peer_value = idle});
}

// --- Death of a node ----------------------------------------------------------------------------

/// Seconds since the node went silent, a value a death.
struct Deaths {
  std::vector<double> lost;   ///< until its job does not count as running there
  std::vector<double> again;  ///< until the job runs on another node
};

/// What is to be known of the nodes of a cluster.
struct NodeAccess {
  std::function<std::vector<pid_t>(const std::string& node)> processes;
  std::function<void(const std::string& node)> check_lost;  ///< called when a node is lost
};

/// Stops all processes of the node with the job, time after time, so that nothing of it says that
/// it has ended: no process, no connection, no resource manager.
Deaths let_nodes_die(const LiveCluster& cluster, const NodeAccess& nodes) {
  const std::unique_ptr<Client> client = cluster.client();
  v1::GetJobRequest asked;
  asked.set_id(start_endless(*client, kAccelerators, "restart: {policy: at-once}\n"));
  const auto look = [&] { return call_or_exit<v1::Job>(*client, "GetJob", asked); };
  const auto runs = [](const v1::Job& job) { return job.phase() == "running"; };
  const RealClock clock;
  Deaths deaths;
  for (int death = 0; death + 1 < kDyingNodes; ++death) {
    v1::Job job = look();
    const std::uint32_t attempt = job.attempt();
    const std::string node = job.parts(0).node();
    const std::vector<pid_t> processes = nodes.processes(node);
    signal_all(processes, SIGSTOP);
    const Instant silent = clock.now_monotonic();
    const auto since = [&] { return (clock.now_monotonic() - silent).count_seconds(); };
    for (; runs(job) && job.attempt() == attempt; job = look()) pause(0.002);
    deaths.lost.push_back(since());
    nodes.check_lost(node);
    for (; !runs(job) || job.attempt() == attempt; job = look()) pause(0.002);
    deaths.again.push_back(since());
    signal_all(processes, SIGKILL);
  }
  return deaths;
}

void show_deaths(const Deaths& pilots, const Deaths& own) {
  const auto most = [](const std::vector<double>& all) { return *std::ranges::max_element(all); };
  show({.name = "a silent node with its pilot until it is lost, most",
        .value = most(pilots.lost),
        .unit = "s",
        .target = 5.5,
        .peer = "own agents",
        .peer_value = most(own.lost)});
  show({.name = "the same, median",
        .value = median(pilots.lost),
        .unit = "s",
        .peer = "own agents",
        .peer_value = median(own.lost)});
  show({.name = "until its job runs on another node, median",
        .value = median(pilots.again),
        .unit = "s",
        .peer = "own agents",
        .peer_value = median(own.again)});
}

void measure_deaths() {
  const std::unique_ptr<SlurmCluster> slurm = start_slurm(kDyingNodes, kSlurmScheduler);
  const SlurmPilots pilots(*slurm, kDyingNodes);
  const auto check_lost = [&](const std::string& node) {
    if (pilots.slurm_says_running(node)) return;
    fmt::print(stderr, "bench_engines: Slurm noticed the death of {}, not the silence alone\n",
               node);
    std::exit(1);
  };
  const Deaths in_pilots =
      let_nodes_die(pilots.cluster(),
                    {[&](const std::string& node) { return pilots.processes(node); }, check_lost});
  const LiveCluster own({.up = own_options(kDyingNodes)});
  const auto processes = [&](const std::string& node) {
    return processes_naming({own.agent_directory(node)});
  };
  show_deaths(in_pilots, let_nodes_die(own, {processes, [](const std::string&) {}}));
}

// --- A log that controllers share ---------------------------------------------------------------

const std::string kShared = " --controllers 3 --store etcd";

void measure_submissions() {
  const LiveCluster etcd({.up = own_options(kNodes) + kShared});
  const LiveCluster sqlite({.up = own_options(kNodes)});
  std::vector<double> rates[2];
  const LiveCluster* clusters[2] = {&etcd, &sqlite};
  for (const LiveCluster* each : clusters) {
    (void)start_endless(*each->client(), kNodes * kAccelerators);
  }
  for (int turn = 0; turn < kTurns; ++turn) {
    for (int at = 0; at < 2; ++at) {
      const LoadResult load = submit_together([&] { return clusters[at]->client(); },
                                              {fmt::format("turn-{}", turn), kSubmissions});
      rates[at].push_back(load.rate);
    }
  }
  show({.name = "a durable submission, 64 clients, 3 members of etcd",
        .value = 1e6 / median(rates[0]),
        .unit = "us",
        .target = 500,
        .peer = "one controller, SQLite",
        .peer_value = 1e6 / median(rates[1])});
}

void measure_takeovers(int takeovers) {
  const LiveCluster cluster({.up = own_options(1) + kShared});
  const Takeovers result = take_over(cluster, takeovers);
  show({.name = fmt::format("kill -9 of the leader until a standby decides, {} times, median",
                            result.seconds.size()),
        .value = median(result.seconds),
        .unit = "s"});
  show({.name = "the same, 99th percentile",
        .value = result.seconds[(result.seconds.size() * 99 - 1) / 100],
        .unit = "s",
        .target = 3});
  show({.name = fmt::format("jobs lost or doubled, of {}", result.jobs),
        .value = static_cast<double>(result.wrong),
        .unit = "jobs",
        .target = 0});
}

void measure_agents(const std::string& self) {
  open_many_files();
  SwarmCluster cluster(self, kAgents);
  std::vector<double> decided;
  std::vector<double> heard;
  for (int i = 0; i < kSwarmTakeovers; ++i) {
    const SwarmTakeover takeover = cluster.take_over();
    decided.push_back(takeover.decided);
    heard.push_back(takeover.heard);
  }
  show({.name = "kill -9 of the leader of 2,048 agents until a standby decides, most of 5",
        .value = *std::ranges::max_element(decided),
        .unit = "s",
        .target = 3});
  show({.name = "until it has heard all of them, most of 5",
        .value = *std::ranges::max_element(heard),
        .unit = "s",
        .target = 5});
}

struct Options {
  std::string self;
  std::string only;
  int takeovers = 60;
};

void run(const Options& options) {
  const auto asked = [&](std::string_view name) {
    return options.only.empty() || options.only == name;
  };
  const std::string no_slurm = SlurmCluster::missing();
  const std::string no_etcd =
      ::access("/usr/bin/etcd", X_OK) == 0 ? "" : "/usr/bin/etcd is not installed";
  const auto measure = [&](std::string_view name, const std::string& missing, const auto& part) {
    if (!asked(name)) return;
    if (!missing.empty()) return skip(name, missing);
    part();
  };
  measure("jobs", no_slurm, measure_jobs);
  measure("deaths", no_slurm, measure_deaths);
  measure("submissions", no_etcd, measure_submissions);
  measure("takeovers", no_etcd, [&] { measure_takeovers(options.takeovers); });
  measure("agents", no_etcd, [&] { measure_agents(options.self); });
}

}  // namespace
}  // namespace orrery

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments, arguments + count);
  if (words.size() == 5 && words[1] == "--agents") {
    return orrery::run_agents(words[2], words[3], std::atoi(arguments[4]));
  }
  orrery::Options options{.self = std::filesystem::absolute(words[0]).string(), .only = ""};
  for (int at = 1; at + 1 < count; ++at) {
    if (std::string_view(arguments[at]) == "--only") options.only = arguments[at + 1];
    if (std::string_view(arguments[at]) == "--takeovers") {
      options.takeovers = std::max(1, std::atoi(arguments[at + 1]));
    }
  }
  orrery::run(options);
  return 0;
}
