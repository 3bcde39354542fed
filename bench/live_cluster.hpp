// bench/live_cluster.hpp - a cluster of this machine for a benchmark: `orrery up` in a directory of
// the build, and clients of it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "api/client.hpp"
#include "api/cluster_directory.hpp"
#include "base/real_storage.hpp"
#include "bench/figure.hpp"

namespace orrery {

class LiveCluster {
 public:
  /// Nodes with so many emulated accelerators each.
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

  /// A verb of the command line; the end of the program where it fails.
  void run(const std::string& verb) const {
    if (command(verb) == 0) return;
    fmt::print(stderr, "bench_live: `orrery {}` failed\n", verb);
    std::exit(1);
  }
  [[nodiscard]] std::unique_ptr<Client> client() const {
    RealStorage storage;
    const Result<ClusterAddress> at = read_cluster_address(storage, directory_);
    if (!at) std::exit(1);
    return std::make_unique<Client>(ClientOptions{.address = at->address,
                                                  .authority = at->authority,
                                                  .token = at->token,
                                                  .retry = Duration::minutes(1)});
  }
  [[nodiscard]] pid_t controller() const {
    pid_t pid = 0;
    std::ifstream(directory_ + "/orreryd.pid") >> pid;
    return pid;
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
  [[nodiscard]] int command(const std::string& verb) const {
    return std::system(
        fmt::format("{} --dir {} {} >/dev/null", ORRERY_PROGRAM, directory_, verb).c_str());
  }

  std::string directory_;
};

}  // namespace orrery
