// runtime/trainer/parameter_layout.hpp - where each weight of a model stands in one flat vector of
// floats: what is trained, sharded, summed over ranks and written to checkpoints is that vector.
//
// Made once from a checked TransformerConfig; immutable. Names and shapes are those of Hugging
// Face's gpt2 and llama checkpoints, so a safetensors file of the tensors is one that others can
// read (gpt2 keeps its matrices [in, out], llama [out, in]). Invariant: tensors are in ascending
// order of `begin`, each a multiple of 16 floats, so that it starts a cache line where the vector
// does; what lies between them is 0 and stays so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/trainer/transformer_config.hpp"

namespace orrery {

struct ParameterTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::size_t begin = 0;  ///< floats from the vector's start
  std::size_t size = 0;   ///< floats
  bool decays = false;    ///< whether weight decay applies: matrices do, norms and biases do not
  float mean = 0;         ///< of the initial values
  double deviation = 0;   ///< of the initial values
};

/// A matrix product's weights: rows of `in` floats become rows of `out`.
struct LinearParameters {
  enum class Storage { kInOut, kOutIn };
  std::int64_t in = 0;
  std::int64_t out = 0;
  Storage storage = Storage::kInOut;
  std::size_t weight = 0;
  std::optional<std::size_t> bias;
};

struct NormParameters {
  std::size_t weight = 0;
  std::optional<std::size_t> bias;  ///< a LayerNorm has one, an RMSNorm none
};

/// One layer. Llama's three projections of the attention, and the two into the feed-forward part,
/// stand side by side and are one product.
struct BlockParameters {
  NormParameters attention_norm;
  LinearParameters qkv;
  LinearParameters attention_out;
  NormParameters ffn_norm;
  LinearParameters up;
  LinearParameters down;
};

class ParameterLayout {
 public:
  /// Precondition: check(config) is fine.
  explicit ParameterLayout(const TransformerConfig& config);

  [[nodiscard]] const TransformerConfig& config() const { return config_; }
  [[nodiscard]] std::span<const ParameterTensor> tensors() const { return tensors_; }
  /// Floats of the whole vector, a multiple of 16.
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Weights that are trained: size() without what lies between tensors.
  [[nodiscard]] std::size_t trained() const;
  /// nullptr when there is none of the name. O(tensors).
  [[nodiscard]] const ParameterTensor* find(std::string_view name) const;

  [[nodiscard]] std::size_t token_embedding() const { return token_embedding_; }
  [[nodiscard]] std::optional<std::size_t> position_embedding() const {
    return position_embedding_;
  }
  [[nodiscard]] std::span<const BlockParameters> blocks() const { return blocks_; }
  [[nodiscard]] const NormParameters& final_norm() const { return final_norm_; }
  /// Its weight is token_embedding() when the embedding is tied.
  [[nodiscard]] const LinearParameters& head() const { return head_; }

 private:
  void lay_gpt();
  void lay_llama();
  void lay_gpt_block(const std::string& prefix);
  void lay_llama_block(const std::string& prefix);
  void lay_head();
  std::size_t add(std::string name, std::vector<std::int64_t> shape, double deviation);
  std::size_t add_vector(std::string name, std::int64_t size, float mean);
  NormParameters add_layer_norm(const std::string& name);
  LinearParameters add_conv1d(const std::string& name, const LinearParameters& linear,
                              double deviation);

  TransformerConfig config_;
  std::vector<ParameterTensor> tensors_;
  std::size_t size_ = 0;
  std::size_t token_embedding_ = 0;
  std::optional<std::size_t> position_embedding_;
  std::vector<BlockParameters> blocks_;
  NormParameters final_norm_;
  LinearParameters head_;
};

/// Initial weights as in GPT-2 (A. Radford et al., "Language Models are Unsupervised Multitask
/// Learners", 2019, section 2.3): normal with deviation 0.02, those of projections back into the
/// residual stream divided by sqrt(2 x layers); norms 1, biases 0. A tensor's values depend on the
/// seed and its name alone. Precondition: parameters.size() == layout.size().
void initialise(const ParameterLayout& layout, std::uint64_t seed, std::span<float> parameters);

}  // namespace orrery
