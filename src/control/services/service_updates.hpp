// control/services/service_updates.hpp - carries out updates of services: replicas of another
// revision take the place of the present ones, or there are more or fewer of them, or none works.
//
// A class of Core (control/core/core.hpp), on its thread. It follows from the state alone what is
// to be done next, so a takeover continues an update where it was. Cost of settle(): O(replicas of
// the services that are updated). Invariants of an update, at every step:
//   1. A replica that is ready is stopped only if as many as wanted, less `unavailable`, are ready
//      without it.
//   2. A replica is made only if there are fewer than wanted and `surge` together.
//   3. A new revision of which a replica fails is given up: the service goes back to the one
//   before.
//      If that fails as well, the update ends and the replicas stay as they are.
//   4. Before the last stage of a canary there are no more replicas of the new revision than its
//      share of the requests asks for, and verdicts alone lead from stage to stage.
#pragma once

#include "control/jobs/job_life.hpp"
#include "control/recorder.hpp"

namespace orrery {

/// The parts of Core that an update acts by.
struct UpdateParts {
  Recorder& recorder;
  JobLife& jobs;
};

/// Begins an update, or gives the one under way another aim. No effect where the service is as
/// wanted. The present revision takes a canary back. The command is refused where another revision
/// is a canary, and where the job is no replica of a service that runs.
void update_service(const UpdateParts& parts, UpdateService command);

/// Returns how many replicas of a service are wanted: by its update, else those that neither leave
/// nor rest. O(replicas).
[[nodiscard]] std::uint32_t wanted_replicas(const State& state, const Service& service);

/// Gives a service another number of replicas of its present revision; 0: its last replica rests,
/// one of several leaves. An order is passed over while another revision takes the place of the
/// present one, and where the service has replicas of several roles.
void scale_service(const UpdateParts& parts, const ScaleOrder& order);

/// Leads a canary to its next stage, or gives its revision up.
void judge_canary(const UpdateParts& parts, const CanaryVerdict& verdict);

/// Takes every step of every update that can be taken now; to be called at the end of each input.
/// Cost: O(replicas of the services that are updated).
void settle_updates(const UpdateParts& parts);

}  // namespace orrery
