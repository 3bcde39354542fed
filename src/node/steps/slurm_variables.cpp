#include "node/steps/slurm_variables.hpp"

#include <fmt/format.h>

#include <charconv>

namespace orrery {
namespace {

/// A host as a name and its trailing number.
struct NumberedHost {
  std::string_view prefix;
  std::string_view digits;  ///< empty: none, or too many to count with
  std::uint64_t number = 0;
};

NumberedHost numbered(std::string_view host) {
  constexpr std::size_t kDigitsMax = 9;
  const std::size_t last = host.find_last_not_of("0123456789");
  const std::size_t begin = last == host.npos ? 0 : last + 1;
  NumberedHost found{host.substr(0, begin), host.substr(begin)};
  if (found.digits.size() > kDigitsMax) return {host, {}};
  std::from_chars(found.digits.data(), found.digits.data() + found.digits.size(), found.number);
  return found;
}

/// Consecutive hosts of one prefix.
class HostRun {
 public:
  [[nodiscard]] bool takes(const NumberedHost& host) const {
    return !host.digits.empty() && !last_.digits.empty() && host.prefix == prefix_;
  }
  void add(const NumberedHost& host) {
    if (!goes_on(host)) {
      close();
      first_ = host;
      begun_ = true;
    }
    prefix_ = host.prefix;
    last_ = host;
  }
  [[nodiscard]] std::string text() {
    close();
    const bool plain = list_.find_first_of(",-") == list_.npos;
    return plain ? fmt::format("{}{}", prefix_, list_) : fmt::format("{}[{}]", prefix_, list_);
  }

 private:
  /// Whether it has the next number, as wide as a range from the first one would write it.
  [[nodiscard]] bool goes_on(const NumberedHost& host) const {
    if (!takes(host) || host.number != last_.number + 1) return false;
    return host.digits.size() == last_.digits.size() ||
           (host.digits[0] != '0' && first_.digits[0] != '0');
  }
  void close() {
    if (!begun_) return;
    if (!list_.empty()) list_ += ',';
    list_ += first_.digits;
    if (last_.number != first_.number) list_ += fmt::format("-{}", last_.digits);
  }

  std::string_view prefix_;
  NumberedHost first_;
  NumberedHost last_;
  bool begun_ = false;
  std::string list_;
};

}  // namespace

std::string compress_host_list(const std::vector<std::string>& hosts) {
  std::string text;
  HostRun run;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const NumberedHost host = numbered(hosts[i]);
    if (i > 0 && !run.takes(host)) {
      text += run.text() + ",";
      run = HostRun();
    }
    run.add(host);
  }
  return hosts.empty() ? "" : text + run.text();
}

std::string tasks_per_node_text(const std::vector<std::uint32_t>& tasks) {
  std::string text;
  for (std::size_t i = 0; i < tasks.size();) {
    std::size_t same = i;
    while (same < tasks.size() && tasks[same] == tasks[i]) ++same;
    if (!text.empty()) text += ',';
    text += fmt::format("{}", tasks[i]);
    if (same - i > 1) text += fmt::format("(x{})", same - i);
    i = same;
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> slurm_variables(const SlurmSeat& node) {
  const std::string hosts = compress_host_list(node.addresses);
  const std::string nodes = fmt::format("{}", node.addresses.size());
  std::vector<std::pair<std::string, std::string>> all = {
      {"SLURM_JOB_ID", node.job},
      {"SLURM_JOBID", node.job},
      {"SLURM_JOB_NAME", node.name.substr(0, node.name.find('['))},
      {"SLURM_JOB_ACCOUNT", node.account},
      {"SLURM_CLUSTER_NAME", "orrery"},
      {"SLURM_JOB_NODELIST", hosts},
      {"SLURM_NODELIST", hosts},
      {"SLURM_JOB_NUM_NODES", nodes},
      {"SLURM_NNODES", nodes},
      {"SLURM_NODEID", fmt::format("{}", node.here)},
      {"SLURMD_NODENAME", node.addresses.at(node.here)},
      {"SLURM_CPUS_ON_NODE", fmt::format("{}", node.cpus)}};
  if (node.devices) all.emplace_back("SLURM_GPUS_ON_NODE", fmt::format("{}", *node.devices));
  if (node.restarts > 0) {
    all.emplace_back("SLURM_RESTART_COUNT", fmt::format("{}", node.restarts));
  }
  return all;
}

}  // namespace orrery
