// perf/serving/serving_shape.hpp - a transformer as an inference engine runs it: the matrices of
// each kind of layer, what its attention reads, and what a sequence leaves behind in memory.
//
// Built from a Model by serving_shape_of; a plain value afterwards. Sizes are whole numbers held as
// doubles. Invariant: the layers' counts add up to the model's layers.
#pragma once

#include <vector>

#include "base/error.hpp"
#include "workload/models/model.hpp"

namespace orrery {

/// How tensor-parallel ranks divide a matrix.
enum class MatrixSplit {
  kColumns,    ///< its outputs
  kRows,       ///< its inputs: the results are summed over the ranks
  kReplicated  ///< every rank has all of it
};

/// Whose number format a matrix has.
enum class MatrixRole { kMixer, kFeedForward, kRouter };

struct ServingMatrix {
  double rows = 0;     ///< inputs
  double columns = 0;  ///< outputs
  MatrixSplit split = MatrixSplit::kColumns;
  MatrixRole role = MatrixRole::kMixer;
};

/// What a token's attention does, all heads of one layer.
struct ServingAttention {
  double heads = 0;           ///< 0: the layer has none
  double kv_heads = 0;        ///< key-value heads that can be divided over ranks
  double prefill_width = 0;   ///< of queries and values: 2 operations a seen token
  double decode_width = 0;    ///< the same in decode (latent attention: in the latent's space)
  double kv_elements = 0;     ///< of one token
  bool latent = false;        ///< keys and values are one latent that every rank holds
  double window = 0;          ///< most earlier tokens seen and kept; 0: all
  double seen_max = 0;        ///< most earlier tokens read (sparse attention keeps all); 0: all
  double index_width = 0;     ///< elements an indexer reads for each earlier token
  double state_elements = 0;  ///< recurrent state of a sequence, read and written each token
};

struct ServingExperts {
  double count = 0;  ///< 0: the layer has none
  double active = 0;
  double outer = 0;     ///< width the experts work in
  double ffn = 0;       ///< inner width of one
  double matrices = 3;  ///< of one
};

struct ServingLayer {
  double layers = 0;
  std::vector<ServingMatrix> matrices;  ///< beside the routed experts'
  ServingAttention attention;
  ServingExperts experts;
};

struct ServingShape {
  double hidden = 0;
  double vocab = 0;
  double layers = 0;
  double embedding_tables = 2;  ///< 1 when the head is the embedding
  std::vector<ServingLayer> kinds;
};

/// Error: the model is not a causal language model.
[[nodiscard]] Result<ServingShape> serving_shape_of(const Model& model);

/// The part of a Transformer alone, for callers that have no Model around it.
[[nodiscard]] ServingShape serving_shape_of(const Transformer& transformer);

}  // namespace orrery
