#include "serving/routing/replica_speed.hpp"

#include <algorithm>

namespace orrery {
namespace {

/// Weight of what was learned before, at each end of a request.
constexpr double kMemory = 0.95;
/// Requests as predicted that a ratio begins with, so that the first one measured is not all.
constexpr double kPrior = 4;
constexpr double kRatioMin = 0.2;
constexpr double kRatioMax = 5;

double step_seconds(const ReplicaSpeed& speed, double sequences) {
  return seconds_of(speed.cost, {.sequences = sequences});
}

}  // namespace

ReplicaWork operator+(const ReplicaWork& a, const ReplicaWork& b) {
  return {.in_flight = a.in_flight + b.in_flight,
          .tokens = a.tokens + b.tokens,
          .prompt_tokens = a.prompt_tokens + b.prompt_tokens,
          .prompts_until = std::max(a.prompts_until, b.prompts_until)};
}

void LearnedRatio::add(double predicted_s, double measured_s) {
  if (predicted_s <= 0 || measured_s <= 0) return;
  if (predicted_s_ <= 0) predicted_s_ = measured_s_ = kPrior * predicted_s;
  predicted_s_ = predicted_s_ * kMemory + predicted_s;
  // One request that hung must not outweigh all others.
  measured_s_ = measured_s_ * kMemory + std::min(measured_s, predicted_s * 2 * kRatioMax);
  value_ = std::clamp(measured_s_ / predicted_s_, kRatioMin, kRatioMax);
}

void ReplicaSpeed::learn(std::uint64_t tokens, Duration time) {
  busy_s = busy_s * kMemory + time.count_seconds();
  tokens_done = tokens_done * kMemory + static_cast<double>(tokens);
}

double prompt_seconds(const ReplicaSpeed& speed, std::uint64_t tokens) {
  return static_cast<double>(tokens) * speed.cost.prompt_token_s * speed.ttft.value();
}

PredictedRequest predict(const ReplicaSpeed& speed, const ReplicaWork& work, const RequestWork& own,
                         Instant now) {
  const double queued_s =
      std::min(static_cast<double>(work.prompt_tokens) * speed.cost.prompt_token_s,
               std::max((work.prompts_until - now).count_seconds(), 0.0) / speed.ttft.value());
  const auto slots = static_cast<double>(speed.slots);
  const auto sequences = static_cast<double>(work.in_flight);
  const double step_s = step_seconds(speed, std::min(sequences + 1, slots));
  double slot_s = 0;
  if (work.in_flight >= speed.slots) {
    // It waits until as many others have ended as are before it.
    const double outputs = static_cast<double>(work.tokens - work.prompt_tokens);
    slot_s = (sequences + 1 - slots) * outputs / sequences * step_s / slots;
  }
  const double prompt_s = static_cast<double>(own.prompt_tokens) * speed.cost.prompt_token_s;
  PredictedRequest predicted{.ttft_s = queued_s + slot_s + prompt_s + step_s, .tpot_s = step_s};
  const double output_s = static_cast<double>(own.output_tokens) * step_s;
  predicted.wait_s = predicted.ttft_s + output_s;
  predicted.prompt_s = prompt_s;
  return predicted;
}

PredictedRequest corrected(const ReplicaSpeed& speed, PredictedRequest predicted,
                           const RequestWork& own) {
  predicted.ttft_s *= speed.ttft.value();
  predicted.tpot_s *= speed.tpot.value();
  const double output_s = static_cast<double>(own.output_tokens) * predicted.tpot_s;
  predicted.wait_s = predicted.ttft_s + output_s;
  predicted.prompt_s = prompt_seconds(speed, own.prompt_tokens);
  return predicted;
}

double marginal_seconds(const ReplicaSpeed& speed, const RequestWork& own) {
  // Where steps take as long with more sequences, each has its part of a full step.
  const double token_s = speed.cost.sequence_s > 0
                             ? speed.cost.sequence_s
                             : speed.cost.step_s / static_cast<double>(speed.slots);
  return prompt_seconds(speed, own.prompt_tokens) +
         static_cast<double>(own.output_tokens) * token_s * speed.tpot.value();
}

}  // namespace orrery
