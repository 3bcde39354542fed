#include "node/launch/job_user.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace orrery {
namespace {

AgentUser agent(JobUsers jobs) {
  const std::uint32_t uid = jobs == JobUsers::kOwn ? 65534 : 0;
  return {.own = {{uid, uid, {}}, uid == 0 ? "root" : "nobody", "/", "/bin/sh"}, .jobs = jobs};
}

std::string refusal(const std::string& run_as, JobUsers jobs) {
  const Result<JobUser> user = job_user(run_as, agent(jobs));
  EXPECT_FALSE(user) << run_as;
  if (user) return "";
  EXPECT_EQ(user.error().kind, ErrorKind::kInfeasible);
  return user.error().message;
}

TEST(JobUser, IsTheOneOfTheJobWhereTheAgentIsRoot) {
  for (const JobUsers jobs : {JobUsers::kMapped, JobUsers::kAny}) {
    const Result<JobUser> user = job_user("nobody", agent(jobs));
    ASSERT_TRUE(user) << user.error().text();
    EXPECT_TRUE(user->changes);
    EXPECT_EQ(user->user.ids.uid, 65534U);
    EXPECT_EQ(user->user.ids.groups, std::vector<std::uint32_t>{65534});
    EXPECT_EQ(user->user.name, "nobody");
    EXPECT_NE(refusal("root", jobs).find("user 0"), std::string::npos);
    EXPECT_EQ(refusal("no-such-user", jobs), "no user \"no-such-user\" on this node");
  }
}

TEST(JobUser, IsTheAgentsWhereTheJobHasNoneAndTheOperatorAllowsIt) {
  for (const JobUsers jobs : {JobUsers::kOwn, JobUsers::kAny}) {
    const Result<JobUser> user = job_user("", agent(jobs));
    ASSERT_TRUE(user) << user.error().text();
    EXPECT_FALSE(user->changes);
    EXPECT_EQ(user->user.name, agent(jobs).own.name);
  }
  EXPECT_NE(refusal("", JobUsers::kMapped).find("allow_agent_user: true"), std::string::npos);
}

TEST(JobUser, IsTheAgentsOwnAloneWhereTheAgentIsNotRoot) {
  const Result<JobUser> own = job_user("nobody", agent(JobUsers::kOwn));
  ASSERT_TRUE(own) << own.error().text();
  EXPECT_FALSE(own->changes);
  EXPECT_NE(refusal("daemon", JobUsers::kOwn).find("which runs as \"nobody\", is not root"),
            std::string::npos);
}

TEST(JobUser, OfThisProcessIsWhoItIs) {
  const AgentUser own = agent_user(AgentUserJobs::kRefused);
  EXPECT_EQ(own.own.ids.uid, ::geteuid());
  EXPECT_FALSE(own.own.name.empty());
  const bool root = ::geteuid() == 0;
  EXPECT_EQ(own.jobs, root ? JobUsers::kMapped : JobUsers::kOwn);
  EXPECT_EQ(agent_user(AgentUserJobs::kAllowed).jobs, root ? JobUsers::kAny : JobUsers::kOwn);
}

}  // namespace
}  // namespace orrery
