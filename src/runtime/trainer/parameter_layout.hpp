// runtime/trainer/parameter_layout.hpp - where each weight of a model is stored in one flat vector
// of floats: that vector is what is trained, sharded, summed over ranks and written to checkpoints.
//
// Made once from a checked TransformerConfig; immutable. Names and shapes are those of Hugging
// Face's gpt2, llama and mixtral checkpoints, so other programs can read a safetensors file of the
// tensors (gpt2 stores its matrices [in, out], the others [out, in]). Experts of a GPT, for which
// no names are established, are a layer's moe.gate.weight [experts, width] and
// moe.experts.E.c_fc.weight and c_proj.weight. A rank that computes a model with others has the
// layout of its part: the same tensors, some of them cut; they are empty if they are on another
// stage or, for experts, on another rank. Invariant: tensors are in ascending order of `begin`,
// each a multiple of 16 floats, so that it starts a cache line if the vector does; the gaps between
// them are 0 and stay 0.
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

/// Selects from each `period` floats of a whole tensor `count` from `first` on. This describes all
/// cuts: rows of a matrix are one period, columns one per row, heads of queries, keys and values
/// three per row.
struct TensorCut {
  std::size_t period = 0;
  std::size_t first = 0;
  std::size_t count = 0;

  [[nodiscard]] bool whole() const { return count == period; }
};

struct ParameterTensor {
  std::string name;
  std::vector<std::int64_t> shape;  ///< shape of the whole tensor
  TensorCut cut;                    ///< the part of it on this rank
  std::size_t begin = 0;            ///< floats from the vector's start
  std::size_t size = 0;             ///< floats on this rank
  bool counts = false;              ///< whether this is the first of the parts with the same floats
  bool decays = false;   ///< whether weight decay applies: matrices do, norms and biases do not
  float mean = 0;        ///< mean of the initial values
  double deviation = 0;  ///< deviation of the initial values
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

/// One of a layer's experts, as far as it is on this rank; it has no biases.
struct ExpertParameters {
  LinearParameters up;
  LinearParameters down;
};

/// A layer's mixture of experts; empty where the layer has none.
struct MoeParameters {
  LinearParameters router;
  std::vector<ExpertParameters> experts;  ///< on this rank, by number
  std::size_t first = 0;                  ///< number of the first expert here
};

/// One layer. Llama's three projections of the attention, and the two into the feed-forward part,
/// are stored side by side and are one product.
struct BlockParameters {
  NormParameters attention_norm;
  LinearParameters qkv;
  LinearParameters attention_out;
  NormParameters ffn_norm;
  LinearParameters up;  ///< with experts: this and down are those of the first expert here
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
  /// Number of trained weights: size() without the gaps between tensors.
  [[nodiscard]] std::size_t trained() const;
  /// Returns the tensor of that name, or nullptr. O(tensors).
  [[nodiscard]] const ParameterTensor* find(std::string_view name) const;

  [[nodiscard]] std::size_t token_embedding() const { return token_embedding_; }
  [[nodiscard]] std::optional<std::size_t> position_embedding() const {
    return position_embedding_;
  }
  /// The layers on this rank, chunk after chunk.
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
  /// Describes a whole tensor; each `period` floats are cut alike, 0: it is not cut.
  struct Added {
    std::vector<std::int64_t> shape;
    double deviation = 0;
    float mean = 0;
    std::int64_t period = 0;
  };
  std::size_t add(std::string name, const Added& added);
  NormParameters add_layer_norm(const std::string& name);
  /// Sizes of the whole layer. Each `period` columns are cut alike; 0: the rows are cut.
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
  /// Where the tensors that are laid out now belong.
  enum class Place { kElsewhere, kHere, kHereAgain };  ///< kHereAgain: an earlier stage has it, too
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

/// Returns the operations per token of the part's matrix products for a gradient: those that the
/// mathematics requires, without recomputation. Only the visible half of the attention counts, and
/// experts count as if they were chosen equally often.
[[nodiscard]] double operations_per_token(const ParameterLayout& layout);

/// Sets initial weights as in GPT-2 (A. Radford et al., "Language Models are Unsupervised Multitask
/// Learners", 2019, section 2.3): normal with deviation 0.02, those of projections back into the
/// residual stream divided by sqrt(2 x layers); norms 1, biases 0. A tensor's values depend on the
/// seed and its name alone: a part gets the values of the whole model, and draws all of them.
/// Precondition: parameters.size() == layout.size().
void initialise(const ParameterLayout& layout, std::uint64_t seed, std::span<float> parameters);

}  // namespace orrery
