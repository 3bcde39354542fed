// verbs/services/service_update.hpp - a service that runs gets another model, other arguments or
// another number of replicas (`orrery serve --update`, `orrery submit --update`).
//
// Functions of one call of a verb. Errors are those of the controller, where nothing else is said.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "verbs/jobs/submitted_job.hpp"
#include "verbs/services/service_request.hpp"
#include "verbs/services/service_start.hpp"

namespace orrery {

/// What is to change; what is not given stays.
struct ServiceUpdateOptions {
  std::string artifact;  ///< the model; empty: the present one
  std::string revision;  ///< id of the new revision; empty: one that follows the present id
  std::optional<std::uint32_t> replicas;
  std::optional<std::vector<std::string>> arguments;  ///< of the inference engine
  RolloutOptions rollout;
  std::vector<std::string> slo;  ///< as take_slo() reads them
};

/// Returns the spec of a service with the changes. `present`: the spec that it runs. Errors
/// (kInput): nothing to change; a service without revisions, or of several roles; a model that
/// cannot be served.
[[nodiscard]] Result<std::string> updated_service_spec(const std::string& present,
                                                       const ServiceUpdateOptions& options);

/// Returns the name of the service that a spec is of. Errors: those of the spec.
[[nodiscard]] Result<std::string> service_in(const SubmittedSpec& spec);

/// Returns the spec that the service of a replica's job runs.
[[nodiscard]] Result<std::string> spec_of_service(LiveSession& session, std::uint64_t job);

/// Updates the service of a replica's job; returns the number of the service.
[[nodiscard]] Result<std::uint64_t> update_service(LiveSession& session, std::uint64_t job,
                                                   const SubmittedSpec& spec);

/// Waits until the update of a service ends. Says each change of a replica's phase, and that the
/// service goes back. Error (kInfeasible): the update did not succeed, and why; the service ended.
[[nodiscard]] Result<v1::ServiceView> await_update(LiveSession& session, const std::string& service,
                                                   const ServiceWait& wait);

/// Returns "service chat (job 3) runs revision r2: 2 of 2 replicas ready", or how far its update
/// is.
[[nodiscard]] LiveAnswer updated_answer(const v1::ServiceView& service);

}  // namespace orrery
