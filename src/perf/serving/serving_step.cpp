#include "perf/serving/serving_step.hpp"
#include "base/numbers/math.hpp"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

constexpr double kActivationBytes = 2;

// Passes over a token's hidden vector a layer: two norms with their residual sums, rotary position,
// quantisation, the activation function's input and output.
constexpr double kHiddenPasses = 12;

}  // namespace

StepTime& StepTime::operator+=(const StepTime& other) {
  matmul += other.matmul;
  experts += other.experts;
  attention += other.attention;
  elementwise += other.elementwise;
  collective += other.collective;
  host += other.host;
  return *this;
}

StepTime operator*(double factor, const StepTime& time) {
  return {.matmul = factor * time.matmul,
          .experts = factor * time.experts,
          .attention = factor * time.attention,
          .elementwise = factor * time.elementwise,
          .collective = factor * time.collective,
          .host = factor * time.host};
}

double experts_touched(const ServingExperts& experts, double tokens) {
  return experts.count * (1 - math::pow(1 - experts.active / experts.count, tokens));
}

ServingStep::ServingStep(const ServingJob& job, const ServingConstants& constants)
    : job_(job), constants_(constants), kernels_(*job.accelerator, constants) {}

StepTime ServingStep::time(const StepLoad& load) const {
  const double groups = job_.plan.attention_dp;
  const StepLoad own{.sequences = load.sequences / groups,
                     .context = load.context,
                     .prompts = load.prompts / groups,
                     .piece = load.piece,
                     .seen = load.seen,
                     .finished = load.finished / groups};
  StepTime total;
  for (const ServingLayer& layer : job_.shape.kinds) {
    total += layer.layers * layer_time(layer, own);
  }
  const double heads = own.sequences + own.finished;
  if (heads > 0) {
    total.matmul +=
        kernels_.matmul({.m = heads, .n = job_.shape.vocab / job_.plan.tp, .k = job_.shape.hidden});
    total.elementwise += kernels_.stream(heads * job_.shape.vocab * 4 * 3);
  }
  if (job_.plan.pp > 1) total.collective += pipeline_time(own.sequences + own.prompts);
  total.host += constants_.engine.step + constants_.engine.sequence * own.sequences +
                constants_.engine.prompt * own.finished;
  return total;
}

StepTime ServingStep::layer_time(const ServingLayer& layer, const StepLoad& load) const {
  const double tokens = load.sequences + load.prompts;
  StepTime time;
  time.matmul = matrices_time(layer, tokens);
  time.attention = attention_time(layer.attention, load);
  if (layer.experts.count > 0) {
    time.experts = experts_time(layer.experts, tokens * job_.plan.attention_dp);
  }
  time.collective = collective_time(layer, tokens);
  double wide = kHiddenPasses * job_.shape.hidden;
  for (const ServingMatrix& matrix : layer.matrices) wide += 2 * matrix.columns / job_.plan.tp;
  time.elementwise = constants_.engine.layer + kernels_.stream(tokens * wide * kActivationBytes);
  return time;
}

double ServingStep::matrices_time(const ServingLayer& layer, double tokens) const {
  double time = 0;
  for (const ServingMatrix& matrix : layer.matrices) {
    MatrixProduct product{.m = tokens, .n = matrix.columns, .k = matrix.rows};
    if (matrix.split == MatrixSplit::kColumns) product.n /= job_.plan.tp;
    if (matrix.split == MatrixSplit::kRows) product.k /= job_.plan.tp;
    if (matrix.role != MatrixRole::kRouter) {
      product.weights = job_.formats.mixers;
      product.activations =
          stored_bytes(job_.formats.mixers) < 2 ? job_.formats.activations : NumberFormat::kBf16;
    }
    time += kernels_.matmul(product);
  }
  return time;
}

double ServingStep::attention_time(const ServingAttention& attention, const StepLoad& load) const {
  const double tp = job_.plan.tp;
  double time = 0;
  if (attention.state_elements > 0) {
    const double state = attention.state_elements / tp * 4 * 2;
    // A chunked scan passes its state once for 64 tokens of a prompt.
    time += kernels_.attention({.operations = 6 * attention.state_elements / tp * load.prompts,
                                .bytes = state * (load.sequences + load.prompts / 64)});
  }
  if (attention.heads == 0) return time;
  const double part = attention.latent ? 1 : job_.plan.kv_part(attention.kv_heads);
  const double kv_bytes = attention.kv_elements * part * stored_bytes(job_.formats.kv);
  const auto limited = [&](double tokens) {
    if (attention.window > 0) tokens = std::min(tokens, attention.window);
    return tokens;
  };
  const auto read = [&](double tokens) {
    tokens = limited(tokens);
    return attention.seen_max > 0 ? std::min(tokens, attention.seen_max) : tokens;
  };
  if (load.sequences > 0) {
    const double seen = read(load.context);
    const double index = attention.index_width * limited(load.context);
    time +=
        kernels_.attention({.operations = 2 * attention.decode_width / tp * seen * load.sequences,
                            .bytes = (seen * kv_bytes + index) * load.sequences,
                            .kv = attention.latent ? NumberFormat::kBf16 : job_.formats.kv});
  }
  if (load.prompts > 0) {
    const double seen = read(load.seen);
    time +=
        kernels_.attention({.operations = 2 * attention.prefill_width / tp * seen * load.prompts,
                            .bytes = kv_bytes * load.prompts,
                            .prompt = std::max(1.0, load.piece),
                            .kv = job_.formats.kv});
  }
  return time;
}

double ServingStep::experts_time(const ServingExperts& experts, double tokens) const {
  const double ep = job_.plan.ep;
  const double skew = 1 + constants_.device.expert_skew * (1 - 1 / ep);
  const double weights = experts.outer * experts.ffn * experts.matrices / job_.plan.expert_tp();
  ExpertProducts products{.assignments = tokens * experts.active / ep * skew,
                          .touched = experts_touched(experts, tokens) / ep,
                          .weights = weights,
                          .matrices = experts.matrices,
                          .format = job_.formats.weights,
                          .activations = job_.formats.activations};
  products.touched = std::min(products.touched * skew, experts.count / ep);
  const double moved = products.assignments * experts.outer * kActivationBytes * 4;
  return kernels_.experts(products) + kernels_.stream(moved);
}

double ServingStep::collective_time(const ServingLayer& layer, double tokens) const {
  const double bytes = tokens * job_.shape.hidden * kActivationBytes;
  double time = 0;
  const bool shared_experts = job_.plan.attention_dp > 1 && layer.experts.count > 0;
  double sums = 0;
  bool mixer = false;
  bool feed_forward = false;
  for (const ServingMatrix& matrix : layer.matrices) {
    if (matrix.split != MatrixSplit::kRows) continue;
    (matrix.role == MatrixRole::kMixer ? mixer : feed_forward) = true;
  }
  if (mixer) sums += 1;
  if (!shared_experts && (feed_forward || layer.experts.count > 0)) sums += 1;
  time += sums * kernels_.all_reduce(bytes, job_.plan.tp);
  if (shared_experts) {
    const double ep = job_.plan.ep;
    const double copies = std::min(layer.experts.active, ep - 1);
    const double sent = tokens * job_.shape.hidden * copies;
    time += kernels_.all_to_all(sent * stored_bytes(job_.formats.activations), ep) +
            kernels_.all_to_all(sent * kActivationBytes, ep);
  }
  return time;
}

/// Seconds in which a micro-batch passes from stage to stage.
double ServingStep::pipeline_time(double tokens) const {
  const double stage = job_.plan.tp * job_.plan.attention_dp;
  const double hops = job_.plan.pp - 1;
  const double domain = std::max(stage, constants_.network.domain);
  const double far = std::max(1.0, std::ceil(stage * job_.plan.pp / domain)) - 1;
  const double bytes = tokens * job_.shape.hidden * kActivationBytes;
  double seconds = (hops - far) * kernels_.all_to_all(bytes, 2);
  if (far > 0) seconds += far * kernels_.send_between_domains(bytes, stage);
  return seconds;
}

}  // namespace orrery
