// inference/formats/weight_source.hpp - the named tensors of a model's files, whatever their
// format, and how a model takes its weights from them.
//
// A WeightSource is made by the reader of a format, used by one thread while a model is loaded, and
// not needed afterwards. Blocks on the disk. Cost: one pass over the weights; memory for the
// model's floats and a few MB.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "inference/formats/tensor_encoding.hpp"
#include "runtime/kernels/aligned_floats.hpp"
#include "runtime/trainer/parameter_layout.hpp"

namespace orrery {

struct StoredTensor {
  std::string name;
  std::string type;                        ///< as the format calls it
  std::optional<TensorEncoding> encoding;  ///< nothing: weights are not stored so
  std::vector<std::uint64_t> shape;        ///< in row-major order: the last extent is that of a row
  std::string place;                       ///< the file, for messages
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  /// Names are unique.
  [[nodiscard]] virtual std::span<const StoredTensor> tensors() const = 0;
  /// Reads all weights of a tensor. Preconditions: it has an encoding, and `to` room for just its
  /// weights.
  [[nodiscard]] virtual Status read(std::size_t tensor, std::span<float> to) = 0;
};

/// What a format calls the tensors of a model.
struct TensorNaming {
  /// Returns the stored name of a tensor of a layout.
  std::function<std::string(const std::string& name)> stored;
  /// Whether a stored tensor is no weight of the model, and may stand beside them.
  std::function<bool(std::string_view stored)> ignored;
};

/// Reads all weights of a layout of a whole model. Errors name the file and the tensor: one that is
/// missing, has another shape or a type that is no encoding, or is unknown to the model; a weight
/// that is not finite.
[[nodiscard]] Result<AlignedFloats> read_parameters(const ParameterLayout& layout,
                                                    WeightSource& source,
                                                    const TensorNaming& naming);

/// Returns the name of the encoding with most weights, such as "BF16".
[[nodiscard]] std::string main_encoding(const WeightSource& source);

}  // namespace orrery
