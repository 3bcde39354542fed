// runtime/training/saved_weights.hpp - the weights of a whole model from a checkpoint or a file,
// without the optimiser's state.
//
// Pure functions over a reader that the caller owns. Cost: one pass over the weights.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "runtime/checkpoint/checkpoint_reader.hpp"
#include "runtime/trainer/parameter_layout.hpp"

namespace orrery {

/// Returns what is saved under a name, or nullptr.
using FindSavedTensor = std::function<const TensorInfo*(std::string_view)>;

/// Checks that saved tensors with the model's names have the model's shapes. Tensors that are
/// missing are left to the reader.
[[nodiscard]] Status check_saved_shapes(const ParameterLayout& whole, const FindSavedTensor& find);

/// Reads all weights of a whole model. Errors: a checkpoint of another model, or a damaged one; the
/// parameters are undefined then. Precondition: parameters.size() == whole.size().
[[nodiscard]] Status read_weights(CheckpointReader& reader, const ParameterLayout& whole,
                                  std::span<float> parameters);

}  // namespace orrery
