// verbs/local/local_gateway.hpp - the gateway of a local cluster, by which clients reach its
// services.
//
// Started by LocalCluster (verbs/local/local_cluster.hpp) after the controllers, which keeps the
// record. DIR/gateway.log is its output, DIR/gateway.table.json its last table of routes. One
// thread. Invariant: the address for clients is chosen once and stays.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "base/system/real_storage.hpp"
#include "verbs/local/local_record.hpp"

namespace orrery {

/// Its name as a process and among the gateways of the cluster.
inline constexpr const char* kLocalGateway = "gateway";

struct GatewayStart {
  std::string program;      ///< path of orrery-gateway
  std::string directory;    ///< of the cluster, absolute: where it finds controllers and token
  std::string controllers;  ///< addresses that it finds there, with commas between; others: it is
                            ///< started anew
};

enum class GatewayStarted : std::uint8_t { kNow, kBefore };

/// Starts the gateway unless it runs and knows these controllers, and waits until it accepts
/// connections. The record is saved once the process is known. Errors: no such program; it
/// ended, with its last output; it accepts no connection in time.
[[nodiscard]] Result<GatewayStarted> start_local_gateway(Storage& storage, LocalRecord& record,
                                                         const GatewayStart& start);

/// Returns the URL for clients, without /v1; "" where none was started yet.
[[nodiscard]] std::string gateway_url(const LocalRecord& record);

}  // namespace orrery
