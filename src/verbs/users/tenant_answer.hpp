// verbs/users/tenant_answer.hpp - tenants of a running cluster, and what they or their jobs used.
//
// Functions of one call of a verb. Errors are those of the controller.
#pragma once

#include <string>

#include "verbs/cluster/live_answer.hpp"

namespace orrery {

[[nodiscard]] Result<LiveAnswer> answer_tenants(const LiveCall& call);

/// What was used by whom.
struct UsageQuestion {
  bool jobs = false;   ///< by each job, ended ones included
  std::string tenant;  ///< by each job of this tenant; empty: of any

  [[nodiscard]] bool by_job() const { return jobs || !tenant.empty(); }
};
/// Shows what each tenant used, or each job.
[[nodiscard]] Result<LiveAnswer> answer_usage(const LiveCall& call, const UsageQuestion& question);

}  // namespace orrery
