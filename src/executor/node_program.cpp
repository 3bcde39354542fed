#include "executor/node_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "agent/launch_plan.hpp"
#include "executor/plan_text.hpp"
#include "workload/output_pattern.hpp"
#include "workload/sbatch_values.hpp"

namespace orrery {
namespace {

constexpr std::uint64_t kPortFirst = 20'000;
constexpr std::uint64_t kPortsAGang = 64;  ///< ports for the ranks of a node that need one
/// A multiple of kPortsAGang, so that the last share does not reach into the first.
constexpr std::uint64_t kPorts = 187 * kPortsAGang;
static_assert(kPortFirst + kPorts <= 32'000, "what systems hand out by themselves is not reached");

std::uint16_t master_port(const Job& job, std::uint32_t gang) {
  const std::uint64_t slot = job.id.value() + std::uint64_t{job.attempt} * 7 + gang;
  return static_cast<std::uint16_t>(kPortFirst + slot * kPortsAGang % kPorts);
}

const RankShare* share_of(const NodeRanks& node, std::uint32_t gang) {
  const auto found = std::find_if(node.shares.begin(), node.shares.end(),
                                  [gang](const RankShare& share) { return share.gang == gang; });
  return found == node.shares.end() ? nullptr : &*found;
}

/// Returns the framework's id in the catalog, whatever name the spec uses.
std::string framework_of(const State& state, const JobSpec& spec) {
  const std::string& name = spec.software.framework;
  const auto* known = state.setup().topology->catalog().find<Framework>(name);
  return known == nullptr ? name : known->id;
}

/// Sets the job's own array number in an environment that lists those of the whole array. The jobs
/// of an array have consecutive numbers.
void set_array_task(const Job& job, Variables& environment) {
  const auto named = [](std::string_view name) {
    return [name](const auto& each) { return each.first == name; };
  };
  const auto task = std::ranges::find_if(environment, named("SLURM_ARRAY_TASK_ID"));
  const std::size_t bracket = job.name.find('[');
  if (task == environment.end() || bracket == job.name.npos) return;
  const Result<SbatchArray> array = sbatch_array(task->second);
  std::uint32_t place = 0;
  const std::string_view digits = std::string_view(job.name).substr(bracket + 1);
  std::from_chars(digits.data(), digits.data() + digits.size(), place);
  if (!array || place >= array->numbers.size()) return;
  task->second = fmt::format("{}", array->numbers[place]);
  environment.emplace_back("SLURM_ARRAY_JOB_ID", fmt::format("{}", job.id.value() - place));
}

/// Returns the index of a job in its array: "3" of "sweep[3]"; empty: it is in no array.
std::string array_index(const Job& job) {
  const std::size_t bracket = job.name.find('[');
  if (bracket == job.name.npos) return "";
  return job.name.substr(bracket + 1, job.name.size() - bracket - 2);
}

/// Returns the number of the job in its array: that from the script's list, else its index.
std::string array_number(const Job& job, const LaunchSpec& launch) {
  Variables variables = launch.environment;
  set_array_task(job, variables);
  const auto task =
      std::ranges::find(variables, "SLURM_ARRAY_TASK_ID", &Variables::value_type::first);
  return task == variables.end() ? array_index(job) : task->second;
}

/// Returns the names of its output files, with the values filled in that are equal on all nodes.
OutputNames copies_of(const Job& job, const LaunchSpec& launch) {
  if (launch.output.empty() && launch.error.empty()) return {};
  const std::string index = array_index(job);
  std::uint64_t place = 0;
  std::from_chars(index.data(), index.data() + index.size(), place);
  const std::array values{PatternValue{'j', fmt::format("{}", job.id.value())},
                          PatternValue{'x', job.name.substr(0, job.name.find('['))},
                          PatternValue{'A', fmt::format("{}", job.id.value() - place)},
                          PatternValue{'a', index.empty() ? "0" : array_number(job, launch)}};
  return {with_pattern_values(launch.output, values), with_pattern_values(launch.error, values)};
}

/// Returns the steps of the job's first role that trains; 0: unknown.
std::uint64_t work_steps(const Job& job) {
  for (const RoleRequest& role : job.submission->request.roles) {
    if (role.steps) return static_cast<std::uint64_t>(*role.steps);
  }
  return 0;
}

}  // namespace

std::optional<NodeProgram> node_program(const State& state, const JobSpec& spec,
                                        const std::pair<JobId, NodeId>& of,
                                        const NodeAddresses& addresses) {
  const auto& [id, here] = of;
  const Job& job = state.job(id);
  NodeProgram program{.job = job.name,
                      .tenant = state.tenants().path(job.tenant),
                      .plan = plan_text(state, spec, id),
                      .framework = framework_of(state, spec),
                      .per = spec.launch->per,
                      .command = spec.launch->command,
                      .environment = spec.launch->environment,
                      .directory = spec.launch->directory,
                      .restarts_max = job.submission->restart_max,
                      .work_steps = work_steps(job),
                      .gangs = {},
                      .user = job.run_as,
                      .needs = {},
                      .copies = copies_of(job, *spec.launch)};
  if (program.framework == "slurm") set_array_task(job, program.environment);
  if (std::string index = array_index(job); !index.empty()) {
    program.environment.emplace_back("ORRERY_ARRAY_INDEX", std::move(index));
  }
  const LaunchPlan plan = launch_plan(state, id);
  const auto gangs = static_cast<std::uint32_t>(state.running(id).gangs.size());
  program.gangs.reserve(gangs);
  for (std::uint32_t gang = 0; gang < gangs; ++gang) {
    GangLayout layout{.gang = gang, .nodes = {}, .master_port = master_port(job, gang)};
    layout.restarts = job.attempt - 1;
    bool has_part = false;
    for (const NodeRanks& node : plan.nodes) {
      const RankShare* share = share_of(node, gang);
      if (share == nullptr) continue;
      if (node.node == here) {
        has_part = true;
        layout.here = static_cast<std::uint32_t>(layout.nodes.size());
      }
      layout.nodes.push_back({addresses(node.node), share->ranks});
    }
    if (!has_part) continue;
    const bool unknown = std::any_of(layout.nodes.begin(), layout.nodes.end(),
                                     [](const GangNode& node) { return node.address.empty(); });
    if (unknown) return std::nullopt;
    program.gangs.push_back(std::move(layout));
    const HostNeeds& host = state.running(id).gangs[gang].host;
    if ((host.cpu | host.memory) != 0) program.needs.push_back({gang, host.cpu, host.memory});
  }
  return program;
}

}  // namespace orrery
