#include "workload/trace/trace_mapping.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <optional>

#include "base/numbers/rng.hpp"
#include "workload/job_spec.hpp"

namespace orrery {
namespace {

constexpr std::uint32_t kNoMost = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kAlwaysTrained = 64;

// A model of the catalog, and the gangs it is run on.
struct MappedModel {
  std::string_view name;
  ModelClass model_class;
  double weight;
  std::uint32_t least;
  std::uint32_t most;
};
constexpr std::array<MappedModel, 9> kModels = {{
    {"gpt2", ModelClass::kLanguage, 2, 1, 8},
    {"bert-large", ModelClass::kLanguage, 2, 1, 16},
    {"vit-l-16", ModelClass::kVision, 3, 1, 16},
    {"dlrm-criteo", ModelClass::kRecommendation, 1, 1, 32},
    {"dit-xl-2", ModelClass::kVision, 1, 2, 64},
    {"gpt2-xl", ModelClass::kLanguage, 1, 2, 64},
    {"vit-h-14", ModelClass::kVision, 1, 8, 256},
    {"llama-3.1-8b", ModelClass::kLanguage, 3, 8, kNoMost},
    {"llama-3.1-70b", ModelClass::kLanguage, 3, 64, kNoMost},
}};

// How the names in the traces of Gavel, Muri, Tiresias and Sia begin, in lower case or as there.
struct NamedClass {
  std::string_view begin;
  ModelClass model_class;
};
constexpr std::array<NamedClass, 17> kTraceNames = {{
    {"resnet", ModelClass::kVision},
    {"ResNet", ModelClass::kVision},
    {"vgg", ModelClass::kVision},
    {"shufflenet", ModelClass::kVision},
    {"inception", ModelClass::kVision},
    {"alexnet", ModelClass::kVision},
    {"googlenet", ModelClass::kVision},
    {"CycleGAN", ModelClass::kVision},
    {"cifar", ModelClass::kVision},
    {"imagenet", ModelClass::kVision},
    {"yolo", ModelClass::kVision},
    {"Recommendation", ModelClass::kRecommendation},
    {"ncf", ModelClass::kRecommendation},
    {"dlrm", ModelClass::kRecommendation},
    {"A3C", ModelClass::kReinforcement},
    {"a2c", ModelClass::kReinforcement},
    {"dqn", ModelClass::kReinforcement},
}};

// Parts of a step on the reference that wait for arithmetic, memory and the host.
struct StepParts {
  double arithmetic;
  double memory;
  double host;
};
constexpr StepParts parts_of(ModelClass model) {
  switch (model) {
    case ModelClass::kLanguage:
      return {0.60, 0.30, 0.10};
    case ModelClass::kVision:
      return {0.40, 0.40, 0.20};
    case ModelClass::kRecommendation:
      return {0.05, 0.65, 0.30};
    case ModelClass::kReinforcement:
      break;
  }
  return {0.05, 0.25, 0.70};
}

bool fits(const MappedModel& model, std::uint32_t accelerators) {
  return accelerators >= model.least && accelerators <= model.most;
}

std::string_view model_drawn(std::uint32_t accelerators, Rng& rng) {
  double sum = 0;
  for (const MappedModel& model : kModels) {
    if (fits(model, accelerators)) sum += model.weight;
  }
  double rest = rng.uniform() * sum;
  std::string_view drawn;
  for (const MappedModel& model : kModels) {
    if (!fits(model, accelerators)) continue;
    drawn = model.name;
    rest -= model.weight;
    if (rest < 0) break;
  }
  return drawn;
}

JobKind kind_drawn(const TraceMapping& mapping, Rng& rng) {
  const double point = rng.uniform();
  if (point < mapping.fine_tune_share) return JobKind::kFineTune;
  if (point < mapping.fine_tune_share + mapping.batch_share) return JobKind::kBatch;
  return JobKind::kTrain;
}

// Everything is drawn, needed or not, so that the contents of a file do not shift the rest.
void map_job(TraceJob& job, const TraceMapping& mapping, std::uint64_t seed) {
  Rng rng = Rng::stream(seed, job.name);
  const std::string_view model = model_drawn(std::max(job.accelerators, 1u), rng);
  const JobKind kind = kind_drawn(mapping, rng);
  const bool elastic = rng.uniform() < mapping.elastic_share;
  if (job.accelerators == 0) {
    if (!job.kind) job.kind = JobKind::kBatch;
    return;
  }
  if (job.model.empty()) job.model = model;
  if (!job.kind) job.kind = job.accelerators >= kAlwaysTrained ? JobKind::kTrain : kind;
  if (job.accelerators_max == 0 && elastic && job.share == 1000) {
    job.accelerators_min = (job.accelerators + 1) / 2;
    job.accelerators_max = std::min(job.accelerators * 2, kTraceAcceleratorsMax);
  }
}

double peak(const Accelerator& type) {
  for (const NumberFormat format :
       {NumberFormat::kBf16, NumberFormat::kFp16, NumberFormat::kFp32}) {
    if (const std::optional<FlopsPerSecond> rate = type.rate(format)) return rate->value();
  }
  return 0;
}

}  // namespace

void map_trace(Trace& trace, const TraceMapping& mapping, std::uint64_t seed) {
  for (TraceJob& job : trace.jobs) {
    if (!job.spec) map_job(job, mapping, seed);
  }
}

ModelClass model_class(std::string_view model) {
  for (const MappedModel& known : kModels) {
    if (model == known.name) return known.model_class;
  }
  for (const NamedClass& named : kTraceNames) {
    if (model.starts_with(named.begin)) return named.model_class;
  }
  return ModelClass::kLanguage;
}

double type_speed(ModelClass model, const Accelerator& type, const Accelerator& reference) {
  const StepParts parts = parts_of(model);
  const double own = peak(type);
  if (own <= 0) return 0;
  const double arithmetic = peak(reference) / own;
  const double memory = reference.memory_bandwidth.value() / type.memory_bandwidth.value();
  return 1 / (parts.arithmetic * arithmetic + parts.memory * memory + parts.host);
}

}  // namespace orrery
