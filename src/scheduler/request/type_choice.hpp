// scheduler/request/type_choice.hpp - which accelerators of a fleet a role may run on.
#pragma once

#include <vector>

#include "fleet/topology.hpp"
#include "scheduler/request/request.hpp"
#include "workload/job_spec.hpp"

namespace orrery {

struct AllowedType {
  FleetTypeId type;
  double speed = 1;  ///< speed of the role's own work, relative to the type of the estimate
};

struct TypeChoice {
  std::vector<AllowedType> allowed;  ///< by preference
  std::vector<ExcludedType> excluded;
};

/// The types that the role names, in its order. If it names none, all types of the fleet by
/// descending 16-bit peak, ties by id; CPUs only if nothing else runs its software. Excluded, with
/// what would help: types that the fleet does not have, types on which the job's framework does not
/// run (an experimental stack runs; a type of unknown platform is assumed to run anything), and
/// export classes other than those requested. Errors, at the name's position: a type, framework or
/// export class that the catalog does not know. O(types x stacks of the catalog).
[[nodiscard]] Result<TypeChoice> choose_types(const JobSpec& job, const RoleSpec& role,
                                              const Topology& topology);

}  // namespace orrery
