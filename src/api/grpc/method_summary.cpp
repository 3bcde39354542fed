#include "api/grpc/method_summary.hpp"

#include <algorithm>
#include <array>

namespace orrery {
namespace {

constexpr std::array kMethodSummaries{
    MethodSummary{"SubmitJob", "jobs", "Submits a job, or an array of jobs"},
    MethodSummary{"ListJobs", "jobs", "Lists jobs, newest first"},
    MethodSummary{"GetJob", "jobs", "Shows a job"},
    MethodSummary{"WaitJob", "jobs", "Answers when a job has ended"},
    MethodSummary{"CancelJob", "jobs", "Cancels a job"},
    MethodSummary{"HoldJob", "jobs", "Keeps a job from starting"},
    MethodSummary{"ReleaseJob", "jobs", "Lets a held job start"},
    MethodSummary{"RequeueJob", "jobs", "Ends the attempt of a job and queues it again"},
    MethodSummary{"ChangeJob", "jobs", "Changes priority, time limit or estimate of a job"},
    MethodSummary{"ExplainJob", "jobs", "Says why a job waits and what would start it"},
    MethodSummary{"ReadLog", "jobs", "Streams what a rank of a job writes"},
    MethodSummary{"UpdateService", "jobs", "Gives a service another revision, or more replicas"},
    MethodSummary{"AddServiceKey", "jobs", "Makes a key that may call a service"},
    MethodSummary{"ListNodes", "nodes", "Lists nodes"},
    MethodSummary{"GetNode", "nodes", "Shows a node"},
    MethodSummary{"DrainNode", "nodes", "Keeps new work off a node, or plans its maintenance"},
    MethodSummary{"ResumeNode", "nodes", "Lets a drained node work again"},
    MethodSummary{"FenceNode", "nodes", "Declares a lost node switched off"},
    MethodSummary{"BurnInNode", "nodes", "Tests a drained node"},
    MethodSummary{"ApplyFleet", "nodes", "Adds nodes to the fleet and retires nodes"},
    MethodSummary{"MakeJoinToken", "nodes", "Makes a token by which one agent joins"},
    MethodSummary{"ListHolds", "nodes", "Lists the nodes that resource managers lend"},
    MethodSummary{"ListPowerDomains", "power", "Lists power domains with limits and plans"},
    MethodSummary{"SetPowerCap", "power", "Sets or removes the cap of a power domain"},
    MethodSummary{"ListUsers", "users", "Lists users and the ends of their tokens"},
    MethodSummary{"AddUser", "users", "Makes a user and its token"},
    MethodSummary{"RotateUser", "users", "Makes a new token for a user"},
    MethodSummary{"RemoveUser", "users", "Removes a user and ends its tokens"},
    MethodSummary{"ListTenants", "cluster", "Lists tenants with what they use and have used"},
    MethodSummary{"GetCluster", "cluster", "Shows the cluster in numbers"},
    MethodSummary{"CompactStore", "cluster", "Puts a snapshot in the place of the log up to now"},
    MethodSummary{"ListEvents", "cluster", "Lists events of the log"},
    MethodSummary{"WatchEvents", "cluster", "Streams events as they become durable"},
};

}  // namespace

const MethodSummary* method_summary(std::string_view method) {
  const auto* found = std::ranges::find(kMethodSummaries, method, &MethodSummary::method);
  return found == kMethodSummaries.end() ? nullptr : found;
}

}  // namespace orrery
