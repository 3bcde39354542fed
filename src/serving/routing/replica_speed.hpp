// serving/routing/replica_speed.hpp - how fast a replica is: what its warm-up measured, corrected
// by what its requests take, or else what they alone have shown.
//
// A RouterReplica has one. Plain values; pure.
// Where the pace of a replica is known (is_paced()), the time to the first token and the time
// between tokens are predicted from the cost of a step, each times a learned ratio. Where it is
// not, all tokens count alike, at the seconds per token that its requests have taken.
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "serving/engine_step_cost.hpp"

namespace orrery {

/// How many times as long as predicted something takes: sums of both, of which newer ones weigh
/// more. Between a fifth and five times.
class LearnedRatio {
 public:
  /// Seconds; what was not predicted or not measured teaches nothing.
  void add(double predicted_s, double measured_s);
  [[nodiscard]] double value() const { return value_; }

 private:
  double predicted_s_ = 0;
  double measured_s_ = 0;
  double value_ = 1;
};

/// What the requests at a replica have left to compute.
struct ReplicaWork {
  std::uint32_t in_flight = 0;  ///< requests
  std::uint64_t tokens = 0;     ///< of prompts that have not begun to be answered and of answers
  std::uint64_t prompt_tokens = 0;  ///< of these, of prompts
  Instant prompts_until;            ///< when the prompts are expected to be computed
};

/// The work of both together. The prompts of both are computed when the later of the two says.
[[nodiscard]] ReplicaWork operator+(const ReplicaWork& a, const ReplicaWork& b);

/// Tokens of a request that a replica would have to compute.
struct RequestWork {
  std::uint64_t prompt_tokens = 0;  ///< that are not in its cache
  std::uint64_t output_tokens = 0;  ///< expected

  friend bool operator==(const RequestWork&, const RequestWork&) = default;
};

struct PredictedRequest {
  double ttft_s = 0;    ///< to the first token; 0: unknown
  double tpot_s = 0;    ///< between tokens; 0: unknown
  double wait_s = 0;    ///< to the last token
  double prompt_s = 0;  ///< of these, for its own prompt; 0: unknown
};

struct ReplicaSpeed {
  EngineStepCost cost;
  std::uint32_t slots = 1;  ///< sequences that it computes at a time
  LearnedRatio ttft;
  LearnedRatio received;  ///< of the first token, where another replica computed the prompt
  LearnedRatio tpot;
  double busy_s = 0;       ///< weighted seconds in which it computed ..
  double tokens_done = 0;  ///< .. these tokens; 0: nothing learned yet

  /// Takes in tokens that it has computed in a time.
  void learn(std::uint64_t tokens, Duration time);
};

/// Whether times to the first and between tokens can be predicted.
[[nodiscard]] inline bool is_paced(const ReplicaSpeed& speed) {
  return speed.cost.prompt_token_s > 0 && speed.cost.step_s + speed.cost.sequence_s > 0;
}

/// Seconds in which a replica computes the tokens of a prompt. Precondition: it is paced.
[[nodiscard]] double prompt_seconds(const ReplicaSpeed& speed, std::uint64_t tokens);

/// Predicts a request at a replica, without the learned ratios.
/// Precondition: the replica is paced.
[[nodiscard]] PredictedRequest predict(const ReplicaSpeed& speed, const ReplicaWork& work,
                                       const RequestWork& own, Instant now);
/// Applies the learned ratios to a prediction.
[[nodiscard]] PredictedRequest corrected(const ReplicaSpeed& speed, PredictedRequest predicted,
                                         const RequestWork& own);

/// Seconds of the replica's work that a request costs: of its prompt and of its part of each step.
/// Precondition: the replica is paced.
[[nodiscard]] double marginal_seconds(const ReplicaSpeed& speed, const RequestWork& own);

}  // namespace orrery
