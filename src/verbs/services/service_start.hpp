// verbs/services/service_start.hpp - a service between its submission and its first request: a key
// for its clients, the wait for a replica, and how it is called.
//
// Functions of one call of a verb. Errors are those of the controller, where nothing else is said.
#pragma once

#include <cstdint>
#include <string>

#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/live_answer.hpp"
#include "verbs/services/told_replicas.hpp"

namespace orrery {

/// Returns the number of a replica's job that has not ended, by a number or the name of a service.
/// Error (kInput): there is none.
[[nodiscard]] Result<std::uint64_t> service_job(LiveSession& session, const std::string& service);

/// Makes a key for the service of a replica's job.
[[nodiscard]] Result<v1::AddServiceKeyResponse> add_service_key(LiveSession& session,
                                                                std::uint64_t job);

/// Returns the service of a replica's job as it is now. Error (kInfeasible): the job has ended, or
/// is of no service with a model.
[[nodiscard]] Result<v1::ServiceView> service_of_job(LiveSession& session, std::uint64_t job);

/// Waits until a replica is ready and a gateway is connected. Says each change of a replica's
/// phase; of a replica that failed, the end of its log. Error (kInfeasible): all replicas ended, or
/// fail at each start, and how.
[[nodiscard]] Result<v1::ServiceView> await_service(LiveSession& session, std::uint64_t job,
                                                    const ServiceWait& wait);

/// Returns endpoint, model, key, and a command that calls the service.
[[nodiscard]] LiveAnswer service_answer(const v1::ServiceView& service,
                                        const v1::AddServiceKeyResponse& key);

}  // namespace orrery
