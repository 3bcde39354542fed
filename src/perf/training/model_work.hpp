// perf/training/model_work.hpp - a model as the work of its layers: matrix products, attention,
// passes over activations, weights. What the cost model multiplies with micro-batches and splits
// over ranks.
//
// Built once from a Model; a value.
#pragma once

#include <vector>

#include "base/error.hpp"
#include "base/quantity.hpp"
#include "workload/models/model.hpp"

namespace orrery {

/// How tensor parallelism cuts a weight matrix.
enum class Cut {
  kColumns,     ///< output features
  kRows,        ///< input features
  kReplicated,  ///< not cut
};

enum class Operand { kDense, kExpert };

/// y[tokens x n] = x[tokens x k] W[k x n], once a layer and token (for experts: once a visit).
struct Product {
  double n = 0;
  double k = 0;
  Cut cut = Cut::kColumns;
  Operand operand = Operand::kDense;
  bool narrow = true;  ///< runs in the job's narrow format where it has one
};

/// Layers of one kind. Counts are of one layer, unsplit.
struct LayerWork {
  LayerGroup group;
  double layers = 0;
  std::vector<Product> products;
  double parameters = 0;
  double largest_weight = 0;     ///< elements of the largest matrix that is not an expert's
  double routed_parameters = 0;  ///< of them, in routed experts
  double query_width = 0;        ///< queries of all heads
  double key_value_width = 0;  ///< keys and values of one token, all heads, as attention sees them
  double heads = 0;
  double head_dim = 0;
  bool sinks = false;         ///< learned scores beside those of the keys
  double attended_width = 0;  ///< query and value width: 2 operations a seen token
  double scan_flops = 0;      ///< operations a token beside products and attention
  double scan_width = 0;      ///< elements a token that linear mixers pass over
  double ffn_width = 0;       ///< inner width of the dense and shared parts together, as cut by tp
  double expert_ffn = 0;
  bool expert_biases = false;
  double experts = 0;
  double experts_active = 0;
  double gates = 1;  ///< 2: gated feed-forward
  /// Layers of this kind before the i-th of the model, i from 0 to their number.
  std::vector<double> before;
};

struct ModelWork {
  double hidden = 0;
  double vocab = 0;      ///< 0: no token embedding, no head
  double embedding = 0;  ///< parameters of the input tables
  double head = 0;       ///< parameters of the output matrix (also when tied)
  bool tied = false;
  double layers = 0;
  double prediction_layers =
      0;                  ///< multi-token prediction: a layer and a head each, behind the last
  double parameters = 0;  ///< all
  double active_parameters = 0;  ///< used for one token
  std::vector<LayerWork> kinds;
  bool token_model = true;
};

/// Errors: a family whose step has no layers to split (recommendation models).
[[nodiscard]] Result<ModelWork> work_of(const Model& model);

/// Operations of attention's core (scores and their product with the values, forward) a token in
/// one layer, averaged over the positions of a sequence.
[[nodiscard]] double attention_flops_per_token(const LayerWork& work, Tokens sequence,
                                               MaskedScores masked);

}  // namespace orrery
