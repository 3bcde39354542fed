#include "node/launch_order.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

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

}  // namespace

Result<ProcessUser> find_user(const std::string& name) {
  constexpr std::size_t kQuotedMax = std::size_t{64} << 10;
  constexpr int kGroupsMax = 65536;  // of Linux
  std::vector<char> text(kQuotedMax);
  passwd entry{};
  passwd* found = nullptr;
  (void)::getpwnam_r(name.c_str(), &entry, text.data(), text.size(), &found);
  if (found == nullptr) return environment_error(fmt::format("no user \"{}\" on this node", name));
  std::vector<gid_t> groups(kGroupsMax);
  int count = kGroupsMax;
  if (::getgrouplist(name.c_str(), entry.pw_gid, groups.data(), &count) < 0) count = 0;
  return ProcessUser{entry.pw_uid, entry.pw_gid, {groups.begin(), groups.begin() + count}};
}

Result<KeeperLaunch> keeper_launch(const StartKeeper& start, const NodeProgram& program,
                                   const NodeLaunchFacts& node) {
  KeeperLaunch launch{.stamp = start.stamp, .ranks = start.launch, .gangs = program.gangs};
  if (!program.user.empty()) {
    Result<ProcessUser> user = find_user(program.user);
    if (!user) return forward_error(user);
    launch.user = *std::move(user);
  }
  launch.directory = program.directory;
  launch.work_steps = program.work_steps;
  launch.needs = program.needs;
  launch.device_cpu = node.device_cpu;
  launch.devices = node.files;
  launch.processes_max = node.processes_max;
  LaunchFacts& facts = launch.facts;
  facts.job = program.job;
  facts.tenant = program.tenant;
  facts.attempt = start.id;
  facts.plan = program.plan;
  facts.style = launch_style_of(program.framework);
  facts.per = program.per;
  facts.command = program.command;
  facts.environment = program.environment;
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
