// api/services/service_views.hpp - services and the reports of gateways as messages of
// proto/orrery/v1.
//
// Pure functions.
#pragma once

#include "control/state/state.hpp"
#include "executor/services/service_book.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {

/// Returns what a gateway reports; histogram buckets that do not exist are left out.
[[nodiscard]] GatewayReport gateway_report(const v1::SyncGatewayRequest& request);
/// Returns the request that gateway_report() reads.
[[nodiscard]] v1::SyncGatewayRequest sync_request(const GatewayReport& report);

void add_routes(const RouteTable& table, v1::SyncGatewayResponse& response);
/// Returns the table that add_routes() wrote.
[[nodiscard]] RouteTable routes_of(const v1::SyncGatewayResponse& response);

[[nodiscard]] v1::ServiceView service_view(const ServiceSummary& summary, const State& state);

}  // namespace orrery
