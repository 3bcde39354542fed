// bench/slurm_peer.hpp - a real Slurm on this machine's loopback, for the same figures in the same
// run: a controller and four slurmd, each a node of eight stand-in accelerators.
//
// Its tools are not this repository's: a directory with slurm_emu.py (conf, up, down) and
// slurm_alloc.c (submits through libslurm). Its state lies in a directory that goes with it.
#pragma once

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "bench/command_output.hpp"
#include "bench/figure.hpp"

namespace orrery {

/// SchedulerParameters that Slurm 22.05 needs to start more than a few jobs a second.
inline constexpr const char* kSlurmScheduler =
    "defer,sched_interval=1,sched_min_interval=10000,batch_sched_delay=0,bf_interval=30,"
    "default_queue_depth=10000";

class SlurmPeer {
 public:
  /// Starts it; the program ends where that fails. Precondition: missing() is empty.
  explicit SlurmPeer(const std::string& tools) {
    std::filesystem::create_directories("build/bench");
    std::string name = "build/bench/slurm-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) fail("a directory of its own");
    directory_ = std::filesystem::absolute(name);
    emulator_ = fmt::format("python3 {}/slurm_emu.py {}", tools, directory_);
    submitter_ = directory_ + "/slurm_alloc";
    need(fmt::format("cc -O2 {}/slurm_alloc.c -o {} -lslurm -lpthread", tools, submitter_));
    need(fmt::format("{} conf --emulated 0 --real 4 --sched '{}'", emulator_, kSlurmScheduler));
    need(emulator_ + " up --clean --rest 0 >/dev/null");
    await("test 4 = \"$(sinfo -h -p real -t idle -o %D)\"");
  }
  ~SlurmPeer() {
    (void)command_output(emulator_ + " down");
    std::filesystem::remove_all(directory_);
  }
  SlurmPeer(const SlurmPeer&) = delete;
  SlurmPeer& operator=(const SlurmPeer&) = delete;

  /// What this machine lacks to run it; empty: nothing.
  [[nodiscard]] static std::string missing(const std::string& tools) {
    for (const char* file : {"slurm_emu.py", "slurm_alloc.c"}) {
      if (!std::filesystem::exists(tools + "/" + file)) return fmt::format("{}/{}", tools, file);
    }
    for (const char* program : {"slurmctld", "slurmd", "munged", "squeue", "python3", "cc"}) {
      if (!command_output(fmt::format("command -v {} 2>/dev/null", program))) return program;
    }
    for (const char* file : {"/usr/include/slurm/slurm.h", "/usr/lib/*/slurm-wlm/auth_jwt.so"}) {
      if (!command_output(fmt::format("ls {} 2>/dev/null", file))) return file;
    }
    return "";
  }
  /// Its version and its scheduling parameters.
  [[nodiscard]] static std::string description() {
    std::string version = command_output("slurmctld -V").value_or("Slurm");
    while (version.ends_with('\n')) version.pop_back();
    return fmt::format("{}, sched/backfill, {}", version, kSlurmScheduler);
  }

  /// Seconds for each submission of held jobs, with this many clients at once.
  [[nodiscard]] double submit_held(int jobs, int clients) const {
    const std::string said = need(fmt::format("{} held real {} 1 1 {}", submitter_, jobs, clients));
    need("scancel --partition=real");
    const std::size_t at = said.find("rate ");
    if (said.find(" failed 0 ") == said.npos || at == said.npos) fail("submissions: " + said);
    return 1 / std::strtod(said.c_str() + at + 5, nullptr);
  }
  /// Seconds for each job of one accelerator that does nothing, from the first submission to the
  /// last end.
  [[nodiscard]] double turn_over(int jobs, int clients) const {
    const double seconds = seconds_of([&] {
      need(fmt::format("{} batch real {} 1 1 {}", submitter_, jobs, clients));
      await("test -z \"$(squeue -h -p real -o %i)\"");
    });
    return seconds / jobs;
  }

 private:
  [[noreturn]] static void fail(const std::string& what) {
    fmt::print(stderr, "bench_live: Slurm: {}\n", what);
    std::exit(1);
  }
  std::string need(const std::string& command) const {
    const std::string configured = fmt::format("export SLURM_CONF={}/etc/slurm.conf; ", directory_);
    std::optional<std::string> said = command_output(configured + command);
    if (!said) fail(command);
    return *said;
  }
  /// Waits until a command succeeds; fails after five minutes.
  void await(const std::string& condition) const {
    need(fmt::format("for try in $(seq 3000); do {} && exit; sleep 0.1; done; exit 1", condition));
  }

  std::string directory_;
  std::string emulator_;
  std::string submitter_;
};

}  // namespace orrery
