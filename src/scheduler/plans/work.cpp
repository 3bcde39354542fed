#include "scheduler/plans/work.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/assert.hpp"
#include "base/format/field_writer.hpp"
#include "planner/job_defaults.hpp"

namespace orrery {
namespace {

std::string print_precision(const TrainingPrecision& precision) {
  std::string text(word_of(precision.format));
  if (precision.scaling != Scaling::kNone) {
    text += fmt::format(" (a scale a {})", word_of(precision.scaling));
  }
  return text;
}

class Resolver {
 public:
  Resolver(const RoleSpec& role, JobKind kind) : role_(role), spec_(*role.work), kind_(kind) {}

  Result<SizedWork> resolve(const ModelCatalog& models) {
    Result<const CatalogModel*> found = models.require(spec_.model, spec_.where);
    if (!found) return forward_error(found);
    sized_.work.model = &(*found)->model;
    if (!sized_.work.model->known_type) {
      return wrong("model", fmt::format("\"{}\" is of no known architecture", spec_.model));
    }
    const bool serves = kind_ == JobKind::kServe || spec_.rate.has_value();
    if (Status set = serves ? set_serving() : set_training(); !set) return forward_error(set);
    return sized_;
  }

 private:
  [[nodiscard]] tl::unexpected<Error> wrong(std::string_view field, const std::string& what) const {
    return input_error(spec_.where, fmt::format("{}: {}", field, what));
  }

  Status set_serving() {
    const auto needed = [&](std::string_view field, const std::optional<double>& value) -> Status {
      if (value && *value > 0) return {};
      return wrong(field, "a service needs it, more than 0");
    };
    Status checked = needed("rate", spec_.rate);
    if (checked) checked = needed("input_tokens", spec_.input_tokens);
    if (checked) checked = needed("output_tokens", spec_.output_tokens);
    if (!checked) return checked;
    Result<TrainingPrecision> precision = precision_named(spec_.precision);
    if (!precision) return wrong("precision", precision.error().message);
    sized_.work.what = ServiceWork{.input = *spec_.input_tokens,
                                   .output = *spec_.output_tokens,
                                   .rate = *spec_.rate / role_.replicas,
                                   .limits = {.ttft = spec_.ttft, .tpot = spec_.tpot},
                                   .weights = precision->format};
    return {};
  }

  Status set_training() {
    const Model& model = *sized_.work.model;
    TrainingWork work;
    if (kind_ == JobKind::kFineTune) work.task = TrainingTask::kFineTune;
    Result<TrainingPrecision> precision = precision_named(spec_.precision);
    if (!precision) return wrong("precision", precision.error().message);
    work.precision = *precision;
    std::optional<double> stated;
    if (spec_.sequence) stated = static_cast<double>(*spec_.sequence);
    Result<double> sequence = sequence_of(model, stated);
    if (!sequence) return wrong("sequence", sequence.error().message);
    work.sequence = Tokens(*sequence);
    const std::vector<std::uint64_t> ranks = counts_of_role();
    Result<double> batch =
        batch_of(model, {.stated = spec_.global_batch, .sequence = *sequence, .ranks = ranks});
    if (!batch) return wrong("global_batch", batch.error().message);
    work.global_batch = *batch;
    if (spec_.tokens && spec_.steps) return wrong("tokens", "stands beside steps; give one");
    if (spec_.steps) sized_.steps = static_cast<double>(*spec_.steps);
    if (spec_.tokens) {
      // The length of a run of an image or video model is counted in samples.
      const double counted = sample_tokens(model) > 0 ? 1 : *sequence;
      sized_.steps = std::ceil(spec_.tokens->value() / (*batch * counted));
    }
    sized_.work.what = work;
    return {};
  }

  [[nodiscard]] std::vector<std::uint64_t> counts_of_role() const {
    std::vector<std::uint64_t> counts;
    for (const auto& count : {role_.accelerators, role_.accelerators_min, role_.accelerators_max}) {
      if (count && *count > 0) counts.push_back(*count);
    }
    return counts;
  }

  const RoleSpec& role_;
  const WorkSpec& spec_;
  JobKind kind_;
  SizedWork sized_;
};

}  // namespace

std::string print_work(const Work& work) {
  if (const TrainingWork* t = work.training()) {
    return fmt::format("{}: {}, steps of {} x {} tokens in {}", work.model->name, word_of(t->task),
                       t->global_batch, t->sequence.value(), print_precision(t->precision));
  }
  const ServiceWork& s = *work.serving();
  std::string text = fmt::format("{}: serve {} requests/s of {} + {} tokens in {}",
                                 work.model->name, s.rate, s.input, s.output, word_of(s.weights));
  if (s.limits.ttft) text += fmt::format(", first token in {} s", s.limits.ttft->value());
  if (s.limits.tpot) text += fmt::format(", each further in {} s", s.limits.tpot->value());
  return text;
}

Result<SizedWork> resolve_work(const RoleSpec& role, JobKind kind, const ModelCatalog& models) {
  ORRERY_ASSERT(role.work.has_value(), "the role names a model");
  return Resolver(role, kind).resolve(models);
}

WorkId WorkTable::intern(const Work& work) {
  const auto [at, fresh] = ids_.emplace(print_work(work), WorkId::at(works_.size()));
  if (fresh) works_.push_back(work);
  return at->second;
}

Status register_work(const JobSpec& spec, const ModelCatalog& models, WorkTable& works) {
  for (const RoleSpec& role : spec.roles) {
    if (!role.work) continue;
    Result<SizedWork> sized = resolve_work(role, spec.kind, models);
    if (!sized) return forward_error(sized);
    works.intern(sized->work);
  }
  return {};
}

}  // namespace orrery
