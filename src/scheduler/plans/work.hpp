// scheduler/plans/work.hpp - the work of the jobs of a queue, each kind of work once.
//
// resolve_work() turns what a user wrote into a Work: a model and the figures that determine how it
// is split and how fast it runs. The amount of it belongs to the job, so jobs that differ only in
// length share a WorkId, and with it their plans (scheduler/plans/plan_table.hpp). Invariant: two
// ids never stand for equal work; an id does not change. Values; models belong to the catalog,
// which must outlive them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/id.hpp"
#include "perf/training/training_job.hpp"
#include "planner/serving/serving_capacity.hpp"
#include "workload/job_spec.hpp"
#include "workload/models/model_catalog.hpp"

namespace orrery {

using WorkId = Id<struct WorkTag>;

struct TrainingWork {
  TrainingTask task = TrainingTask::kPretrain;
  Tokens sequence;
  double global_batch = 1;  ///< sequences in a step
  TrainingPrecision precision;
};

/// What one gang of the role has to serve.
struct ServiceWork {
  double input = 1;   ///< tokens of a prompt
  double output = 1;  ///< tokens generated
  double rate = 1;    ///< requests a second
  LatencyLimits limits;
  NumberFormat weights = NumberFormat::kBf16;
};

struct Work {
  const Model* model = nullptr;
  std::variant<TrainingWork, ServiceWork> what;

  [[nodiscard]] const TrainingWork* training() const { return std::get_if<TrainingWork>(&what); }
  [[nodiscard]] const ServiceWork* serving() const { return std::get_if<ServiceWork>(&what); }
};

/// "llama-3.1-70b: pretrain, steps of 512 x 8192 tokens in bf16"; different work never has the same
/// text.
[[nodiscard]] std::string print_work(const Work& work);

/// Work, and the number of its steps in a job.
struct SizedWork {
  Work work;
  std::optional<double> steps;  ///< training steps; none: the length was not stated
};

/// The work of a role that names a model: serving if a rate is given, else training. A service
/// gives each of its gangs an equal part of the rate. Sequence and batch that were not stated are
/// the planner's usual ones (planner/job_defaults.hpp) for the role's accelerators. Errors, at the
/// work's position: an unknown model or precision (with the nearest), a model whose architecture is
/// not known, no such sequence or batch, both tokens and steps, a service without a rate or the
/// tokens of its requests. Precondition: role.work.
[[nodiscard]] Result<SizedWork> resolve_work(const RoleSpec& role, JobKind kind,
                                             const ModelCatalog& models);

class WorkTable {
 public:
  /// Returns the id of this work, a new one if no equal work is known. O(log works).
  WorkId intern(const Work& work);

  [[nodiscard]] const Work& operator[](WorkId id) const { return works_[id.value()]; }
  [[nodiscard]] std::size_t size() const { return works_.size(); }

 private:
  std::vector<Work> works_;
  std::map<std::string, WorkId> ids_;  ///< by print_work
};

/// Registers the work of all roles of a job in their order, up to one that cannot be resolved. The
/// numbers depend on the job, the models and the work known before, and on no fleet. Errors: those
/// of resolve_work.
[[nodiscard]] Status register_work(const JobSpec& spec, const ModelCatalog& models,
                                   WorkTable& works);

}  // namespace orrery
