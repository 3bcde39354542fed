// runtime/trainer/activations.hpp - where everything stands that a model keeps between forward and
// backward pass, and what both write on the way, in one vector of floats.
//
// A value that points into memory of its owner's. Invariant: each piece starts a cache line where
// the memory does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/trainer/attention.hpp"
#include "runtime/trainer/parameter_layout.hpp"

namespace orrery {

/// The rows of one norm.
struct NormRows {
  const float* x = nullptr;
  float* mean = nullptr;
  float* inverse_deviation = nullptr;
  float* out = nullptr;
};

/// What a layer keeps of its forward pass.
/// The stream and the norms have the rows of their own that a tensor rank keeps, all else has all.
struct BlockRows {
  float* stream_in = nullptr;
  NormRows attention_norm;
  AttentionRows attention;
  float* stream_middle = nullptr;
  NormRows ffn_norm;
  float* router_scores = nullptr;  ///< where there are experts
  float* inner = nullptr;          ///< what goes into the activation
  float* activation = nullptr;     ///< what comes out of it
};

struct ActivationRows {
  std::vector<std::vector<BlockRows>> slots;  ///< of a micro-batch each, the layers of a chunk
  // What no layer owns.
  float* stream_out = nullptr;  ///< the residual stream after the last layer of a chunk
  NormRows final_norm;          ///< this and the logits: of a last stage
  float* logits = nullptr;
  float* stream_gradient = nullptr;
  float* norm_gradient = nullptr;  ///< of a norm's result, and of the attention's; partial sums
  float* gathered = nullptr;       ///< all rows of something cut; nullptr: nothing is
  float* out_gradient = nullptr;   ///< the same, for experts
  float* qkv_gradient = nullptr;
  float* inner_gradient = nullptr;  ///< of what goes into the activation
  float* activation_gradient = nullptr;
  float* expert_rows = nullptr;  ///< where there are experts: what goes into one, or comes out
};

/// Logits are made, judged and turned into gradients by so many rows, to stay in the cache.
[[nodiscard]] std::int64_t logit_rows(const TransformerConfig& config);

/// Of micro-batches of `sequences` sequences, `slots` at a time, the floats that the rows take;
/// they are handed out of `arena`, unless it is nullptr. Ranks that share layers have norm_gradient
/// and the two after it elsewhere.
std::size_t lay_activations(const ParameterLayout& layout, std::int64_t sequences,
                            ActivationRows& rows, float* arena);

}  // namespace orrery
