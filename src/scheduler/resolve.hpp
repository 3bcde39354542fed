// scheduler/resolve.hpp - turns a job as a person wrote it into what a scheduler can place on one
// fleet, or says that it never could.
//
// Whether something fits is decided by the placers themselves, on the fleet as it was built
// (scheduler/pristine_fleet.hpp). Nothing here searches for plans job by job: what was found out
// for a work, a type and a size is kept (scheduler/plan_sizes.hpp).
#pragma once

#include "base/error.hpp"
#include "scheduler/plan_sizes.hpp"
#include "scheduler/pristine_fleet.hpp"
#include "scheduler/request.hpp"

namespace orrery {

/// Where jobs are resolved; a bundle of references that outlive the call.
struct ResolveContext {
  PristineFleet& fleet;
  const ModelCatalog& models;
  const TenantTree& tenants;
  WorkTable& works;
  /// None: sizes that have no plan are offered too, and an elastic role the usual ones.
  PlanSizes* sizes = nullptr;
  Instant now;
};

/// The request of a job: for each role and each type it may run on, in the order of choose_types()
/// (scheduler/type_choice.hpp), its sizes, largest first; options that could never be placed, or
/// have no plan, are left out. An array is one request; whoever expands it gives each of its jobs a
/// copy. Set by ClassTable: class_id.
///
/// Speeds: the estimate is for the largest gang; smaller ones take longer in proportion, and types
/// as the role says. Where a job that trains names no interval between checkpoints, an hour is
/// assumed, and its restart takes what the catalog says of its size (with `sizes`, which know the
/// constants).
///
/// Errors of the user's, with position: names nobody knows (the nearest), a deadline that has
/// passed, what resolve_work and TenantTree::job_tenant refuse. Of kind kInfeasible, "never: ..."
/// with the role, the key and the reason: nothing a role may run on can ever hold one of its gangs,
/// or the roles do not fit together. O(options log gangs known), a placement for each gang not
/// asked about before.
[[nodiscard]] Result<JobRequest> resolve_job(const JobSpec& spec, const ResolveContext& context);

}  // namespace orrery
