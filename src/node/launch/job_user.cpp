#include "node/launch/job_user.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

namespace orrery {
namespace {

constexpr std::size_t kEntryBytesMax = std::size_t{64} << 10;

PosixUser user_of(const passwd& entry) {
  return {{entry.pw_uid, entry.pw_gid, {}}, entry.pw_name, entry.pw_dir, entry.pw_shell};
}

/// What getpwnam(3) may answer where there is no such user, beside 0.
bool means_absent(int error) {
  return error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM;
}

}  // namespace

AgentUser agent_user(AgentUserJobs allowed) {
  AgentUser agent;
  std::vector<char> text(kEntryBytesMax);
  passwd entry{};
  passwd* found = nullptr;
  const uid_t uid = ::geteuid();
  (void)::getpwuid_r(uid, &entry, text.data(), text.size(), &found);
  if (found != nullptr) {
    agent.own = user_of(entry);
  } else {
    agent.own = {{uid, ::getegid(), {}}, fmt::format("{}", uid), "/", "/bin/sh"};
  }
  if (uid == 0) {
    agent.jobs = allowed == AgentUserJobs::kAllowed ? JobUsers::kAny : JobUsers::kMapped;
  }
  return agent;
}

Result<PosixUser> find_user(const std::string& name) {
  constexpr int kGroupsMax = 65536;  // the kernel's limit
  std::vector<char> text(kEntryBytesMax);
  passwd entry{};
  passwd* found = nullptr;
  const int error = ::getpwnam_r(name.c_str(), &entry, text.data(), text.size(), &found);
  if (found == nullptr && means_absent(error)) {
    return infeasible(fmt::format("no user \"{}\" on this node", name));
  }
  if (found == nullptr) {
    return environment_error(fmt::format("cannot look up the user \"{}\": {}", name,
                                         std::generic_category().message(error)));
  }
  PosixUser user = user_of(entry);
  std::vector<gid_t> groups(kGroupsMax);
  int count = kGroupsMax;
  if (::getgrouplist(name.c_str(), entry.pw_gid, groups.data(), &count) < 0) count = 0;
  user.ids.groups.assign(groups.begin(), groups.begin() + count);
  return user;
}

Result<JobUser> job_user(const std::string& run_as, const AgentUser& agent) {
  if (run_as.empty()) {
    if (agent.jobs != JobUsers::kMapped) return JobUser{agent.own};
    return infeasible(
        "the agent is root and the job has no user to run as. Expected run_as of its tenant "
        "(tenants.yaml) or of the submitter, or allow_agent_user: true in the node's agent.yaml");
  }
  Result<PosixUser> user = find_user(run_as);
  if (!user) return forward_error(user);
  if (user->ids.uid == 0) {
    return infeasible(
        fmt::format("the job is to run as \"{}\", which is user 0: jobs do not run as root by "
                    "run_as",
                    run_as));
  }
  if (agent.jobs != JobUsers::kOwn) return JobUser{*std::move(user), true};
  if (user->ids.uid == agent.own.ids.uid) return JobUser{*std::move(user)};
  return infeasible(fmt::format(
      "the job is to run as \"{}\" and the agent, which runs as \"{}\", is not root: expected an "
      "agent that is root, or no run_as",
      run_as, agent.own.name));
}

}  // namespace orrery
