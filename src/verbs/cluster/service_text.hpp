// verbs/cluster/service_text.hpp - a service of a running cluster as text for people: its replicas,
// what its gateways measured beside what was predicted, and how its requests ended.
//
// Pure functions over the messages of the API.
#pragma once

#include <string>

#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/live_text.hpp"

namespace orrery {

/// Returns the tables of a service; figures that nothing was measured for are left open.
[[nodiscard]] std::string service_text(const LiveText& text, const v1::ServiceView& service);

/// Returns "canary, stage 1 of 3: 5 % of the requests, 20 answered; it waits for ..".
[[nodiscard]] std::string canary_text(const v1::CanaryView& canary);

/// Returns "12.3 ms" or "1.23 s"; "" where there is no time.
[[nodiscard]] std::string latency_text(double seconds);

}  // namespace orrery
