// scheduler/request.hpp - a job as the scheduler sees it: its spec, resolved against a fleet.
//
// Names have become ids, wishes have become the options a gang may start with: which accelerators,
// how many. Made once when a job is submitted (resolve_job), then immutable.
// Invariant: every role has at least one option; options of a role are in the order of preference
// of the spec, larger sizes first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/rejection.hpp"
#include "base/time.hpp"
#include "scheduler/gang.hpp"
#include "scheduler/plan_table.hpp"
#include "scheduler/tenant_tree.hpp"
#include "workload/job_spec.hpp"

namespace orrery {

/// Jobs that ask for the same thing: what one cannot have, none of them can.
using ClassId = Id<struct ClassTag>;

/// One way a gang may start.
struct GangOption {
  GangRequest gang;
  double speed = 1;  ///< of the role's work here, over the one its estimate is for
  std::optional<PlanKey> plan;

  friend bool operator==(const GangOption&, const GangOption&) = default;
};

/// An accelerator the role may have but cannot run on, with what would change that.
struct ExcludedType {
  std::string type;  ///< of the catalog
  Rejection why;
};

struct RoleRequest {
  std::string name;
  std::uint32_t gangs = 1;
  std::vector<GangOption> options;
  std::vector<ExcludedType> excluded;
  std::uint32_t devices_min = 1;  ///< of a gang; less than the most: elastic
  std::uint32_t devices_max = 1;
  std::optional<SpreadSpec> spread;
  std::optional<WorkId> work;
  std::optional<double> steps;  ///< of training, in all

  [[nodiscard]] bool elastic() const { return devices_min < devices_max; }
};

/// Data the job reads: warm at one site.
struct DataRequest {
  std::uint8_t site = 0;  ///< ordinal
  Bytes size;
};

struct JobRequest {
  // What a pass asks of every job that waits stands together: it reads tens of thousands.
  TenantId tenant;
  std::int32_t priority = 0;
  ClassId class_id;  ///< set by ClassTable
  JobKind kind = JobKind::kBatch;
  bool preemptible = false;
  std::optional<Instant> deadline;
  std::string name;
  std::vector<RoleRequest> roles;
  JobGoal goal = JobGoal::kTime;
  std::optional<Dollars> budget;
  std::optional<Duration> time_limit;
  std::optional<Duration> estimate;  ///< of the run time of the first option
  std::vector<DataRequest> data;
  Duration checkpoint_interval = Duration::max();  ///< max: it writes none
  Duration checkpoint_cost;
  Duration restart;  ///< from a checkpoint, without the lost work
};

}  // namespace orrery
