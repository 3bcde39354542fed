// scheduler/request/request.hpp - a job as the scheduler sees it: its spec, resolved against a
// fleet.
//
// Names have become ids, and requirements have become the options with which a gang may start:
// which accelerators, how many. Made once when a job is submitted (resolve_job), then immutable.
// Invariant: every role has at least one option; options of a role are in the order of preference
// of the spec, larger sizes first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/rejection.hpp"
#include "base/time.hpp"
#include "scheduler/plans/plan_table.hpp"
#include "scheduler/request/gang.hpp"
#include "scheduler/tenants/tenant_tree.hpp"
#include "workload/job_spec.hpp"

namespace orrery {

/// Jobs with the same request: what one of them cannot have, none of them can.
using ClassId = Id<struct ClassTag>;

/// One combination of type and size with which a gang may start.
struct GangOption {
  GangRequest gang;
  double speed = 1;  ///< speed of the role's work here, relative to where its estimate applies
  std::optional<PlanKey> plan;

  friend bool operator==(const GangOption&, const GangOption&) = default;
};

/// An accelerator that the role may use but cannot run on, with what would change that.
struct ExcludedType {
  std::string type;  ///< name in the catalog
  Rejection why;
};

struct RoleRequest {
  std::string name;
  std::uint32_t gangs = 1;
  std::vector<GangOption> options;
  std::vector<ExcludedType> excluded;
  std::uint32_t devices_min = 1;  ///< of a gang; less than devices_max: elastic
  std::uint32_t devices_max = 1;
  std::optional<SpreadSpec> spread;
  std::optional<WorkId> work;
  std::optional<double> steps;  ///< total training steps

  [[nodiscard]] bool elastic() const { return devices_min < devices_max; }
};

/// Data that the job reads, present at one site.
struct DataRequest {
  std::uint8_t site = 0;  ///< ordinal
  Bytes size;
};

/// Jobs made from one spec: those of `array`, or the replicas of a service.
using ArrayId = Id<struct ArrayTag>;

struct JobRequest {
  // The members that a pass reads of every waiting job are adjacent: it reads tens of thousands of
  // jobs.
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
  std::optional<Duration> estimate;  ///< run time of the first option
  std::vector<DataRequest> data;
  Duration checkpoint_interval = Duration::max();  ///< max: the job writes no checkpoints
  Duration checkpoint_cost;
  Duration restart;  ///< time to restart from a checkpoint, without the lost work
  ArrayId array;     ///< none: the job is the only one of its spec
};

}  // namespace orrery
