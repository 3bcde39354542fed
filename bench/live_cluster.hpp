// bench/live_cluster.hpp - a cluster of this machine for a benchmark: `orrery up` in a directory of
// the build, and clients of it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "api/cluster_directory.hpp"
#include "api/grpc/client.hpp"
#include "base/system/real_storage.hpp"
#include "bench/figure.hpp"

namespace orrery {

class LiveCluster {
 public:
  /// Starts nodes with this many emulated accelerators each.
  LiveCluster(int nodes, int accelerators) {
    std::filesystem::create_directories("build/bench");
    std::string name = "build/bench/live-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::exit(1);
    directory_ = std::filesystem::absolute(name);
    run(fmt::format("up --nodes {} --accelerators {}", nodes, accelerators));
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
    fmt::print(stderr, "bench_live: `orrery {}` failed\n", verb);
    std::exit(1);
  }
  [[nodiscard]] std::unique_ptr<Client> client() const {
    RealStorage storage;
    const Result<ClusterAddress> at = read_cluster_address(storage, directory_);
    if (!at) std::exit(1);
    ClientOptions options = client_options(*at);
    options.retry = Duration::minutes(1);
    return std::make_unique<Client>(std::move(options));
  }
  [[nodiscard]] const std::string& path() const { return directory_; }
  [[nodiscard]] pid_t controller() const { return pid_in(directory_ + "/orreryd.pid"); }
  /// CPU seconds of the controller, the agents, and of keepers and ranks that have ended.
  [[nodiscard]] double cpu_seconds() const {
    double seconds = cpu_seconds_of(directory_ + "/orreryd.pid");
    for (const auto& node : std::filesystem::directory_iterator(directory_ + "/nodes")) {
      seconds += cpu_seconds_of(node.path().string() + "/agent.pid");
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
  [[nodiscard]] static double cpu_seconds_of(const std::string& pid_file) {
    std::ifstream text(fmt::format("/proc/{}/stat", pid_in(pid_file)));
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
