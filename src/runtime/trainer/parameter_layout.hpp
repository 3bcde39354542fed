// runtime/trainer/parameter_layout.hpp - where each weight of a model stands in one flat vector of
// floats: what is trained, sharded, summed over ranks and written to checkpoints is that vector.
//
// Made once from a checked TransformerConfig; immutable. Names and shapes are those of Hugging
// Face's gpt2, llama and mixtral checkpoints, so a safetensors file of the tensors is one that
// others can read (gpt2 keeps its matrices [in, out], the others [out, in]). Experts of a GPT,
// which nobody has a name for, are moe.gate.weight [experts, width] and moe.experts.E.c_fc.weight
// and c_proj.weight, of a layer. A rank that computes a model with others has the layout of its
// part: the same tensors, some of them cut, to nothing where they are on another stage or, of
// experts, on another rank. Invariant: tensors are in ascending order of `begin`, each a multiple
// of 16 floats, so that it starts a cache line where the vector does; what lies between them is 0
// and stays so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/trainer/model_part.hpp"

namespace orrery {

/// Of each `period` floats of a whole tensor, `count` from `first` on. One rule for all cuts: rows
/// of a matrix are one period, columns one a row, heads of queries, keys and values three a row.
struct TensorCut {
  std::size_t period = 0;
  std::size_t first = 0;
  std::size_t count = 0;

  [[nodiscard]] bool whole() const { return count == period; }
};

struct ParameterTensor {
  std::string name;
  std::vector<std::int64_t> shape;  ///< of the whole tensor
  TensorCut cut;                    ///< of it, what is here
  std::size_t begin = 0;            ///< floats from the vector's start
  std::size_t size = 0;             ///< floats that are here
  bool counts = false;              ///< of parts that have the same of it, this is the first
  bool decays = false;   ///< whether weight decay applies: matrices do, norms and biases do not
  float mean = 0;        ///< of the initial values
  double deviation = 0;  ///< of the initial values
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

/// One of a layer's experts, as far as it is here; it has no biases.
struct ExpertParameters {
  LinearParameters up;
  LinearParameters down;
};

/// A layer's mixture of experts; empty where the layer has none.
struct MoeParameters {
  LinearParameters router;
  std::vector<ExpertParameters> experts;  ///< that are here, by number
  std::size_t first = 0;                  ///< the number of the first of them
};

/// One layer. Llama's three projections of the attention, and the two into the feed-forward part,
/// stand side by side and are one product.
struct BlockParameters {
  NormParameters attention_norm;
  LinearParameters qkv;
  LinearParameters attention_out;
  NormParameters ffn_norm;
  LinearParameters up;  ///< this and down: of the first expert here, where there are experts
  LinearParameters down;
  MoeParameters moe;
};

class ParameterLayout {
 public:
  /// Precondition: check(config) and check_parts(config, part) are fine.
  explicit ParameterLayout(const TransformerConfig& config, const ModelPart& part = {});

  [[nodiscard]] const TransformerConfig& config() const { return config_; }
  [[nodiscard]] const ModelPart& part() const { return part_; }
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
  /// Of the layers that are here, chunk after chunk.
  [[nodiscard]] std::span<const BlockParameters> blocks() const { return blocks_; }
  [[nodiscard]] const NormParameters& final_norm() const { return final_norm_; }
  /// Its weight is token_embedding() when the embedding is tied.
  [[nodiscard]] const LinearParameters& head() const { return head_; }

 private:
  void lay_gpt();
  void lay_llama();
  void lay_gpt_block(const std::string& prefix);
  void lay_llama_block(const std::string& prefix);
  void lay_moe(const std::string& prefix);
  [[nodiscard]] ExpertParameters lay_expert(const std::string& prefix);
  void lay_layers();
  void lay_head();
  /// Of the whole tensor; `period` floats of it are cut alike, 0: it is not cut.
  struct Added {
    std::vector<std::int64_t> shape;
    double deviation = 0;
    float mean = 0;
    std::int64_t period = 0;
  };
  std::size_t add(std::string name, const Added& added);
  NormParameters add_layer_norm(const std::string& name);
  /// Sizes of the whole. `period` columns are cut alike; 0: the rows are cut.
  struct Conv1d {
    std::int64_t in = 0;
    std::int64_t out = 0;
    std::int64_t period = 0;
    double deviation = 0;
  };
  LinearParameters add_conv1d(const std::string& name, const Conv1d& linear);
  [[nodiscard]] TensorCut cut_of(std::int64_t period) const;

  /// This rank among those that share what is laid out now.
  struct Sharer {
    std::uint32_t rank = 0;
    std::uint32_t ranks = 1;
  };
  /// Of what is laid out now.
  enum class Place { kElsewhere, kHere, kHereAgain };  ///< again: an earlier stage has it, too
  [[nodiscard]] Place place_of_embedding() const;
  [[nodiscard]] Place place_on_stage(std::int64_t stage) const {
    return stage == part_.stage ? Place::kHere : Place::kElsewhere;
  }

  TransformerConfig config_;
  ModelPart part_;
  Place place_ = Place::kHere;
  Sharer sharer_;
  std::vector<ParameterTensor> tensors_;
  std::size_t size_ = 0;
  std::size_t token_embedding_ = 0;
  std::optional<std::size_t> position_embedding_;
  std::vector<BlockParameters> blocks_;
  NormParameters final_norm_;
  LinearParameters head_;
};

/// Operations of the matrix products of a gradient a token: those the mathematics asks for,
/// whatever is computed twice, of the part. Only the visible half of the attention counts, and
/// experts as if they were chosen equally often.
[[nodiscard]] double operations_per_token(const ParameterLayout& layout);

/// Initial weights as in GPT-2 (A. Radford et al., "Language Models are Unsupervised Multitask
/// Learners", 2019, section 2.3): normal with deviation 0.02, those of projections back into the
/// residual stream divided by sqrt(2 x layers); norms 1, biases 0. A tensor's values depend on the
/// seed and its name alone: a part has those of the whole, and draws them all. Precondition:
/// parameters.size() == layout.size().
void initialise(const ParameterLayout& layout, std::uint64_t seed, std::span<float> parameters);

}  // namespace orrery
