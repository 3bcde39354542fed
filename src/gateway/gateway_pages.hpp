// gateway/gateway_pages.hpp - what a gateway answers itself: its models, metrics, and why a request
// went where it did.
//
// Functions over the core's state. Cost: O(services + replicas), for explain O(decisions kept).
#pragma once

#include <string>
#include <string_view>

#include "gateway/caches/cache_events.hpp"
#include "gateway/gateway_core.hpp"
#include "gateway/peers/peer_link.hpp"

namespace orrery {

/// The models that a key may use, as GET /v1/models of OpenAI's API lists them, by name.
[[nodiscard]] std::string models_json(GatewayCore& core, const RoutedKey& key);

/// The model of a service, as GET /v1/models/{id} of OpenAI's API shows it.
[[nodiscard]] std::string model_json(const GatewayService& service);

/// Metrics in Prometheus' text format.
[[nodiscard]] std::string metrics_text(GatewayCore& core, const PeerFigures& peers,
                                       const CacheFigures& caches);

/// The decisions about a request of a service that the key may call, oldest first; nothing where
/// none is kept.
[[nodiscard]] std::string explain_json(GatewayCore& core, const RoutedKey& key,
                                       std::string_view request);

[[nodiscard]] GatewayReport report_of(GatewayCore& core);

}  // namespace orrery
