#include "verbs/users/tenant_answer.hpp"

#include <utility>

#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/live_lists.hpp"

namespace orrery {
namespace {

Result<v1::ListTenantsResponse> list_tenants(LiveSession& session) {
  return session.client().call<v1::ListTenantsResponse>("ListTenants", v1::ListTenantsRequest());
}

}  // namespace

Result<LiveAnswer> answer_tenants(const LiveCall& call) {
  Result<v1::ListTenantsResponse> tenants = list_tenants(call.session);
  if (!tenants) return forward_error(tenants);
  std::string text = call.text.tenants(*tenants);
  return live_answer(*std::move(tenants), std::move(text));
}

Result<LiveAnswer> answer_usage(const LiveCall& call, const UsageQuestion& question) {
  if (!question.by_job()) {
    Result<v1::ListTenantsResponse> tenants = list_tenants(call.session);
    if (!tenants) return forward_error(tenants);
    std::string text = call.text.tenant_bills(*tenants);
    return live_answer(*std::move(tenants), std::move(text));
  }
  v1::ListJobsRequest request;
  request.set_all(true);
  request.set_tenant(question.tenant);
  Result<v1::ListJobsResponse> jobs = list_jobs(call.session, std::move(request));
  if (!jobs) return forward_error(jobs);
  std::string text = call.text.job_bills({jobs->jobs().begin(), jobs->jobs().end()});
  return live_answer(*std::move(jobs), std::move(text));
}

}  // namespace orrery
