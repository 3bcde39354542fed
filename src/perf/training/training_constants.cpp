#include "perf/training/training_constants.hpp"

#include <array>
#include <string>
#include <string_view>

#include "base/format/field_writer.hpp"
#include "base/numbers/math.hpp"
#include "perf/software_release.hpp"

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
  /// "name.GENERATION.STACK", else "name.GENERATION", else "name".
  [[nodiscard]] double by_generation_and_stack(const std::string& name) const {
    const std::string generation = name + "." + machine_.generation;
    return calibration_.first_of({generation + "." + stack_, generation, name});
  }
  /// "name.GENERATION", else "name.STACK", else "name".
  [[nodiscard]] double by_generation_or_stack(const std::string& name) const {
    return calibration_.first_of({name + "." + machine_.generation, name + "." + stack_, name});
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
  c.flash_rate = wide_peak * resolve.by_generation_and_stack("attention.flash");
  c.flash_backward = resolve.plain("attention.backward");
  c.flash_half = resolve.by_stack("attention.half");
  c.sinks = resolve.plain("attention.sinks");
  c.unfused_passes = resolve.plain("attention.unfused_passes");
  c.misaligned = resolve.plain("attention.misaligned");
  c.head_misfit = resolve.plain("attention.misfit");
  c.flash_misfit = resolve.plain("attention.flash_misfit");
}

void set_overheads(const Resolver& resolve, const TrainingJob& job, TrainingConstants& c) {
  c.passes = resolve.by_stack("passes");
  if (job.precision.execution == Execution::kEager) c.passes *= resolve.plain("passes.eager");
  c.scan_passes = resolve.by_stack("scan.passes");
  c.layer_launch = resolve.by_stack("launch.layer");
  c.local_expert_launch = resolve.by_stack("launch.local_expert");
  if (job.precision.scaling == Scaling::kBlock) {
    c.local_expert_launch = resolve.plain("launch.local_expert.block");
  }
  c.send_launch = resolve.by_stack("launch.send");
  c.permute_passes = resolve.by_stack("expert.passes");
  c.biased_passes = resolve.by_stack("expert.biased");
  c.loss_bytes = resolve.by_stack("loss.bytes");
  c.dispatch_merging = resolve.by_generation("expert.merging");
  c.imbalance = resolve.plain("expert.imbalance");
  c.step_fixed = resolve.by_stack("launch.step");
  c.tensor_overlap = resolve.by_generation_or_stack("overlap.tensor");
  c.shard_overlap = resolve.by_stack("overlap.shard");
  c.data_overlap = resolve.by_stack("overlap.data");
  c.expert_overlap = resolve.by_stack("overlap.expert");
  c.pipeline_overlap = resolve.by_stack("overlap.pipeline");
  c.gradient_bytes =
      job.precision.format == NumberFormat::kFp16 ? 2 : resolve.by_stack("gradient.bytes");
  c.accumulated_bytes = resolve.by_stack("accumulate.bytes");
  c.optimizer_passes = resolve.by_stack("optimizer.passes");
  c.lora_backward = resolve.plain("lora.backward");
  c.jitter = resolve.plain("jitter");
}

/// Releases the calibration has figures for, years since 2020, and their words in it.
struct ReleaseKnot {
  double years;
  std::string_view word;
};
constexpr std::array<ReleaseKnot, 4> kReleases = {{{5 + 8 / 12.0, "25-09"},
                                                   {6 + 1 / 12.0, "26-02"},
                                                   {6 + 3 / 12.0, "26-04"},
                                                   {6 + 5 / 12.0, "26-06"}}};

/// A constant known at some releases, linear between them and constant outside.
double at_release(const Calibration& calibration, const std::string& name, double years) {
  const auto value = [&](std::size_t i) {
    return calibration.first_of({name + "." + std::string(kReleases[i].word)});
  };
  if (years <= kReleases.front().years) return value(0);
  for (std::size_t i = 1; i < kReleases.size(); ++i) {
    if (years > kReleases[i].years) continue;
    const double part =
        (years - kReleases[i - 1].years) / (kReleases[i].years - kReleases[i - 1].years);
    return (1 - part) * value(i - 1) + part * value(i);
  }
  return value(kReleases.size() - 1);
}

/// Later releases fuse the quantisation of block-scaled operands into the grouped products and
/// start them from graphs: less of what experts cost beside products and exchange.
void set_release(const Calibration& calibration, const TrainingJob& job,
                 TrainingConstants& constants) {
  constants.scale = at_release(calibration, "release.all", *job.release);
  if (job.precision.scaling != Scaling::kBlock) return;
  const double experts = at_release(calibration, "release.experts", *job.release);
  constants.local_expert_launch *= experts;
  constants.permute_passes *= experts;
  constants.biased_passes *= experts;
}

}  // namespace

TrainingStack stack_of(const Machine& machine, const TrainingJob& job, const ParallelPlan& plan) {
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
  // Releases are Megatron's, which has a fully sharded mode of its own.
  const bool own_mode = job.release && job.release_scope == ReleaseScope::kRun;
  const bool sharded = plan.zero >= 2 && plan.tp == 1 && plan.pp == 1 && !own_mode;
  if (sharded) return TrainingStack::kFsdp;
  return job.attention == AttentionKernel::kUnfused ? TrainingStack::kMegatronClassic
                                                    : TrainingStack::kMegatron;
}

TrainingConstants training_constants(const Machine& machine, const TrainingJob& job,
                                     TrainingStack stack, const Calibration& calibration) {
  const Resolver resolve(machine, stack, calibration);
  TrainingConstants constants;
  set_rates(resolve, machine, job, constants);
  set_overheads(resolve, job, constants);
  constants.network = network_of(machine, calibration);
  if (!job.release) {
    constants.scale = resolve.by_generation("release.unknown");
  } else if (job.release_scope == ReleaseScope::kRun ||
             (stack == TrainingStack::kMegatron && has_releases(machine))) {
    set_release(calibration, job, constants);
  } else {
    // Current software: not the first of its generation.
    constants.scale = resolve.plain("release.unknown");
  }
  return constants;
}

}  // namespace orrery
