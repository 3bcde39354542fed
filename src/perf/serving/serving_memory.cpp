#include "perf/serving/serving_memory.hpp"

#include <algorithm>

#include "perf/machine/kernel_time.hpp"

namespace orrery {
namespace {

// Runtime, kernels and communication buffers of one process.
constexpr double kContextBytes = 1.2e9;

double layer_weights(const ServingJob& job, const ServingLayer& layer) {
  const double mixers = stored_bytes(job.formats.mixers);
  double bytes = 0;
  for (const ServingMatrix& matrix : layer.matrices) {
    const double split = matrix.split == MatrixSplit::kReplicated ? 1 : job.plan.tp;
    bytes +=
        matrix.rows * matrix.columns / split * (matrix.role == MatrixRole::kRouter ? 2 : mixers);
  }
  const ServingExperts& experts = layer.experts;
  bytes += experts.count * experts.outer * experts.ffn * experts.matrices /
           (job.plan.ep * job.plan.expert_tp()) * stored_bytes(job.formats.weights);
  return bytes;
}

double weight_bytes(const ServingJob& job) {
  double bytes = 0;
  for (const ServingLayer& layer : job.shape.kinds) {
    bytes += layer.layers * layer_weights(job, layer);
  }
  const double table = job.shape.vocab * job.shape.hidden * 2 / job.plan.tp;
  return bytes / job.plan.pp + table * (job.plan.pp > 1 ? 1 : job.shape.embedding_tables);
}

// The widest intermediate of a pass, twice, the hidden states, and a row of logits a sequence.
double activation_bytes(const ServingJob& job, const EngineConstants& engine) {
  double widest = job.shape.hidden;
  for (const ServingLayer& layer : job.shape.kinds) {
    for (const ServingMatrix& matrix : layer.matrices) {
      widest = std::max(widest, matrix.columns / job.plan.tp);
    }
    const ServingExperts& experts = layer.experts;
    widest = std::max(widest, experts.active * (experts.outer + 2 * experts.ffn) /
                                  std::max(1.0, job.plan.expert_tp() * job.plan.ep));
  }
  const double tokens = std::min(engine.chunk, 16384.0);
  return tokens * 2 * (widest + 3 * job.shape.hidden) + kContextBytes;
}

}  // namespace

double sequence_bytes(const ServingJob& job, double tokens) {
  double bytes = 0;
  for (const ServingLayer& layer : job.shape.kinds) {
    const ServingAttention& attention = layer.attention;
    const double part = attention.latent ? 1 : job.plan.kv_part(attention.kv_heads);
    const double kept = attention.window > 0 ? std::min(tokens, attention.window) : tokens;
    if (attention.heads > 0) {
      const double element = stored_bytes(job.formats.kv);
      bytes +=
          layer.layers * kept * (attention.kv_elements * part * element + attention.index_width);
    }
    bytes += layer.layers * attention.state_elements / job.plan.tp * 4;
  }
  return bytes / job.plan.pp;
}

ServingMemory serving_memory(const ServingJob& job, const EngineConstants& engine) {
  const Accelerator& accelerator = *job.accelerator;
  ServingMemory memory;
  memory.weights = weight_bytes(job);
  memory.activations = activation_bytes(job, engine);
  const double kept = job.load.input + engine.reserve * job.load.output;
  memory.sequence = sequence_bytes(job, kept);
  const Bytes visible = accelerator.driver_visible_memory.value_or(accelerator.memory);
  memory.available = engine.usable * visible.value();
  const double left = memory.available - memory.weights - memory.activations;
  memory.sequences = std::max(0.0, left / memory.sequence) * job.plan.attention_dp;
  return memory;
}

}  // namespace orrery
