// tests/slurm/slurm_cluster_test.hpp - a real Slurm for a test: munged, slurmctld and one slurmd a
// node, on this machine, in a directory and on ports of its own.
//
// Built by a test or benchmark that runs as root, on its thread. What it started and what its jobs
// started ends with it; the daemons also if the test is killed. Cost: about a second, and 15 MB a
// node.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/system/port_block_test.hpp"

namespace orrery {

struct SlurmClusterOptions {
  int message_timeout = 2;   ///< seconds in which programs look for a slurmctld that is not there
  int slurmd_timeout = 300;  ///< seconds until a node without an answer is down
  int cpus = 4;              ///< of each node
  std::vector<std::string> lines;  ///< further ones of slurm.conf
  std::string node_features = "";  ///< further settings of each node, such as "Feature=x"
};

class SlurmCluster {
 public:
  struct Run {
    int status = 0;
    std::string output;  ///< and errors
  };

  /// Returns why no Slurm can run here; empty: one can.
  [[nodiscard]] static std::string missing() {
    for (const char* each : {"/usr/sbin/munged", "/usr/sbin/slurmctld", "/usr/sbin/slurmd",
                             "/usr/bin/sbatch", "/usr/bin/srun"}) {
      if (::access(each, X_OK) != 0) return fmt::format("{} is not installed", each);
    }
    return ::geteuid() == 0 ? "" : "only root can start a Slurm";
  }
  /// Starts a cluster of the nodes n1, n2 .., and waits until they are idle. Errors
  /// (kEnvironment): what did not start, with its log. Precondition: missing() is empty, and nodes
  /// <= 13.
  [[nodiscard]] static Result<std::unique_ptr<SlurmCluster>> start(
      int nodes, const SlurmClusterOptions& options = {}) {
    // In memory if possible: slurmctld waits for what it writes.
    const bool memory = ::access("/dev/shm", W_OK) == 0;
    std::string directory =
        (memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path()) /
        "orrery-slurm-XXXXXX";
    if (::mkdtemp(directory.data()) == nullptr) return environment_error("no directory for Slurm");
    auto cluster = std::make_unique<SlurmCluster>(directory);
    std::filesystem::create_directory(cluster->path("state"));
    cluster->write_munge_key();
    cluster->write_conf(nodes, options);
    if (Status up = cluster->start_munge(); !up) return forward_error(up);
    if (Status up = cluster->start_controller(); !up) return forward_error(up);
    for (int i = 1; i <= nodes; ++i) cluster->start_slurmd(fmt::format("n{}", i));
    const std::vector<std::string> all_idle(static_cast<std::size_t>(nodes), "idle.\n");
    const std::string wanted = fmt::format("{}", fmt::join(all_idle, ""));
    const auto idle = [&] {
      return cluster->run("sinfo --noheader --Node --format=%t.").output == wanted;
    };
    if (cluster->await(idle)) return cluster;
    return environment_error(
        fmt::format("Slurm has no idle nodes: {}{}", cluster->run("sinfo --Node --long").output,
                    cluster->run("tail -n 20 " + cluster->path("*.log")).output));
  }

  /// `directory`: an empty one, which is gone with this object. For start().
  explicit SlurmCluster(std::string directory) : directory_(std::move(directory)) {}
  ~SlurmCluster() {
    for (auto& [name, pid] : daemons_) kill(pid);
    constexpr int kSweepsMax = 500;
    for (int i = 0; i < kSweepsMax && kill_left() > 0; ++i) ::poll(nullptr, 0, kPauseMs);
    std::error_code gone;
    std::filesystem::remove_all(directory_, gone);
  }
  SlurmCluster(const SlurmCluster&) = delete;
  SlurmCluster& operator=(const SlurmCluster&) = delete;

  /// Returns the path of its slurm.conf.
  [[nodiscard]] std::string conf() const { return path("slurm.conf"); }
  /// Returns a path in its directory.
  [[nodiscard]] std::string path(const std::string& name) const { return directory_ + "/" + name; }

  /// Runs a shell command to its end, with Slurm's programs for this cluster.
  [[nodiscard]] Run run(const std::string& command) const {
    const std::string whole = fmt::format("export SLURM_CONF={}; {{ {}\n}} 2>&1", conf(), command);
    FILE* pipe = ::popen(whole.c_str(), "r");
    if (pipe == nullptr) return {.status = -1, .output = "popen failed"};
    Run run;
    std::array<char, 4096> bytes;
    for (std::size_t got = 0; (got = std::fread(bytes.data(), 1, bytes.size(), pipe)) > 0;) {
      run.output.append(bytes.data(), got);
    }
    const int status = ::pclose(pipe);
    run.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return run;
  }
  /// Waits until a condition holds, up to a minute; returns whether it does.
  template <class Condition>
  [[nodiscard]] bool await(Condition&& condition) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      ::poll(nullptr, 0, kPauseMs);
    }
    return true;
  }

  /// Kills slurmctld; what it has not written yet is lost.
  void kill_controller() { kill(daemons_["slurmctld"]); }
  /// Starts slurmctld with the state that it has written, and waits until it answers. Errors
  /// (kEnvironment): it does not, with its log.
  [[nodiscard]] Status start_controller() {
    launch("slurmctld", {"/usr/sbin/slurmctld", "-D", "-f", conf()});
    const auto up = [&] { return run("scontrol ping").output.find("UP") != std::string::npos; };
    if (await(up)) return {};
    return environment_error("slurmctld does not answer: " +
                             run("tail -n 20 " + path("slurmctld.log")).output);
  }
  /// Returns the process of a node's slurmd.
  [[nodiscard]] pid_t slurmd(const std::string& node) const {
    return daemons_.at("slurmd-" + node);
  }
  /// Kills the slurmd of a node; processes of jobs stay there.
  void kill_slurmd(const std::string& node) { kill(daemons_["slurmd-" + node]); }
  void start_slurmd(const std::string& node) {
    std::filesystem::create_directories(path("spool-" + node));
    launch("slurmd-" + node, {"/usr/sbin/slurmd", "-D", "-N", node, "-f", conf()});
  }

  /// Kills munged, without which no call of Slurm is answered.
  void kill_munge() { kill(daemons_["munged"]); }
  /// Starts munged, and waits until it listens. Errors (kEnvironment): it does not, with its
  /// output.
  [[nodiscard]] Status start_munge() {
    const std::string socket = path("./munge.sock");
    std::filesystem::remove(socket);
    launch("munged",
           {"/usr/sbin/munged", "--foreground", "--force", "--num-threads=2", "--socket=" + socket,
            "--key-file=" + path("munge.key"), "--pid-file=" + path("munged.pid"),
            "--log-file=" + path("munged.log"), "--seed-file=" + path("munge.seed")});
    if (await([&] { return ::access(socket.c_str(), F_OK) == 0; })) return {};
    return environment_error("munged does not start: " + run("cat " + path("munged.out")).output);
  }

 private:
  static constexpr int kPauseMs = 20;

  void write_munge_key() const {
    std::ofstream key(path("munge.key"), std::ios::binary);
    std::ifstream random("/dev/urandom", std::ios::binary);
    std::array<char, 1024> bytes;
    random.read(bytes.data(), bytes.size());
    key.write(bytes.data(), bytes.size());
    std::filesystem::permissions(path("munge.key"), std::filesystem::perms::owner_read |
                                                        std::filesystem::perms::owner_write);
  }

  void write_conf(int nodes, const SlurmClusterOptions& options) const {
    std::array<char, 256> name{};
    (void)::gethostname(name.data(), name.size() - 1);
    const std::string host = std::string(name.data()).substr(0, std::string(name.data()).find('.'));
    const int port = ports_.first();
    std::ofstream(conf()) << fmt::format(
        "ClusterName=test\n"
        "SlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={port}\n"
        "SlurmUser=root\nSlurmdUser=root\n"
        "AuthType=auth/munge\nAuthInfo=socket={dir}/munge.sock\n"
        "StateSaveLocation={dir}/state\nSlurmdSpoolDir={dir}/spool-%n\n"
        "SlurmctldPidFile={dir}/slurmctld.pid\nSlurmdPidFile={dir}/slurmd-%n.pid\n"
        "SlurmctldLogFile={dir}/slurmctld.log\nSlurmdLogFile={dir}/slurmd-%n.log\n"
        "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\n"
        "JobAcctGatherType=jobacct_gather/none\n"
        "AccountingStorageType=accounting_storage/none\n"
        "SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nMailProg=/bin/true\n"
        "ReturnToService=2\nSlurmdParameters=config_overrides\nInactiveLimit=0\nKillWait=2\n"
        "MessageTimeout={message_timeout}\nSlurmdTimeout={slurmd_timeout}\n"
        "NodeName=n[1-{nodes}] NodeHostName={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] "
        "CPUs={cpus} RealMemory=1000 State=UNKNOWN {features}\n"
        "PartitionName=all Nodes=n[1-{nodes}] Default=YES MaxTime=INFINITE State=UP\n"
        "{more}\n",
        fmt::arg("host", host), fmt::arg("port", port), fmt::arg("dir", path(".")),
        fmt::arg("message_timeout", options.message_timeout),
        fmt::arg("slurmd_timeout", options.slurmd_timeout), fmt::arg("nodes", nodes),
        fmt::arg("cpus", options.cpus), fmt::arg("first", port + 1), fmt::arg("last", port + nodes),
        fmt::arg("features", options.node_features),
        fmt::arg("more", fmt::join(options.lines, "\n")));
  }

  void launch(const std::string& name, std::vector<std::string> words) {
    const std::string log = path(name + ".out");
    std::string variable = "SLURM_CONF=" + conf();
    std::string search = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
    std::array<char*, 3> environment{variable.data(), search.data(), nullptr};
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      if (out < 0 || ::dup2(out, 1) < 0 || ::dup2(out, 2) < 0) ::_exit(126);
      ::execve(pointers[0], pointers.data(), environment.data());
      ::_exit(127);
    }
    daemons_[name] = child;
  }

  static void kill(pid_t& daemon) {
    if (daemon <= 0) return;
    ::kill(daemon, SIGKILL);
    ::waitpid(std::exchange(daemon, 0), nullptr, 0);
  }

  /// Kills what jobs left behind, which has this cluster in its environment; returns how much was
  /// there.
  [[nodiscard]] int kill_left() const {
    const std::string sign = "SLURM_CONF=" + conf();
    int found = 0;
    std::error_code gone;
    for (const auto& process : std::filesystem::directory_iterator("/proc", gone)) {
      const std::string number = process.path().filename();
      if (number.find_first_not_of("0123456789") != number.npos) continue;
      std::ifstream file(process.path() / "environ", std::ios::binary);
      const std::string environment(std::istreambuf_iterator<char>(file), {});
      if (environment.find(sign) == environment.npos) continue;
      ++found;
      ::kill(std::stoi(number), SIGKILL);
    }
    return found;
  }

  std::string directory_;
  PortBlock ports_;
  std::map<std::string, pid_t> daemons_;
};

}  // namespace orrery
