#include "node/launch/launch_order.hpp"

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

void add_python_packages(const std::string& directory, Variables& environment) {
  const auto own = std::find_if(environment.rbegin(), environment.rend(),
                                [](const auto& each) { return each.first == "PYTHONPATH"; });
  if (own == environment.rend()) {
    environment.emplace_back("PYTHONPATH", directory);
  } else {
    own->second += own->second.empty() ? directory : ":" + directory;
  }
}

/// Adds the user's variables first, so that the job's spec overrides them.
void add_user_variables(const PosixUser& user, Variables& environment) {
  const Variables own{{"HOME", user.home},
                      {"USER", user.name},
                      {"LOGNAME", user.name},
                      {"SHELL", user.shell.empty() ? "/bin/sh" : user.shell}};
  environment.insert(environment.begin(), own.begin(), own.end());
}

}  // namespace

Result<KeeperLaunch> keeper_launch(const StartKeeper& start, const NodeProgram& program,
                                   const NodeLaunchFacts& node) {
  KeeperLaunch launch{.stamp = start.stamp, .ranks = start.launch, .gangs = program.gangs};
  Result<JobUser> user = job_user(program.user, node.agent);
  if (!user) return forward_error(user);
  if (user->changes) launch.user = user->user.ids;
  launch.directory = program.directory;
  launch.work_steps = program.work_steps;
  launch.needs = program.needs;
  launch.device_cpu = node.device_cpu;
  launch.devices = node.files;
  launch.processes_max = node.processes_max;
  launch.copies = program.copies;
  LaunchFacts& facts = launch.facts;
  facts.job = program.job;
  facts.tenant = program.tenant;
  facts.attempt = start.id;
  facts.plan = program.plan;
  facts.style = launch_style_of(program.framework);
  facts.per = program.per;
  facts.command = program.command;
  facts.environment = program.environment;
  add_user_variables(user->user, facts.environment);
  facts.environment.emplace_back("ORRERY_NODE", node.name);
  if (facts.style == LaunchStyle::kJax && !node.python.empty()) {
    add_python_packages(node.python, facts.environment);
  }
  facts.restarts_max = program.restarts_max;
  facts.devices = node.devices;
  facts.device_names = node.device_names;
  facts.threads = node.threads;
  facts.openblas_core_type = node.openblas_core_type;
  return launch;
}

}  // namespace orrery
