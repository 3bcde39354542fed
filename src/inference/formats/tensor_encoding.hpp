// inference/formats/tensor_encoding.hpp - how files store the weights of a tensor, and their values
// as floats.
//
// Plain values and pure functions. The blocks of quantised weights are those of ggml
// (github.com/ggml-org/ggml, src/ggml-common.h and dequantize_row_* of src/ggml-quants.c); float16
// is IEEE 754 binary16, bfloat16 the upper half of a float. All are little endian. Cost: a few
// operations a weight.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace orrery {

enum class TensorEncoding : std::uint8_t {
  kF32,
  kF16,
  kBf16,
  kQ8_0,  ///< 32 weights: scale, 32 bytes
  kQ4_0,  ///< 32 weights: scale, 32 x 4 bits less 8
  kQ4_1,  ///< 32 weights: scale, least weight, 32 x 4 bits
  kQ5_0,  ///< 32 weights: scale, 32 top bits, 32 x 4 bits; less 16
  kQ5_1,  ///< 32 weights: scale, least weight, 32 top bits, 32 x 4 bits
  kQ4_K,  ///< 256 weights: 8 parts with a scale and a least weight of 6 bits each, 256 x 4 bits
  kQ5_K,  ///< 256 weights: as Q4_K, and 256 top bits
  kQ6_K,  ///< 256 weights: 16 parts with a scale of 8 bits each, 256 x 6 bits less 32
};

/// The unit in which an encoding stores weights.
struct EncodingBlock {
  TensorEncoding encoding = TensorEncoding::kF32;
  std::string_view name;  ///< "Q4_1"
  std::uint64_t weights = 1;
  std::uint64_t bytes = 4;
};
[[nodiscard]] const EncodingBlock& block_of(TensorEncoding encoding);
/// All encodings, in their order.
[[nodiscard]] std::span<const EncodingBlock> all_encodings();

/// Returns the bytes of rows of `row` weights each; nothing where a row is no whole number of
/// blocks, or where they are more than 2^53.
[[nodiscard]] std::optional<std::uint64_t> encoded_bytes(TensorEncoding encoding, std::uint64_t row,
                                                         std::uint64_t rows);

/// Writes the values of whole blocks. Precondition: `bytes` are those of floats.size() weights.
void decode_weights(TensorEncoding encoding, std::string_view bytes, std::span<float> floats);

/// Returns the value of a float16.
[[nodiscard]] float float_of_half(std::uint16_t half);

}  // namespace orrery
