#include "executor/jobs/launch_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "agent/launch_plan.hpp"
#include "executor/jobs/plan_text.hpp"
#include "node/steps/step_secret.hpp"
#include "workload/slurm/output_pattern.hpp"
#include "workload/slurm/sbatch_values.hpp"

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

LaunchProgram::LaunchProgram(const State& state, const JobSpec& spec, JobId id,
                             const NodeAddresses& addresses)
    : job_(id), attempt_(state.job(id).attempt), epoch_(state.job(id).epoch) {
  const Job& job = state.job(id);
  const LaunchSpec launch = *launch_of(spec, job.submission->request.roles.front().name);
  program_ = {.job = job.name,
              .tenant = state.tenants().path(job.tenant),
              .plan = plan_text(state, spec, id),
              .framework = framework_of(state, spec),
              .per = launch.per,
              .command = launch.command,
              .environment = launch.environment,
              .directory = launch.directory,
              .restarts_max = job.submission->restart_max,
              .work_steps = work_steps(job),
              .gangs = {},
              .user = job.run_as,
              .needs = {},
              .copies = copies_of(job, launch)};
  if (program_.framework == "slurm") set_array_task(job, program_.environment);
  if (std::string index = array_index(job); !index.empty()) {
    program_.environment.emplace_back("ORRERY_ARRAY_INDEX", std::move(index));
  }
  const std::vector<PlacedGang>& gangs = state.running(id).gangs;
  gangs_.resize(gangs.size());
  for (std::uint32_t gang = 0; gang < gangs.size(); ++gang) {
    gangs_[gang].layout = {.gang = gang, .nodes = {}, .master_port = master_port(job, gang)};
    gangs_[gang].layout.restarts = job.attempt - 1;
    gangs_[gang].needs = {gang, gangs[gang].host.cpu, gangs[gang].host.memory};
  }
  for (const NodeRanks& node : launch_plan(state, id).nodes) {
    const std::string address = addresses(node.node);
    for (const RankShare& share : node.shares) {
      Gang& gang = gangs_[share.gang];
      const auto place = static_cast<std::uint32_t>(gang.layout.nodes.size());
      parts_.insert({{node.node, share.gang}, place});
      gang.layout.nodes.push_back({address, share.ranks});
      gang.reachable = gang.reachable && !address.empty();
    }
  }
}

bool LaunchProgram::complete() const {
  return std::ranges::all_of(gangs_, [](const Gang& gang) { return gang.reachable; });
}

bool LaunchProgram::is_of(const Job& job) const {
  return job.id == job_ && job.attempt == attempt_ && job.epoch == epoch_;
}

std::optional<NodeProgram> LaunchProgram::at(NodeId here) const {
  NodeProgram program = program_;
  for (auto part = parts_.lower_bound({here, 0}); part != parts_.end() && part->first.first == here;
       ++part) {
    const Gang& gang = gangs_[part->first.second];
    if (!gang.reachable) return std::nullopt;
    program.gangs.push_back(gang.layout);
    program.gangs.back().here = part->second;
    if ((gang.needs.cpu | gang.needs.memory) != 0) program.needs.push_back(gang.needs);
  }
  return program;
}

std::optional<NodeProgram> LaunchPrograms::part(const State& state, const JobSpec& spec,
                                                const std::pair<JobId, NodeId>& of,
                                                const NodeAddresses& addresses) {
  const Job& job = state.job(of.first);
  if (!last_ || !last_->complete() || !last_->is_of(job)) {
    last_.emplace(state, spec, of.first, addresses);
  }
  std::optional<NodeProgram> program = last_->at(of.second);
  if (program && program->framework == "slurm") {
    program->environment.emplace_back(kStepSecretVariable,
                                      step_secret(step_key_, {of.first, job.attempt}));
  }
  return program;
}

}  // namespace orrery
