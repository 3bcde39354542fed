#include "node/machine/machine_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/text/quantity_text.hpp"

namespace orrery {
namespace {

using enum CheckVerdict;

std::string bytes_text(std::uint64_t bytes) { return print(Bytes(static_cast<double>(bytes))); }

/// Returns 6 and 1 for "6.1.0-13-amd64".
std::pair<int, int> release_of(const std::string& kernel) {
  int major = 0;
  int minor = 0;
  const char* const end = kernel.data() + kernel.size();
  const auto [point, failed] = std::from_chars(kernel.data(), end, major);
  if (failed == std::errc() && point != end) std::from_chars(point + 1, end, minor);
  return {major, minor};
}

CheckFinding kernel(const MachineFacts& facts) {
  // The first release with pidfd_open, by which keepers are notified of the end of a process.
  constexpr std::pair<int, int> kOldest{5, 3};
  if (release_of(facts.kernel) >= kOldest) return {"kernel", kOk, facts.kernel, ""};
  return {"kernel", kProblem, facts.kernel,
          "older than 5.3: agents cannot track processes; use a newer kernel"};
}

CheckFinding memory(const MachineFacts& facts) {
  constexpr std::uint64_t kLittle = std::uint64_t{1} << 30;
  const std::string found = bytes_text(facts.memory_bytes);
  if (facts.memory_bytes >= kLittle) return {"memory", kOk, found, ""};
  return {"memory", kWarning, found,
          "low for a controller and its jobs: at least 1 GiB is recommended"};
}

CheckFinding name(const MachineFacts& facts) {
  if (facts.name_trouble.empty()) return {"name", kOk, facts.machine, ""};
  return {"name", kWarning, fmt::format("{}: {}", facts.machine, facts.name_trouble),
          "ranks on other nodes use this name: set --address of the agent; not needed for a "
          "cluster on this machine only"};
}

CheckFinding ports(const MachineFacts& facts) {
  if (facts.listen_trouble.empty()) return {"ports", kOk, "can listen on loopback", ""};
  return {"ports", kProblem, facts.listen_trouble,
          "controller, agents and ranks need network ports: check the limits and packet filters of "
          "this machine"};
}

CheckFinding control_groups(const MachineFacts& facts) {
  if (facts.control_groups.empty()) {
    return {"control-groups", kWarning, "none",
            "ranks run without limits, and leftover processes are found only through their parent "
            "processes: mount cgroup v2"};
  }
  if (facts.control_group_trouble.empty()) {
    return {"control-groups", kOk, facts.control_groups + ", writable", ""};
  }
  return {"control-groups", kWarning,
          fmt::format("{}: {}", facts.control_groups, facts.control_group_trouble),
          "ranks run without limits: start the agent as root, or by systemd with Delegate=yes"};
}

CheckFinding files(const MachineFacts& facts) {
  // A controller has a connection for each agent, watcher and call, a keeper a few for each rank.
  constexpr std::uint64_t kFew = 4'096;
  const std::string found = fmt::format("at most {} open", facts.open_files_max);
  if (facts.open_files_max >= kFew) return {"files", kOk, found, ""};
  return {"files", kWarning, found,
          fmt::format("enough for a small cluster only: `ulimit -n {}`, or LimitNOFILE= of its "
                      "unit",
                      kFew)};
}

CheckFinding disk(const DiskFacts& disk) {
  // Below kFull the controller refuses submissions (store/sqlite/disk_reserve.hpp).
  constexpr std::uint64_t kFull = std::uint64_t{128} << 20;
  constexpr std::uint64_t kLittle = std::uint64_t{2} << 30;
  if (!disk.trouble.empty()) {
    return {
        "disk", kProblem, fmt::format("{}: {}", disk.path, disk.trouble),
        "the controller keeps its log there: choose another directory with --dir or ORRERY_DIR"};
  }
  const std::string found = fmt::format("{} free at {}", bytes_text(disk.free_bytes), disk.path);
  if (disk.free_bytes < kFull) {
    return {"disk", kProblem, found, "a controller would refuse submissions: free some space"};
  }
  if (disk.kind == "tmpfs") {
    return {"disk", kWarning, found + ", in memory",
            "a cluster in this directory is lost at the next boot"};
  }
  if (!disk.kind.empty()) {
    return {"disk", kWarning, fmt::format("{}, by {}", found, disk.kind),
            "locks and syncs of network file systems are unreliable: keep the directory of a "
            "controller on a local disk"};
  }
  if (disk.free_bytes >= kLittle) return {"disk", kOk, found, ""};
  return {"disk", kWarning, found, "low for the log and the output of jobs"};
}

CheckFinding sync(const DiskFacts& disk) {
  constexpr Duration kSlow = Duration::milliseconds(50);
  const std::string found = fmt::format("{} for a small write", disk.sync.text());
  if (disk.sync < kSlow) return {"sync", kOk, found, ""};
  return {
      "sync", kWarning, found,
      "each change waits for such a write: keep the directory of the controller on a faster disk"};
}

CheckFinding clock(const ClockFacts& clock) {
  constexpr Duration kJump = Duration::milliseconds(100);
  if (clock.backwards) {
    return {"clock", kProblem, "monotonic time went back",
            "timeouts and leases are unreliable: the cause is the kernel or hypervisor"};
  }
  if (clock.jump >= kJump || clock.jump <= -kJump) {
    return {"clock", kWarning, fmt::format("the time of day jumped by {}", clock.jump.text()),
            "times of events and certificates depend on it: let a single program adjust it "
            "gradually (chrony)"};
  }
  const std::string found = clock.source.empty() ? "steady" : "steady, by " + clock.source;
  if (clock.synchronised) return {"clock", kOk, found + ", synchronised", ""};
  return {"clock", kWarning, found + ", not synchronised",
          "certificates and clusters of several machines need a synchronised clock: run chrony or "
          "systemd-timesyncd"};
}

CheckFinding python(const PythonFacts& python) {
  if (python.version.empty()) {
    return {"python", kWarning, "no python3", "PyTorch and JAX programs need it"};
  }
  return {"python", kOk,
          python.packages.empty()
              ? python.version
              : fmt::format("{} with {}", python.version, fmt::join(python.packages, ", ")),
          ""};
}

/// Whether OpenBLAS with these kernels wastes a CPU that could run those of `core_type`.
bool falls_back(const std::string& kernels, const std::string& core_type) {
  constexpr std::string_view kWide[] = {"SkylakeX", "Cooperlake", "Sapphirerapids"};
  constexpr std::string_view kHalf[] = {"Haswell", "Zen"};
  const bool wide = std::ranges::find(kWide, kernels) != std::end(kWide);
  // An AMD processor with AVX-512 is served well by those for Zen.
  const bool half = std::ranges::find(kHalf, kernels) != std::end(kHalf);
  return !core_type.empty() && !wide && !half;
}

CheckFinding openblas(const MachineFacts& facts) {
  const OpenBlasFacts& found = facts.openblas;
  const std::string version =
      found.config.substr(0, found.config.find(' ', found.config.find(' ') + 1));
  const std::string text = fmt::format("{} with kernels for {}", version, found.kernels);
  if (!falls_back(found.kernels, facts.core_type)) return {"openblas", kOk, text, ""};
  return {"openblas", kWarning, text,
          fmt::format("this release does not recognise the processor and uses slow kernels: set "
                      "OPENBLAS_CORETYPE={0} (Orrery sets it for jobs), or use a newer release",
                      facts.core_type)};
}

CheckFinding jax() {
  return {
      "jax", kWarning, "installed",
      "JAX does not find the other processes of a job by itself: in a job with framework jax run "
      "`python3 -m orrery_jax PROGRAM.py`, or call jax.distributed.initialize with "
      "JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID"};
}

CheckFinding devices(const DeviceFacts& devices) {
  std::string found = fmt::format("{} x {}", devices.count, devices.name);
  if (!devices.driver.empty()) found += ", " + devices.driver;
  return {"accelerators", kOk, std::move(found), ""};
}

/// Checks which users the agents here run jobs as.
CheckFinding users(const std::vector<RootAgentFacts>& agents) {
  std::vector<std::string> root;
  for (const RootAgentFacts& each : agents) {
    if (each.jobs_as_root) root.push_back(each.node);
  }
  if (!root.empty()) {
    std::ranges::sort(root);
    // Several clusters of a machine may have nodes of one name.
    const auto repeated = std::ranges::unique(root);
    root.erase(repeated.begin(), repeated.end());
    return {"users", kWarning,
            fmt::format("allow_agent_user on {}: jobs without run_as run as root",
                        fmt::join(root, ", ")),
            "such a job can read the keys of the node and stop other jobs: set run_as for each "
            "tenant in tenants.yaml and remove allow_agent_user"};
  }
  if (agents.empty()) return {"users", kOk, "no agent runs here as root", ""};
  return {"users", kOk, "agents run jobs as their users", ""};
}

CheckFinding hidden(const MachineFacts& facts) {
  if (facts.processes_hidden) return {"proc", kOk, "mounted with hidepid", ""};
  if (facts.root_agents.empty())
    return {"proc", kOk, "no agent here runs jobs of several users", ""};
  return {"proc", kWarning,
          "mounted without hidepid=2: users see the command lines of other users' jobs",
          "run `mount -o remount,hidepid=2 /proc` and set hidepid=2 in /etc/fstab; pass secrets to "
          "a job in its environment"};
}

}  // namespace

std::vector<CheckFinding> check_machine(const MachineFacts& facts) {
  std::vector<CheckFinding> findings{
      kernel(facts),      {"cores", kOk, fmt::format("{}", facts.cores), ""},
      memory(facts),      name(facts),
      clock(facts.clock), ports(facts),
      files(facts),       control_groups(facts),
      disk(facts.disk)};
  if (facts.disk.trouble.empty()) findings.push_back(sync(facts.disk));
  for (const DeviceFacts& each : facts.devices) findings.push_back(devices(each));
  for (const std::string& trouble : facts.device_trouble) {
    findings.push_back({"accelerators", kWarning, trouble,
                        "an agent ignores them: `orrery-agent --discover` shows what it would "
                        "offer"});
  }
  if (facts.devices.empty() && facts.device_trouble.empty()) {
    findings.push_back({"accelerators", kOk, "none; `orrery up` emulates accelerators", ""});
  }
  findings.push_back(users(facts.root_agents));
  findings.push_back(hidden(facts));
  findings.push_back(python(facts.python));
  if (std::ranges::find(facts.python.packages, "jax") != facts.python.packages.end()) {
    findings.push_back(jax());
  }
  if (!facts.openblas.config.empty()) findings.push_back(openblas(facts));
  return findings;
}

}  // namespace orrery
