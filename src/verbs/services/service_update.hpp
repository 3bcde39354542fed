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
  std::string scale;             ///< as take_scaling() reads it; empty: as before
};

/// What a service runs: its spec, and how many replicas are wanted of it now.
struct PresentService {
  std::string spec;
  std::uint32_t replicas = 1;
};

/// Returns the spec of a service with the changes. Errors
/// (kInput): nothing to change; a service without revisions, or of several roles; a model that
/// cannot be served.
[[nodiscard]] Result<std::string> updated_service_spec(const PresentService& present,
                                                       const ServiceUpdateOptions& options);

/// An update that was asked for.
struct AskedUpdate {
  std::string service;   ///< its name, or the number of a replica's job
  std::string revision;  ///< id of the revision that it is to run
};
/// Returns what a spec asks for. Errors: those of the spec.
[[nodiscard]] Result<AskedUpdate> asked_by(const SubmittedSpec& spec);

/// Returns what the service of a replica's job runs; while it is updated, what it is to run.
[[nodiscard]] Result<PresentService> present_service(LiveSession& session, std::uint64_t job);
/// Returns what a service runs beside the canary of its update. Error (kInput): it has none, or no
/// such replica is left.
[[nodiscard]] Result<PresentService> service_before_canary(LiveSession& session, std::uint64_t job);

/// Updates the service of a replica's job; returns the number of the service.
[[nodiscard]] Result<std::uint64_t> update_service(LiveSession& session, std::uint64_t job,
                                                   const SubmittedSpec& spec);

/// Waits until the update of a service ends. Says each change of a replica's phase, and that the
/// service goes back. Error (kInfeasible): the update did not succeed, and why; another one took
/// its place; the service ended.
[[nodiscard]] Result<v1::ServiceView> await_update(LiveSession& session, const AskedUpdate& asked,
                                                   const ServiceWait& wait);

/// Returns "service chat (job 3) runs revision r2: 2 of 2 replicas ready", or how far its update
/// is.
[[nodiscard]] LiveAnswer updated_answer(const v1::ServiceView& service);

}  // namespace orrery
