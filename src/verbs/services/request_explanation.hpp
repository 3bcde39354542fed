// verbs/services/request_explanation.hpp - why a request to a service went to the replica that
// answered it, by the gateway that routed it.
//
// Functions of one call of a verb, which waits in them.
#pragma once

#include <string>
#include <vector>

#include "verbs/cluster/live_answer.hpp"

namespace orrery {

/// Asks the gateways of the cluster, one after the other, with the caller's own token: those that
/// running services are reached by, then that of a local cluster. Errors: kInput where no gateway
/// knows the request, or the text is no
/// id; kEnvironment where no gateway can be asked.
[[nodiscard]] Result<LiveAnswer> explain_request(const LiveCall& call, const std::string& request);

/// Returns a gateway's decisions on a request as text, with the replicas that each compared; the
/// whole answer where it has none.
[[nodiscard]] std::string explanation_text(const Json& answer);

}  // namespace orrery
