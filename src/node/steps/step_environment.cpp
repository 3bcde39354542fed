#include "node/steps/step_environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "node/launch/process_environment.hpp"
#include "node/steps/slurm_variables.hpp"

namespace orrery {
namespace {

constexpr auto kDeviceLists =
    std::to_array<std::string_view>({"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                     "NEURON_RT_VISIBLE_CORES", "TPU_VISIBLE_CHIPS"});

/// Whether a variable differs on each node, whatever srun has.
bool is_of_node(std::string_view name) {
  constexpr auto kOwn = std::to_array<std::string_view>(
      {"SLURMD_NODENAME", "SLURM_CPUS_ON_NODE", "SLURM_GPUS_ON_NODE"});
  return name.starts_with("ORRERY_") || std::ranges::count(kDeviceLists, name) > 0 ||
         std::ranges::count(kOwn, name) > 0;
}

std::string with_tools(const std::string& tools, const std::string& path) {
  return path.empty() ? tools : fmt::format("{}:{}", tools, path);
}

std::uint32_t number_of(const std::string& text) {
  std::uint32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

std::vector<std::uint32_t> spread_tasks(std::uint32_t tasks, std::uint32_t nodes,
                                        std::uint32_t most) {
  std::vector<std::uint32_t> spread(nodes);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const std::uint32_t even = tasks / nodes + (node < tasks % nodes ? 1 : 0);
    const std::uint64_t before = std::uint64_t{node} * most;
    const std::uint64_t rest = before < tasks ? tasks - before : 0;
    spread[node] =
        most == 0 ? even : static_cast<std::uint32_t>(std::min<std::uint64_t>(rest, most));
  }
  return spread;
}

std::vector<std::string> devices_of(const Variables& own) {
  for (const std::string_view name : kDeviceLists) {
    const std::string list = variable_of(own, name);
    if (list.empty()) continue;
    std::vector<std::string> devices;
    for (std::size_t begin = 0; begin <= list.size();) {
      const std::size_t end = std::min(list.find(',', begin), list.size());
      devices.push_back(list.substr(begin, end - begin));
      begin = end + 1;
    }
    return devices;
  }
  return {};
}

Variables script_environment(const Variables& own, std::size_t nodes, const std::string& tools) {
  std::map<std::string, std::string> all(own.begin(), own.end());
  all["PATH"] = with_tools(tools, all["PATH"]);
  const auto count = static_cast<std::uint32_t>(nodes);
  const std::uint32_t asked = number_of(variable_of(own, "SLURM_NTASKS"));
  const std::uint32_t most = number_of(variable_of(own, "SLURM_NTASKS_PER_NODE"));
  all["SLURM_TASKS_PER_NODE"] =
      tasks_per_node_text(spread_tasks(asked == 0 ? count : asked, count, most));
  all["SLURM_JOB_CPUS_PER_NODE"] = tasks_per_node_text(
      std::vector<std::uint32_t>(nodes, number_of(variable_of(own, "SLURM_CPUS_ON_NODE"))));
  all["SLURM_PROCID"] = "0";
  all["SLURM_LOCALID"] = "0";
  all["SLURM_GTIDS"] = "0";
  all["ORRERY_STEP_TOOLS"] = tools;
  return {all.begin(), all.end()};
}

Variables task_environment(const StepOrder& order, const Variables& own, const std::string& tools,
                           const TaskSeat& seat) {
  std::map<std::string, std::string> all(order.environment.begin(), order.environment.end());
  std::erase_if(all, [](const auto& each) { return is_of_node(each.first); });
  for (const auto& [name, value] : own) {
    if (is_of_node(name)) all.insert_or_assign(name, value);
  }
  std::string path = all["PATH"];
  // On the script's node the tools are in PATH already.
  if (!path.starts_with(tools + ":")) path = with_tools(tools, path);
  all["PATH"] = path;
  all["ORRERY_STEP_TOOLS"] = tools;
  all["SLURM_PROCID"] = fmt::format("{}", order.first + seat.local);
  all["SLURM_LOCALID"] = fmt::format("{}", seat.local);
  // Orrery's variables describe a task as they describe a rank; the node's own process is none.
  all["ORRERY_RANK"] = all["SLURM_PROCID"];
  all["ORRERY_WORLD_SIZE"] = variable_of(order.environment, "SLURM_NTASKS");
  all["SLURM_NODEID"] = fmt::format("{}", order.node);
  std::string ids;
  for (std::uint32_t task = 0; task < order.tasks; ++task) {
    ids += fmt::format("{}{}", task == 0 ? "" : ",", order.first + task);
  }
  all["SLURM_GTIDS"] = ids;
  if (!seat.devices.empty()) {
    const std::string list = fmt::format("{}", fmt::join(seat.devices, ","));
    for (const std::string_view name : kDeviceLists) {
      const auto found = all.find(std::string(name));
      if (found != all.end()) found->second = list;
    }
    all["SLURM_STEP_GPUS"] = list;
  }
  return {all.begin(), all.end()};
}

}  // namespace orrery
