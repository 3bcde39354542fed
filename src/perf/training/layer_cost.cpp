#include "perf/training/layer_cost.hpp"

#include <algorithm>
#include <cmath>

#include "base/numbers/math.hpp"
#include "perf/machine/kernel.hpp"

namespace orrery {
namespace {

constexpr double kWideBytes = 2;  ///< of an activation

/// `communication` beside `compute`: `overlap` of it may hide behind the computation there is.
double exposed(double communication, double compute, double overlap) {
  const double hideable = communication * overlap;
  return communication - std::min(hideable, compute);
}

double narrow_bytes(NumberFormat format) {
  switch (format) {
    case NumberFormat::kFp8:
    case NumberFormat::kInt8:
      return 1;
    case NumberFormat::kFp6:
      return 0.75;
    case NumberFormat::kFp4:
    case NumberFormat::kInt4:
      return 0.5625;  // with a scale of 8 bits for each 16
    case NumberFormat::kFp32:
    case NumberFormat::kTf32:
    case NumberFormat::kFp64:
    case NumberFormat::kFp64Matrix:
      return 4;
    case NumberFormat::kBf16:
    case NumberFormat::kFp16:
      return kWideBytes;
  }
  return kWideBytes;
}

}  // namespace

double exchanged_bytes(NumberFormat format) { return std::max(kWideBytes, narrow_bytes(format)); }

namespace {

class LayerCounter {
 public:
  LayerCounter(const JobWork& work, std::size_t kind, const ParallelPlan& plan,
               const TrainingConstants& constants)
      : work_(work),
        layer_(work.model->kinds[kind]),
        plan_(plan),
        constants_(constants),
        attention_flops_(work.attention_flops[kind]),
        tp_(plan.tp),
        exchanged_(exchanged_bytes(work.job->precision.format)),
        tokens_(plan.micro_batch * work.job->sequence.value() / plan.cp),
        kept_tokens_(plan.sequence_parallel == SequenceParallel::kOn ? tokens_ / tp_ : tokens_) {}

  LayerCost count() {
    for (const Product& product : layer_.products) add_product(product);
    add_attention();
    add_passes();
    if (layer_.scan_flops > 0) add_scan();
    if (layer_.experts > 0) add_permutation();
    scale();
    add_launch();
    add_recomputation();
    add_tensor_parallel();
    add_context_parallel();
    if (layer_.experts > 0) add_expert_parallel();
    return cost_;
  }

 private:
  [[nodiscard]] bool lora() const { return work_.job->task == TrainingTask::kLora; }

  void add_product(const Product& product) {
    ProductSize size{.m = tokens_, .n = product.n, .k = product.k};
    double rate = product.narrow ? constants_.narrow_rate : constants_.wide_rate;
    const double bytes = product.narrow ? narrow_bytes(work_.job->precision.format) : kWideBytes;
    if (product.operand == Operand::kExpert) {
      size.count = std::max(1.0, layer_.experts / plan_.ep);
      size.m = expert_visits() * constants_.imbalance / size.count;
      rate *= constants_.expert_rate_factor;
    } else if (product.cut == Cut::kColumns) {
      size.n /= tp_;
    } else if (product.cut == Cut::kRows) {
      size.k /= tp_;
    } else {
      size.m = kept_tokens_;
    }
    const ProductSize inputs{.m = size.m, .n = size.k, .k = size.n, .count = size.count};
    const ProductSize weights{.m = size.n, .n = size.k, .k = size.m, .count = size.count};
    cost_.forward[Term::kMatmul] += product_seconds(constants_, size, rate, bytes);
    double backward = product_seconds(constants_, inputs, rate, bytes);
    if (lora()) {
      backward *= constants_.lora_backward;
    } else {
      backward += product_seconds(constants_, weights, rate, bytes);
    }
    cost_.backward[Term::kMatmul] += backward;
    if (product.narrow) add_casts(size);
  }

  /// Making operands narrow: reads them wide, writes them narrow, twice for the two layouts.
  void add_casts(const ProductSize& size) {
    if (constants_.cast_passes <= 0) return;
    const double elements = size.count * size.m * (size.k + size.n);
    const double seconds = pass_seconds(constants_, constants_.cast_passes * elements);
    cost_.forward[Term::kElementwise] += seconds;
    cost_.backward[Term::kElementwise] += 2 * seconds;
  }

  /// Expert visits this rank computes for a micro-batch when they are spread evenly.
  [[nodiscard]] double expert_visits() const {
    // Experts are not cut by tp: its ranks hold different experts or different tokens.
    return tokens_ / tp_ * layer_.experts_active;
  }

  void add_attention() {
    if (layer_.attended_width <= 0) return;
    double flops = attention_flops_ * tokens_ / tp_;
    double forward = 0;
    double backward = 0;
    if (work_.job->attention == AttentionKernel::kFlash) {
      const double fit = layer_.head_dim / (128 * std::ceil(layer_.head_dim / 128));
      const double sequence = work_.job->sequence.value();
      const double window = static_cast<double>(layer_.group.window);
      const double seen = window > 0 ? std::min(window, sequence) : sequence;
      const double rate = constants_.flash_rate * math::pow(fit, constants_.flash_misfit) * seen /
                          (seen + constants_.flash_half);
      if (layer_.sinks) flops *= constants_.sinks;
      forward = flops / rate;
      backward = 2.5 * flops / (rate * constants_.flash_backward);
    } else {
      const double fit = layer_.head_dim / (64 * std::ceil(layer_.head_dim / 64));
      const double depth = layer_.head_dim * math::pow(fit, constants_.head_misfit);
      double rate = constants_.wide_rate * depth / (depth + constants_.depth_half);
      // Matrix units want rows that start at multiples of 16 bytes.
      if (std::fmod(layer_.head_dim * kWideBytes, 16) != 0) rate /= constants_.misaligned;
      const double scores = tokens_ * work_.job->sequence.value() * layer_.heads / tp_ * kWideBytes;
      const double softmax = pass_seconds(constants_, constants_.unfused_passes * scores);
      forward = flops / rate + softmax;
      backward = 2 * flops / rate + 1.5 * softmax;
    }
    cost_.forward[Term::kAttention] = forward;
    cost_.backward[Term::kAttention] = backward;
  }

  /// Bytes read and written by norms, residuals, rotations and activations in the forward pass.
  [[nodiscard]] double pass_bytes() const {
    const double hidden = work_.model->hidden;
    // Two norms (read, write) and two residual sums (two reads, a write).
    double elements = kept_tokens_ * hidden * (2 * 2 + 2 * 3);
    elements += 2 * tokens_ * (layer_.query_width + layer_.key_value_width) / tp_;
    elements += tokens_ * (layer_.gates + 1) * layer_.ffn_width / tp_;
    elements += expert_visits() * (layer_.gates + 1) * layer_.expert_ffn;
    return kWideBytes * elements;
  }

  void add_passes() {
    const double seconds = pass_seconds(constants_, constants_.passes * pass_bytes());
    cost_.forward[Term::kElementwise] += seconds;
    cost_.backward[Term::kElementwise] += 1.5 * seconds;
  }

  void add_scan() {
    const double flops = layer_.scan_flops * tokens_ / tp_;
    const double bytes = 4 * kWideBytes * layer_.scan_width * tokens_ / tp_;
    const double seconds =
        flops / constants_.flash_rate + pass_seconds(constants_, constants_.scan_passes * bytes);
    cost_.forward[Term::kAttention] += seconds;
    cost_.backward[Term::kAttention] += 2.5 * seconds;
  }

  /// Permuting tokens to experts and back; biases and what follows them in kernels of their own.
  void add_permutation() {
    const double bytes = 4 * kWideBytes * expert_visits() * dispatch_width();
    double seconds = pass_seconds(constants_, constants_.permute_passes * bytes);
    if (layer_.expert_biases) {
      const double inner = kWideBytes * expert_visits() * (layer_.gates + 1) * layer_.expert_ffn;
      seconds += pass_seconds(constants_, constants_.biased_passes * inner);
    }
    cost_.forward[Term::kElementwise] += seconds;
    cost_.backward[Term::kElementwise] += seconds;
  }

  /// Width of what a token sends to an expert.
  [[nodiscard]] double dispatch_width() const {
    for (const Product& product : layer_.products) {
      if (product.operand == Operand::kExpert) return product.k;
    }
    return work_.model->hidden;
  }

  void scale() {
    for (double& term : cost_.forward.seconds) term *= constants_.scale;
    for (double& term : cost_.backward.seconds) term *= constants_.scale;
  }

  /// The host starts kernels ahead of the device; where it cannot keep up, the device waits. The
  /// joint is smooth, and wider with experts, whose kernels differ more in length.
  void add_launch() {
    double host = constants_.layer_launch;
    if (layer_.experts > 0) {
      host += constants_.local_expert_launch * math::pow(layer_.experts / plan_.ep, 0.75);
    }
    const bool wide = layer_.experts > 0;
    const auto waiting = [host, wide](double device) {
      const double a = device * device;
      const double b = host * host;
      return (wide ? std::sqrt(a + b) : std::sqrt(std::sqrt(a * a + b * b))) - device;
    };
    cost_.forward[Term::kLaunch] = waiting(cost_.forward.total());
    cost_.backward[Term::kLaunch] = waiting(cost_.backward.total());
    cost_.compute_forward = cost_.forward.total();
    cost_.compute_backward = cost_.backward.total();
  }

  void add_recomputation() {
    const bool unfused = work_.job->attention == AttentionKernel::kUnfused;
    if (plan_.recompute == Recompute::kSelective && unfused) {
      cost_.recomputed = cost_.forward[Term::kAttention];
    } else if (plan_.recompute == Recompute::kFull) {
      cost_.recomputed =
          cost_.compute_forward - plan_.recompute_kept * cost_.forward[Term::kMatmul];
    }
    cost_.compute_backward += cost_.recomputed;
  }

  /// Formula 5: an all-reduce (or a reduce-scatter and an all-gather) after attention and one after
  /// the feed-forward part, in both passes and in what is recomputed.
  void add_tensor_parallel() {
    if (plan_.tp <= 1) return;
    const double bytes = tokens_ * work_.model->hidden * exchanged_;
    const Span span = span_of(constants_.network, tp_, 1);
    const double regions = layer_.ffn_width > 0 ? 2 : 1;
    double forward = 0;
    double backward = 0;
    if (plan_.sequence_parallel == SequenceParallel::kOn) {
      const double one = all_gather_seconds(constants_.network, span, bytes);
      forward = 2 * regions * one;
      backward = 3 * regions * one;  // the gathered inputs are gathered once more for the weights
    } else {
      forward = regions * all_reduce_seconds(constants_.network, span, bytes);
      backward = forward;
    }
    if (plan_.recompute == Recompute::kFull) backward += forward;
    cost_.forward[Term::kTensorParallel] =
        exposed(forward, cost_.compute_forward, constants_.tensor_overlap);
    cost_.backward[Term::kTensorParallel] =
        exposed(backward, cost_.compute_backward, constants_.tensor_overlap);
  }

  void add_context_parallel() {
    if (plan_.cp <= 1 || layer_.attended_width <= 0) return;
    const Span span = span_of(constants_.network, plan_.cp, tp_);
    double forward = 0;
    double hidden_behind = 0;
    if (plan_.context_exchange == ContextExchange::kRing) {
      const double bytes = tokens_ * layer_.key_value_width / tp_ * exchanged_ * plan_.cp;
      forward = all_gather_seconds(constants_.network, span, bytes);
      hidden_behind = cost_.forward[Term::kAttention];
    } else {
      const double width = (2 * layer_.query_width + layer_.key_value_width) / tp_;
      forward = all_to_all_seconds(constants_.network, span, tokens_ * width * exchanged_);
    }
    const double again = plan_.recompute == Recompute::kFull ? forward : 0;
    cost_.forward[Term::kContextParallel] = exposed(forward, hidden_behind, 0.9);
    cost_.backward[Term::kContextParallel] = exposed(2 * forward + again, 2 * hidden_behind, 0.9);
  }

  /// Dispatch and combine, formula 5. The ranks of the group are neighbours: first tp, then cp, dp.
  void add_expert_parallel() {
    if (plan_.ep <= 1) return;
    const Span span = span_of(constants_.network, plan_.ep, 1);
    const double bytes = tokens_ / tp_ * dispatch_width() * exchanged_ * constants_.imbalance;
    const double one = dispatch_seconds(
        constants_.network, span, {bytes, layer_.experts_active, constants_.dispatch_merging});
    const double again = plan_.recompute == Recompute::kFull ? 2 * one : 0;
    cost_.forward[Term::kExpertParallel] =
        exposed(2 * one, cost_.compute_forward, constants_.expert_overlap);
    cost_.backward[Term::kExpertParallel] =
        exposed(2 * one + again, cost_.compute_backward, constants_.expert_overlap);
  }

  const JobWork& work_;
  const LayerWork& layer_;
  const ParallelPlan& plan_;
  const TrainingConstants& constants_;
  double attention_flops_;
  double tp_;
  double exchanged_;    ///< bytes of an activation
  double tokens_;       ///< of the micro-batch on this rank
  double kept_tokens_;  ///< of them, between tensor-parallel regions
  LayerCost cost_;
};

}  // namespace

std::vector<double> attention_flops_of(const ModelWork& model, const TrainingJob& job) {
  std::vector<double> flops;
  flops.reserve(model.kinds.size());
  const MaskedScores masked =
      job.attention == AttentionKernel::kFlash ? MaskedScores::kSkipped : MaskedScores::kCounted;
  for (const LayerWork& layer : model.kinds) {
    flops.push_back(attention_flops_per_token(layer, job.sequence, masked));
  }
  return flops;
}

LayerCost layer_cost(const JobWork& work, std::size_t kind, const ParallelPlan& plan,
                     const TrainingConstants& constants) {
  return LayerCounter(work, kind, plan, constants).count();
}

EndsCost ends_cost(const JobWork& work, const ParallelPlan& plan,
                   const TrainingConstants& constants) {
  EndsCost cost;
  if (work.model->vocab <= 0) return cost;
  const double tokens = plan.micro_batch * work.job->sequence.value() / plan.cp;
  const double vocab = work.model->vocab / plan.tp;
  const double hidden = work.model->hidden;
  const ProductSize size{.m = tokens, .n = vocab, .k = hidden};
  const double product = product_seconds(constants, size, constants.wide_rate, 2);
  const double products = work.job->task == TrainingTask::kLora ? 2 : 3;
  const double loss = pass_seconds(constants, tokens * vocab * constants.loss_bytes);
  cost.head = constants.scale * (products * product + loss);
  cost.embedding = constants.scale * pass_seconds(constants, 3 * 2 * tokens * hidden);
  return cost;
}

}  // namespace orrery
