// bench/live_cluster.hpp - a cluster of this machine for a benchmark: `orrery up` in a directory of
// the build, and clients of it.
//
// Built by a benchmark, on its thread; client() may be called by any thread. What it started ends
// with it, but for agents in pilots, which end with their resource manager. The program ends where
// a step fails.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <utility>

#include "api/cluster_directory.hpp"
#include "api/grpc/client.hpp"
#include "base/system/real_storage.hpp"
#include "bench/figure.hpp"
#include "bench/node_processes.hpp"

namespace orrery {

struct LiveClusterOptions {
  using Files = std::map<std::string, std::string>;  ///< texts by name

  std::string up;  ///< options of `orrery up`, such as "--nodes 4"
  /// Returns what lies in its directory before it starts.
  std::function<Files(const std::string& directory)> files = [](const std::string&) {
    return Files();
  };
};

class LiveCluster {
 public:
  explicit LiveCluster(const LiveClusterOptions& options) {
    std::filesystem::create_directories("build/bench");
    std::string name = "build/bench/live-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::exit(1);
    directory_ = std::filesystem::absolute(name);
    for (const auto& [file, text] : options.files(directory_)) {
      std::ofstream(directory_ + "/" + file) << text;
    }
    run("up " + options.up);
  }
  ~LiveCluster() {
    (void)command("down");
    std::filesystem::remove_all(directory_);
  }
  LiveCluster(const LiveCluster&) = delete;
  LiveCluster& operator=(const LiveCluster&) = delete;

  /// Runs a verb of the command line; ends the program if it fails.
  void run(const std::string& verb) const {
    if (command(verb) == 0) return;
    fmt::print(stderr, "benchmark: `orrery {}` failed\n", verb);
    std::exit(1);
  }
  [[nodiscard]] std::unique_ptr<Client> client() const {
    ClientOptions options = client_options(address());
    options.retry = Duration::minutes(1);
    return std::make_unique<Client>(std::move(options));
  }
  /// Returns what cluster.json says; its address is that of the controller that leads.
  [[nodiscard]] ClusterAddress address() const {
    RealStorage storage;
    Result<ClusterAddress> at = read_cluster_address(storage, directory_);
    if (!at) std::exit(1);
    return *std::move(at);
  }
  [[nodiscard]] const std::string& path() const { return directory_; }
  /// Returns the directory of a node's agent.
  [[nodiscard]] std::string agent_directory(const std::string& node) const {
    return directory_ + "/nodes/" + node;
  }
  [[nodiscard]] pid_t controller() const { return pid_in(directory_ + "/orreryd.pid"); }
  /// CPU seconds of the controller, the agents, and of keepers and ranks that have ended.
  [[nodiscard]] double cpu_seconds() const {
    double seconds = cpu_seconds_of(controller());
    for (const pid_t agent : processes_naming({agent_directory("")})) {
      if (program_of(agent) == "orrery-agent") seconds += cpu_seconds_of(agent);
    }
    return seconds;
  }
  /// Resident bytes of the controller.
  [[nodiscard]] double controller_bytes() const {
    std::ifstream text(fmt::format("/proc/{}/statm", controller()));
    double pages = 0;
    double resident = 0;
    text >> pages >> resident;
    return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
  }

 private:
  [[nodiscard]] static pid_t pid_in(const std::string& file) {
    pid_t pid = 0;
    std::ifstream(file) >> pid;
    return pid;
  }
  /// CPU seconds of a process with its ended children, and theirs.
  [[nodiscard]] static double cpu_seconds_of(pid_t process) {
    std::ifstream text(fmt::format("/proc/{}/stat", process));
    std::string word;
    for (int field = 1; field < 14; ++field) text >> word;
    double sum = 0;
    for (int field = 14; field <= 17; ++field) {
      double ticks = 0;
      text >> ticks;
      sum += ticks;
    }
    return sum / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }
  [[nodiscard]] int command(const std::string& verb) const {
    return std::system(
        fmt::format("{} --dir {} {} >/dev/null", ORRERY_PROGRAM, directory_, verb).c_str());
  }

  std::string directory_;
};

}  // namespace orrery
