// twin/serving/service_run.hpp - plays a trace of requests against a service in virtual time.
//
// Arrivals go through the router and the queue of a gateway to modelled engines; crashes, cold
// starts and orders of a scaler change the replicas. Pure: the same trace and setup give the same
// figures, bit for bit. At one instant arrivals come first, then crashes, ticks, tellings and
// starts, then the ends of steps, by number of replica.
// Invariants: each request ends in exactly one of completed, shed and failed; a request that a
// crash takes from its replica before its first token is sent again, and an answer goes on
// elsewhere, with its tokens so far as part of the prompt.
// Cost: about a microsecond for each arrival and each event of an engine.
#pragma once

#include <functional>

#include "twin/serving/request_book.hpp"
#include "twin/serving/service_figures.hpp"
#include "twin/serving/service_setup.hpp"
#include "workload/requests/request_trace.hpp"

namespace orrery {

/// Preconditions: there is a group; each has a step of at least as many tokens as sequences.
[[nodiscard]] ServiceFigures run_service(const RequestTrace& trace, const ServiceSetup& setup);

/// Also shows what became of each request, before the book goes.
[[nodiscard]] ServiceFigures run_service(const RequestTrace& trace, const ServiceSetup& setup,
                                         const std::function<void(const RequestBook&)>& show);

}  // namespace orrery
