// runtime/trainer/activations.hpp - the layout of all that a model keeps between forward and
// backward pass, and of the buffers that both write, in one vector of floats.
//
// A value that points into its owner's memory. Invariant: each piece starts a cache line if the
// memory does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/kernels/attention.hpp"
#include "runtime/trainer/parameter_layout.hpp"

namespace orrery {

/// The rows of one norm.
struct NormRows {
  const float* x = nullptr;
  float* mean = nullptr;
  float* inverse_deviation = nullptr;
  float* out = nullptr;
};

/// What a layer keeps of its forward pass. The stream and the norms hold only the tensor rank's own
/// rows, everything else holds all rows.
struct BlockRows {
  float* stream_in = nullptr;
  NormRows attention_norm;
  AttentionRows attention;
  float* stream_middle = nullptr;
  NormRows ffn_norm;
  float* router_scores = nullptr;  ///< only with experts
  float* inner = nullptr;          ///< input of the activation
  float* activation = nullptr;     ///< output of the activation
};

struct ActivationRows {
  std::vector<std::vector<BlockRows>> slots;  ///< one per micro-batch: the layers of a chunk
  // Buffers that belong to no layer.
  float* stream_out = nullptr;  ///< the residual stream after the last layer of a chunk
  NormRows final_norm;          ///< this and the logits: on the last stage only
  float* logits = nullptr;
  float* stream_gradient = nullptr;
  float* norm_gradient = nullptr;  ///< gradient after a norm or the attention; partial sums
  float* gathered = nullptr;       ///< all rows of a buffer that is cut; nullptr: nothing is cut
  float* out_gradient = nullptr;   ///< all rows of the output's gradient, for experts
  float* qkv_gradient = nullptr;
  float* inner_gradient = nullptr;  ///< gradient of the activation's input
  float* activation_gradient = nullptr;
  float* expert_rows = nullptr;  ///< input or output of one expert, if there are experts
};

/// Returns how many rows of logits are computed, scored and turned into gradients at a time, so
/// that they stay in the cache.
[[nodiscard]] std::int64_t logit_rows(const TransformerConfig& config);

/// Returns the floats that rows.slots and the other buffers take for micro-batches of `sequences`
/// sequences, and places them in `arena`, unless it is nullptr. Ranks that share layers keep
/// norm_gradient and the next two buffers elsewhere.
std::size_t lay_activations(const ParameterLayout& layout, std::int64_t sequences,
                            ActivationRows& rows, float* arena);

}  // namespace orrery
