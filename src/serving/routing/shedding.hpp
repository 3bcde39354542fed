// serving/routing/shedding.hpp - whether a request is refused at once, as it would be answered far
// too late.
//
// Pure functions over a decision that leaves a request without a replica.
// A service that is held to a time to the first token, and is asked for more than it can do, misses
// it with every request once a queue has built up. What is refused at once, with the time to come
// back, keeps the queue at the length where the others are late by no more than the factor.
// Requests are refused by chance, the more often the later they would be, so that their senders do
// not come back all at once.
#pragma once

#include "serving/routing/router.hpp"

namespace orrery {

/// Seconds to the first token of a request for which no replica has room, with as many requests of
/// its kind before it; 0: unknown, as a replica has no pace. O(replicas).
[[nodiscard]] double predicted_ttft(const RouterState& state, const RouteDecision& decision,
                                    double requests_ahead);

/// The chance with which a request is refused whose first token comes so many times later than it
/// is held to: none up to `factor`, a half at twice that. A factor of 0 refuses nothing.
[[nodiscard]] double shed_chance(double times_late, double factor);

}  // namespace orrery
