#include "perf/training_constants.hpp"

#include <algorithm>
#include <string>

#include "base/field_writer.hpp"
#include "base/math.hpp"

namespace orrery {
namespace {

/// The calibration's word for a format and its scaling.
std::string word_of_precision(const TrainingPrecision& precision) {
  switch (precision.format) {
    case NumberFormat::kFp8:
    case NumberFormat::kFp6:
      return precision.scaling == Scaling::kBlock ? "fp8-block" : "fp8";
    case NumberFormat::kFp4:
      return "fp4";
    case NumberFormat::kInt8:
    case NumberFormat::kInt4:
      return "int8";
    case NumberFormat::kTf32:
      return "tf32";
    case NumberFormat::kFp32:
    case NumberFormat::kFp64:
    case NumberFormat::kFp64Matrix:
      return "fp32";
    case NumberFormat::kBf16:
    case NumberFormat::kFp16:
      return "16bit";
  }
  return "16bit";
}

bool is_narrow(NumberFormat format) {
  return format != NumberFormat::kBf16 && format != NumberFormat::kFp16;
}

class Resolver {
 public:
  Resolver(const Machine& machine, TrainingStack stack, const Calibration& calibration)
      : machine_(machine), stack_(word_of(stack)), calibration_(calibration) {}

  /// "name.GENERATION", else "name".
  [[nodiscard]] double by_generation(const std::string& name) const {
    return calibration_.first_of({name + "." + machine_.generation, name});
  }
  /// "name.GENERATION.word", else "name.word".
  [[nodiscard]] double by_generation(const std::string& name, const std::string& word) const {
    return calibration_.first_of(
        {name + "." + machine_.generation + "." + word, name + "." + word});
  }
  /// "name.STACK", else "name".
  [[nodiscard]] double by_stack(const std::string& name) const {
    return calibration_.first_of({name + "." + stack_, name});
  }
  [[nodiscard]] double plain(const std::string& name) const {
    return calibration_.first_of({name});
  }

 private:
  const Machine& machine_;
  std::string stack_;
  const Calibration& calibration_;
};

void set_rates(const Resolver& resolve, const Machine& machine, const TrainingJob& job,
               TrainingConstants& c) {
  const double wide_peak = machine.peak_of(NumberFormat::kBf16);
  c.wide_rate = wide_peak * resolve.by_generation("matmul", "16bit");
  c.narrow_rate = c.wide_rate;
  if (is_narrow(job.precision.format)) {
    const double peak = machine.peak_of(job.precision.format);
    const double rate = peak * resolve.by_generation("matmul", word_of_precision(job.precision));
    // A format the device lacks runs in 16 bits.
    if (peak > 0) c.narrow_rate = rate;
    c.cast_passes = peak > 0 ? resolve.plain("cast." + word_of_precision(job.precision)) : 0;
  }
  c.expert_rate_factor = resolve.by_stack("expert.rate");
  c.depth_half = resolve.plain("matmul.depth_half");
  c.wave_weight = resolve.plain("matmul.wave");
  c.compute_units = machine.compute_units;
  c.memory_rate = machine.memory_bandwidth * resolve.by_generation("memory.fraction");
  c.flash_rate = wide_peak * resolve.by_generation("attention.flash");
  c.flash_backward = resolve.plain("attention.backward");
  c.flash_half = resolve.plain("attention.half");
  c.unfused_passes = resolve.plain("attention.unfused_passes");
  c.head_misfit = resolve.plain("attention.misfit");
}

void set_overheads(const Resolver& resolve, const TrainingJob& job, TrainingConstants& c) {
  c.passes = resolve.by_stack("passes");
  if (job.precision.execution == Execution::kEager) c.passes *= resolve.plain("passes.eager");
  c.layer_launch = resolve.by_stack("launch.layer");
  c.expert_launch = resolve.by_stack("launch.expert");
  c.permute_passes = resolve.by_stack("expert.passes");
  c.imbalance = resolve.plain("expert.imbalance");
  c.step_fixed = resolve.by_stack("launch.step");
  c.tensor_overlap = resolve.by_generation("overlap.tensor");
  c.shard_overlap = resolve.by_stack("overlap.shard");
  c.data_overlap = resolve.by_stack("overlap.data");
  c.expert_overlap = resolve.by_stack("overlap.expert");
  c.pipeline_overlap = resolve.by_stack("overlap.pipeline");
  c.gradient_bytes = job.precision.format == NumberFormat::kFp16 ? 2 : 4;
  c.optimizer_passes = resolve.by_stack("optimizer.passes");
  c.lora_backward = resolve.plain("lora.backward");
  c.jitter = resolve.plain("jitter");
}

}  // namespace

TrainingStack stack_of(const Machine& machine, const ParallelPlan& plan) {
  const Accelerator& a = *machine.accelerator;
  switch (a.kind) {
    case AcceleratorKind::kTpu:
      return TrainingStack::kXla;
    case AcceleratorKind::kNpu:
      return a.architecture.starts_with("gaudi") ? TrainingStack::kSynapse : TrainingStack::kNeuron;
    case AcceleratorKind::kCpu:
    case AcceleratorKind::kGpu:
      break;
  }
  if (a.vendor == "amd" || a.vendor == "AMD") return TrainingStack::kRocm;
  const bool sharded = plan.zero >= 2 && plan.tp == 1 && plan.pp == 1;
  return sharded ? TrainingStack::kFsdp : TrainingStack::kMegatron;
}

TrainingConstants training_constants(const Machine& machine, const TrainingJob& job,
                                     TrainingStack stack, const Calibration& calibration) {
  const Resolver resolve(machine, stack, calibration);
  TrainingConstants constants;
  set_rates(resolve, machine, job, constants);
  set_overheads(resolve, job, constants);
  constants.network = network_of(machine, calibration);
  if (job.release) {
    // Faster by a constant fraction a year, against the release the constants are for.
    const double years = resolve.plain("release.reference") - *job.release;
    constants.scale = math::exp(resolve.plain("release.yearly") * years);
    constants.expert_launch *= math::exp(resolve.plain("release.expert_yearly") * years);
    constants.permute_passes *= math::exp(resolve.plain("release.expert_yearly") * years);
  }
  return constants;
}

}  // namespace orrery
