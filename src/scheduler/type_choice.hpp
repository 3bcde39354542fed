// scheduler/type_choice.hpp - which accelerators of a fleet a role may run on.
#pragma once

#include <vector>

#include "fleet/topology.hpp"
#include "scheduler/request.hpp"
#include "workload/job_spec.hpp"

namespace orrery {

struct AllowedType {
  FleetTypeId type;
  double speed = 1;  ///< of the role's own work, over the estimate's type
};

struct TypeChoice {
  std::vector<AllowedType> allowed;  ///< by preference
  std::vector<ExcludedType> excluded;
};

/// The types the role names, in its order; where it names none all of the fleet, CPUs only if
/// nothing else runs its software, by descending 16-bit peak, ties by id. Excluded, with what would
/// help: types the fleet does not have, types on which the job's framework does not run (an
/// experimental stack runs; a type of unknown platform is taken to run anything), other export
/// classes than those asked. Errors, at the name's position: a type, framework or export class the
/// catalog does not know. O(types x stacks of the catalog).
[[nodiscard]] Result<TypeChoice> choose_types(const JobSpec& job, const RoleSpec& role,
                                              const Topology& topology);

}  // namespace orrery
