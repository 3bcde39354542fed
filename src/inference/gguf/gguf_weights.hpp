// inference/gguf/gguf_weights.hpp - the weights of a Llama in a GGUF file, under the names and
// in the order of Hugging Face.
//
// Used by one thread while a model is loaded; borrows the file. llama.cpp turns neighbours (2i, 2i
// + 1) of a head where Hugging Face turns (i, i + half), so its converter interleaves the rows of
// the halves of each head of queries and keys; reading puts them back. Cost: a buffer for one
// tensor of those.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "inference/formats/weight_source.hpp"
#include "inference/gguf/gguf_file.hpp"
#include "runtime/trainer/transformer_config.hpp"

namespace orrery {

class GgufWeights final : public WeightSource {
 public:
  /// `file` outlives it.
  GgufWeights(const GgufFile& file, const TransformerConfig& config);

  [[nodiscard]] std::span<const StoredTensor> tensors() const override { return tensors_; }
  [[nodiscard]] Status read(std::size_t tensor, std::span<float> to) override;

 private:
  const GgufFile& file_;
  std::int64_t head_width_;
  std::vector<StoredTensor> tensors_;
};

/// Returns what a GGUF file calls a tensor of Hugging Face's llama.
[[nodiscard]] std::string gguf_name(std::string_view name);

/// Puts the rows of heads back into the order of Hugging Face: row (2i + p) of a stored head is its
/// row (p x half + i). Precondition: the weights are whole heads of rows of `width`.
void restore_head_rows(std::span<float> weights, std::size_t width, std::size_t head_width);

}  // namespace orrery
