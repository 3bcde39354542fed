#include "node/steps/step_layout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "fleet/import/host_list.hpp"
#include "node/steps/slurm_variables.hpp"
#include "node/steps/step_environment.hpp"

namespace orrery {
namespace {

using Nodes = std::vector<std::uint32_t>;

/// Returns the nodes of --nodelist; emulated nodes of one machine share an address and are taken in
/// order.
Result<Nodes> listed_nodes(const SrunOptions& options, const StepGang& gang) {
  Result<std::vector<std::string>> hosts = expand_host_list(options.node_list);
  if (!hosts) return forward_error(hosts);
  Nodes nodes;
  nodes.reserve(hosts->size());
  for (const std::string& host : *hosts) {
    std::uint32_t node = 0;
    while (node < gang.addresses.size() &&
           (gang.addresses[node] != host || std::ranges::count(nodes, node) > 0)) {
      ++node;
    }
    if (node == gang.addresses.size()) {
      return input_error({}, fmt::format("--nodelist: {} is no node of this job, {}", host,
                                         compress_host_list(gang.addresses)));
    }
    nodes.push_back(node);
  }
  return nodes;
}

Result<Nodes> nodes_of(const SrunOptions& options, const StepGang& gang) {
  if (!options.node_list.empty()) return listed_nodes(options, gang);
  const auto all = static_cast<std::uint32_t>(gang.addresses.size());
  const std::uint32_t first = std::min(options.first_node, all);
  std::uint32_t count = options.nodes.value_or(all - first);
  if (count == 0 || count > all - first) {
    return input_error({}, fmt::format("{} nodes from number {} on, and the job has {}", count,
                                       options.first_node, all));
  }
  if (options.tasks) count = std::min(count, *options.tasks);
  Nodes nodes;
  nodes.reserve(count);
  for (std::uint32_t node = first; node < first + count; ++node) nodes.push_back(node);
  return nodes;
}

}  // namespace

Result<StepLayout> step_layout(const SrunOptions& options, const StepGang& gang) {
  Result<Nodes> nodes = nodes_of(options, gang);
  if (!nodes) return forward_error(nodes);
  const auto count = static_cast<std::uint32_t>(nodes->size());
  const std::uint32_t each = std::max(options.node_tasks, 1u);
  StepLayout layout{.parts = {}, .tasks = options.tasks.value_or(count * each)};
  // Sizes given for the job's nodes need not fit the step's.
  const bool fits = std::uint64_t{count} * options.node_tasks >= layout.tasks;
  const auto spread = spread_tasks(layout.tasks, count, fits ? options.node_tasks : 0);
  std::uint32_t first = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (spread[i] > 0) layout.parts.push_back({(*nodes)[i], first, spread[i]});
    first += spread[i];
  }
  return layout;
}

Variables step_variables(const StepLayout& layout, const StepGang& gang, const std::string& id) {
  std::vector<std::string> hosts;
  std::vector<std::uint32_t> tasks;
  hosts.reserve(layout.parts.size());
  tasks.reserve(layout.parts.size());
  for (const StepPart& part : layout.parts) {
    hosts.push_back(gang.addresses[part.node]);
    tasks.push_back(part.tasks);
  }
  const std::string total = fmt::format("{}", layout.tasks);
  const std::string nodes = fmt::format("{}", layout.parts.size());
  const std::string spread = tasks_per_node_text(tasks);
  return {{"SLURM_STEP_ID", id},
          {"SLURM_STEPID", id},
          {"SLURM_STEP_NODELIST", compress_host_list(hosts)},
          {"SLURM_STEP_NUM_NODES", nodes},
          {"SLURM_STEP_NUM_TASKS", total},
          {"SLURM_STEP_TASKS_PER_NODE", spread},
          {"SLURM_TASKS_PER_NODE", spread},
          {"SLURM_NNODES", nodes},
          {"SLURM_NTASKS", total},
          {"SLURM_NPROCS", total},
          {"SLURM_LAUNCH_NODE_IPADDR", gang.addresses[gang.here]}};
}

}  // namespace orrery
