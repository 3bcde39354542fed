// runtime/training/whole_model_test.hpp - shared by the tests of parts of a model.
#pragma once

#include "runtime/kernels/aligned_floats.hpp"
#include "runtime/training/whole_model.hpp"

namespace orrery {

/// Returns a small model; four ranks may share its layers, or be its stages.
inline TransformerConfig shared_config(TransformerFamily family) {
  return {.family = family,
          .layers = 4,
          .width = 32,
          .heads = 4,
          .ffn = 64,
          .vocab = 19,
          .sequence = 67,
          .tied_embedding = family == TransformerFamily::kGpt,
          .rope_base = 100};
}

/// Returns the part's share of the whole vector.
inline AlignedFloats part_of(const WholeModel& model, std::span<const float> whole) {
  AlignedFloats part(model.own().size());
  model.visit({0, part.size()}, [&](const FloatRun& run) {
    std::copy_n(whole.data() + run.whole, run.size, part.data() + run.here);
  });
  return part;
}

}  // namespace orrery
