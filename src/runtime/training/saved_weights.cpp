#include "runtime/training/saved_weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>

#include "base/assert.hpp"

namespace orrery {

Status check_saved_shapes(const ParameterLayout& whole, const FindSavedTensor& find) {
  for (const ParameterTensor& tensor : whole.tensors()) {
    const TensorInfo* saved = find(tensor.name);
    if (saved == nullptr || std::ranges::equal(saved->shape, tensor.shape, [](auto a, auto b) {
          return a == static_cast<std::uint64_t>(b);
        })) {
      continue;
    }
    return input_error(
        {}, fmt::format("the weights are of another model: its {} is {}, not {}", tensor.name,
                        fmt::join(saved->shape, " x "), fmt::join(tensor.shape, " x ")));
  }
  return {};
}

Status read_weights(CheckpointReader& reader, const ParameterLayout& whole,
                    std::span<float> parameters) {
  ORRERY_ASSERT(parameters.size() == whole.size(), "the parameters are the layout's");
  const Status fits = check_saved_shapes(whole, [&](std::string_view name) -> const TensorInfo* {
    const auto found = std::ranges::find_if(
        reader.tensors(), [&](const PlacedTensor& each) { return each.info.name == name; });
    return found == reader.tensors().end() ? nullptr : &found->info;
  });
  if (!fits) return fits;
  std::ranges::fill(parameters, 0.0F);
  for (const ParameterTensor& tensor : whole.tensors()) {
    Status read =
        reader.read({.tensor = tensor.name, .begin = 0, .end = tensor.size},
                    std::as_writable_bytes(parameters.subspan(tensor.begin, tensor.size)));
    if (!read) return read;
  }
  return {};
}

}  // namespace orrery
