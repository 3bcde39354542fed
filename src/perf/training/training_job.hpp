// perf/training/training_job.hpp - what a training step is asked to do, apart from how it is split.
//
// A value; the model it points to must outlive it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"
#include "hardware/number_format.hpp"
#include "workload/models/model.hpp"

namespace orrery {

enum class TrainingTask { kPretrain, kFineTune, kLora };

inline std::array<EnumWord<TrainingTask>, 3> enum_words(TrainingTask) {
  return {{{"pretrain", TrainingTask::kPretrain},
           {"fine-tune", TrainingTask::kFineTune},
           {"lora", TrainingTask::kLora}}};
}

/// How a narrow format's numbers get their scale.
enum class Scaling {
  kNone,    ///< 16 bits and wider
  kTensor,  ///< one scale a tensor (current or delayed scaling)
  kRow,
  kBlock,  ///< one a small block (MX, NVFP4, 128 x 128 tiles)
};

inline std::array<EnumWord<Scaling>, 4> enum_words(Scaling) {
  return {{{"none", Scaling::kNone},
           {"tensor", Scaling::kTensor},
           {"row", Scaling::kRow},
           {"block", Scaling::kBlock}}};
}

/// How the operators between matrix products reach the device.
enum class Execution {
  kUnknown,
  kEager,    ///< one kernel an operator
  kCompiled  ///< fused by a compiler
};

/// The format of the matrix products, as published: "bf16", "FP8-CS", "NVFP4", "int8 (AQT)".
struct TrainingPrecision {
  NumberFormat format = NumberFormat::kBf16;
  Scaling scaling = Scaling::kNone;
  Execution execution = Execution::kUnknown;

  friend bool operator==(const TrainingPrecision&, const TrainingPrecision&) = default;
};

enum class AttentionKernel { kFlash, kUnfused };

/// Software that runs a training job; its constants are in the calibration.
enum class TrainingStack {
  kMegatron,         ///< Megatron Core, NeMo, Megatron Bridge
  kMegatronClassic,  ///< Megatron-LM and Megatron-DeepSpeed before flash attention
  kFsdp,             ///< PyTorch FSDP / DeepSpeed ZeRO-3 without tensor parallelism
  kXla,              ///< JAX on TPU (MaxText)
  kNeuron,           ///< Neuron SDK on Trainium
  kRocm,             ///< PyTorch or Megatron on ROCm
  kSynapse,          ///< SynapseAI on Gaudi
};

inline std::array<EnumWord<TrainingStack>, 7> enum_words(TrainingStack) {
  return {{{"megatron", TrainingStack::kMegatron},
           {"megatron-classic", TrainingStack::kMegatronClassic},
           {"fsdp", TrainingStack::kFsdp},
           {"xla", TrainingStack::kXla},
           {"neuron", TrainingStack::kNeuron},
           {"rocm", TrainingStack::kRocm},
           {"synapse", TrainingStack::kSynapse}}};
}

/// Which plans of a job a stated release covers.
enum class ReleaseScope {
  kRun,       ///< all: fully sharded plans run in Megatron's own mode (published runs)
  kMegatron,  ///< those that Megatron runs; the others run on current software
};

struct TrainingJob {
  const Model* model = nullptr;
  Tokens sequence{2048};
  double global_batch = 1;  ///< sequences an optimizer step
  TrainingPrecision precision;
  TrainingTask task = TrainingTask::kPretrain;
  AttentionKernel attention = AttentionKernel::kFlash;
  std::optional<TrainingStack> stack;  ///< none: what is usual for accelerator and plan
  /// Release of the stack in years since 2020 ("26.04" is 6.25); none: the calibration's default.
  std::optional<double> release;
  ReleaseScope release_scope = ReleaseScope::kRun;
  double bytes_per_token = 4;  ///< of training data read from storage, see perf/site/input.hpp
  /// Seconds in which the data of one step arrive (input_stall's `reading`); read ahead behind the
  /// step before, so only what exceeds the step is waited for.
  double input_seconds = 0;
};

}  // namespace orrery
