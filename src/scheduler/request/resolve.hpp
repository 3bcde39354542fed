// scheduler/request/resolve.hpp - turns a job as a user wrote it into what a scheduler can place on
// one fleet, or reports that it could never be placed.
//
// Whether something fits is decided by the placers themselves, on the fleet as it was built
// (scheduler/place/pristine_fleet.hpp). No plans are searched for job by job: what was found for a
// work, a type and a size is kept (scheduler/plans/plan_sizes.hpp).
#pragma once

#include "base/error.hpp"
#include "scheduler/place/pristine_fleet.hpp"
#include "scheduler/plans/plan_sizes.hpp"
#include "scheduler/request/request.hpp"

namespace orrery {

/// What jobs are resolved against; a bundle of references that outlive the call.
struct ResolveContext {
  PristineFleet& fleet;
  const ModelCatalog& models;
  const TenantTree& tenants;
  WorkTable& works;
  /// nullptr: sizes that have no plan are offered too, and an elastic role gets the usual sizes.
  PlanSizes* sizes = nullptr;
  Instant now;
};

/// The request of a job: for each role and each type it may run on, in the order of choose_types()
/// (scheduler/request/type_choice.hpp), its sizes, largest first; options that could never be
/// placed, or have no plan, are left out. An array is one request; the code that expands it gives
/// each of its jobs a copy. ClassTable sets class_id.
///
/// Speeds: the estimate is for the largest gang; smaller ones take longer in proportion, and types
/// run as the role states. If a training job names no interval between checkpoints, an hour is
/// assumed, and its restart takes what the catalog states for its size (with `sizes`, which know
/// the constants).
///
/// User errors, with position: unknown names (with the nearest known one), a deadline that has
/// passed, what resolve_work and TenantTree::job_tenant refuse. Errors of kind kInfeasible, "never:
/// ..." with the role, the key and the reason: nothing a role may run on can ever hold one of its
/// gangs, or the roles do not fit together. O(options log gangs known), and a placement for each
/// gang not asked about before.
[[nodiscard]] Result<JobRequest> resolve_job(const JobSpec& spec, const ResolveContext& context);

}  // namespace orrery
