// verbs/cluster/live_lists.hpp - complete lists of a running cluster, over all pages.
#pragma once

#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/live_session.hpp"

namespace orrery {

/// Lists what the request asks for, whatever page it names.
[[nodiscard]] Result<v1::ListJobsResponse> list_jobs(LiveSession& session,
                                                     v1::ListJobsRequest request);

[[nodiscard]] Result<v1::ListNodesResponse> list_nodes(LiveSession& session);

[[nodiscard]] Result<v1::ListPowerDomainsResponse> list_power(LiveSession& session);

}  // namespace orrery
