// perf/breakdown.hpp - the terms that add up to a step's time.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace orrery {

/// Each names time that no other term explains.
enum class Term : std::size_t {
  kMatmul,           ///< matrix products
  kAttention,        ///< scores, softmax and their product with the values
  kElementwise,      ///< norms, activations, residuals, casts, permutations
  kRecompute,        ///< forward work done again in the backward pass
  kEnds,             ///< embedding, head and loss
  kTensorParallel,   ///< exposed exchange of activations
  kContextParallel,  ///< exposed exchange of keys and values
  kExpertParallel,   ///< exposed dispatch and combine
  kShard,            ///< exposed gathering of sharded parameters
  kPipelineSend,     ///< exposed sends between stages
  kPipelineBubble,   ///< stages that wait for the first and last micro-batches
  kDataParallel,     ///< exposed reduction of gradients
  kOptimizer,
  kOffload,    ///< exposed traffic to host memory
  kInput,      ///< waiting for training data
  kLaunch,     ///< host work and gaps between kernels
  kStraggler,  ///< waiting for the slowest rank
};

inline constexpr std::size_t kTerms = 17;

inline constexpr std::array<std::string_view, kTerms> kTermNames = {
    "matmul",          "attention",        "elementwise",     "recompute", "embedding_and_head",
    "tensor_parallel", "context_parallel", "expert_parallel", "shard",     "pipeline_send",
    "pipeline_bubble", "data_parallel",    "optimizer",       "offload",   "input",
    "launch",          "straggler"};

/// Seconds by term.
struct Breakdown {
  std::array<double, kTerms> seconds{};

  double& operator[](Term term) { return seconds[static_cast<std::size_t>(term)]; }
  double operator[](Term term) const { return seconds[static_cast<std::size_t>(term)]; }

  [[nodiscard]] double total() const {
    double sum = 0;
    for (const double term : seconds) sum += term;
    return sum;
  }
  void add(const Breakdown& other, double times) {
    for (std::size_t i = 0; i < kTerms; ++i) seconds[i] += times * other.seconds[i];
  }
};

}  // namespace orrery
