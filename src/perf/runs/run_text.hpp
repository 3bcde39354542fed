// perf/runs/run_text.hpp - the free text of published runs about precision, recomputation,
// software.
//
// Each reader takes a base word and qualifiers, in any order and punctuation, and never fails: a
// qualifier that means nothing here becomes a sentence in `warnings`. Pure. Cost: O(bytes).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/number_format.hpp"
#include "perf/training/training_job.hpp"
#include "workload/parallel_plan.hpp"

namespace orrery {

using Warnings = std::vector<std::string>;

/// What a row says is computed again in the backward pass.
struct StatedRecompute {
  std::optional<Recompute> mode;  ///< none: "per recipe", "?", "not stated"
  std::uint32_t layers = 0;       ///< kFull on so many layers; 0: on all
  Offload offload = Offload::kNone;
  /// With kFull: share of a layer's matrix products (by operations) whose outputs are kept all the
  /// same, so that they are not computed again. 1 for "minimal", which recomputes only scores and
  /// element-wise work.
  double kept = 0;

  friend bool operator==(const StatedRecompute&, const StatedRecompute&) = default;
};

/// "bf16", "FP8-CS", "NVFP4", "int8 (AQT)", "bf16 compile". The first format that is not that of an
/// optimizer, gradient or master copy counts; text without one is taken as bf16. A narrow format
/// without a word on its scales has one a tensor (fp8), a row (int8, int4) or a block (fp6, fp4).
[[nodiscard]] TrainingPrecision read_precision_text(std::string_view text, Warnings& warnings);

/// "full", "none", "selective(attention)+sequence-parallel", "full (8 layers)", a number of layers,
/// a rematerialisation policy of MaxText ("minimal", "save_out_proj", "qkv_proj_offloaded").
[[nodiscard]] StatedRecompute read_recompute_text(std::string_view text, Warnings& warnings);

/// Years since 2020 of "26.04.01 NeMo Container", 6 + (4 - 1) / 12 and 1/360 a step of the third
/// part; none for text without a year and month.
[[nodiscard]] std::optional<double> read_release_text(std::string_view text, Warnings& warnings);

/// "pretrain", "SFT", "LoRA".
[[nodiscard]] TrainingTask read_task_text(std::string_view text, Warnings& warnings);

/// "fp8", "fp16", "mxfp4", "nvfp4", "int4": what weights, cache or activations are held in.
[[nodiscard]] std::optional<NumberFormat> read_format_text(std::string_view text,
                                                           Warnings& warnings);

/// The software that serves a model.
struct ServingEngine {
  std::string family;  ///< "tensorrt-llm", "vllm", "sglang", ...; unknown: the words of the text
  /// Grows with the version within a family: major + minor / 100 + patch / 10000, release
  /// candidates a little below. An MLPerf round stands for the engine's version of its time.
  std::optional<double> version;

  friend bool operator==(const ServingEngine&, const ServingEngine&) = default;
};

/// `engine` may carry the version itself ("vLLM 0.10.0").
[[nodiscard]] ServingEngine read_engine_text(std::string_view engine, std::string_view version,
                                             Warnings& warnings);

}  // namespace orrery
