// bench/slurm_pilots.hpp - a cluster whose nodes are lent by a real Slurm of this machine, all of
// them from the start to the end, with an agent of eight emulated accelerators on each.
//
// Built by a benchmark that runs as root, on its thread, with a Slurm that outlives it. The program
// ends where a step fails. Cost: some seconds until all agents have joined.
#pragma once

#include <map>
#include <sstream>
#include <string>

#include "bench/live_cluster.hpp"
#include "bench/live_load.hpp"
#include "node/launch/run_directory.hpp"
#include "tests/slurm/slurm_cluster_test.hpp"

namespace orrery {

/// Returns a Slurm of nodes with eight CPUs each.
inline std::unique_ptr<SlurmCluster> start_slurm(int nodes, const std::string& scheduler) {
  auto slurm =
      SlurmCluster::start(nodes, {.cpus = 8, .lines = {"SchedulerParameters=" + scheduler}});
  if (slurm) return *std::move(slurm);
  fmt::print(stderr, "benchmark: {}\n", slurm.error().text());
  std::exit(1);
}

/// Seconds for each job of one CPU that does nothing, from the submission of an array of them to
/// the end of the last. Precondition: nothing else runs on this Slurm.
inline double slurm_turnover(const SlurmCluster& slurm, int jobs) {
  const std::string submit =
      fmt::format("sbatch --array=1-{} --output=/dev/null --wrap=true", jobs);
  const std::string wait =
      "for try in $(seq 3000); do test -z \"$(squeue --noheader)\" && exit; sleep 0.1; done; exit "
      "1";
  SlurmCluster::Run run;
  const double seconds = seconds_of([&] { run = slurm.run(submit + " && " + wait); });
  if (run.status == 0) return seconds / jobs;
  fmt::print(stderr, "benchmark: Slurm has not run its jobs: {}\n", run.output);
  std::exit(1);
}

/// Returns how many calls of each kind slurmctld has answered since it began.
inline std::map<std::string, long> slurm_calls(const SlurmCluster& slurm) {
  std::map<std::string, long> calls;
  std::istringstream lines(slurm.run("sdiag").output);
  bool by_kind = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Remote Procedure Call statistics")) {
      by_kind = line.find("by message type") != line.npos;
    }
    const std::size_t count = line.find("count:");
    if (!by_kind || count == line.npos) continue;
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    calls[kind] = std::stol(line.substr(count + 6));
  }
  return calls;
}

class SlurmPilots {
 public:
  SlurmPilots(const SlurmCluster& slurm, int nodes)
      : slurm_(slurm), nodes_(nodes), cluster_({.files = [&](const std::string& directory) {
          return files(slurm, nodes, directory);
        }}) {
    const std::unique_ptr<Client> client = cluster_.client();
    const auto joined = [&] {
      const auto now = call_or_exit<v1::Cluster>(*client, "GetCluster", v1::GetClusterRequest());
      return now.nodes_ready() == static_cast<std::uint32_t>(nodes);
    };
    if (slurm.await(joined)) return;
    fmt::print(stderr, "benchmark: agents have not joined: {}\n",
               slurm.run("squeue; tail -n 5 " + slurm.path("pilot-*.log")).output);
    std::exit(1);
  }
  ~SlurmPilots() {
    cluster_.run("down");
    (void)slurm_.run("scancel --user=root");
    const auto ended = [&] { return processes_naming({cluster_.agent_directory("")}).empty(); };
    if (!slurm_.await(ended)) fmt::print(stderr, "benchmark: agents have not ended\n");
    for (int i = 1; i <= nodes_; ++i) {
      leave_run_directory(cluster_.agent_directory(fmt::format("n{}", i)));
    }
  }
  SlurmPilots(const SlurmPilots&) = delete;
  SlurmPilots& operator=(const SlurmPilots&) = delete;

  [[nodiscard]] const LiveCluster& cluster() const { return cluster_; }
  /// Returns all processes of a node: those of Slurm, the agent, the keepers and their ranks.
  [[nodiscard]] std::vector<pid_t> processes(const std::string& node) const {
    std::vector<pid_t> all = processes_naming({cluster_.agent_directory(node)});
    const std::vector<pid_t> of_job =
        processes_naming({"SLURM_CONF=" + slurm_.conf(), "SLURMD_NODENAME=" + node});
    all.insert(all.end(), of_job.begin(), of_job.end());
    for (const pid_t each : of_job) {
      const pid_t parent = parent_of(each);
      if (program_of(parent) == "slurmstepd") all.push_back(parent);
    }
    all.push_back(slurm_.slurmd(node));
    return all;
  }
  /// Whether Slurm still says that the pilot of a node runs.
  [[nodiscard]] bool slurm_says_running(const std::string& node) const {
    return slurm_.run("squeue --noheader --format=%T --nodelist=" + node).output == "RUNNING\n";
  }

 private:
  [[nodiscard]] static LiveClusterOptions::Files files(const SlurmCluster& slurm, int nodes,
                                                       const std::string& directory) {
    // The nodes have accelerators for the import alone: Slurm lends whole nodes.
    const std::string import = slurm.path("import");
    std::filesystem::create_directories(import);
    std::ofstream(import + "/slurm.conf") << fmt::format(
        "ClusterName=test\nNodeName=n[1-{}] Gres=gpu:h100:8 CPUs=64 RealMemory=2000000\n", nodes);
    const std::string managers = fmt::format(
        "apiVersion: orrery/v1\nkind: Managers\nmanagers:\n"
        "  - name: hpc\n"
        "    nodes: n[1-{nodes}]\n"
        "    slurm: {{config: {conf}, output: {log}}}\n"
        "    pilots: {{keep: {nodes}, time: 12 h}}\n"
        "    agent:\n"
        "      directory: {agents}\n"
        "      options: [--emulate, \"h100:8\", --allow-agent-user, --address, 127.0.0.1]\n",
        fmt::arg("nodes", nodes), fmt::arg("conf", slurm.conf()),
        fmt::arg("log", slurm.path("pilot-%j.log")), fmt::arg("agents", directory + "/nodes"));
    const std::string fleet =
        slurm.run(fmt::format("{} fleet import slurm {}", ORRERY_PROGRAM, import)).output;
    return {{"fleet.yaml", fleet}, {"managers.yaml", managers}};
  }

  const SlurmCluster& slurm_;
  int nodes_;
  LiveCluster cluster_;
};

}  // namespace orrery
