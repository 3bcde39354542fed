#include "serving/scaling/replica_capacity.hpp"

#include <algorithm>
#include <cmath>

#include "base/numbers/math.hpp"

namespace orrery {
namespace {

constexpr double kBusyWithoutTarget = 0.8;
constexpr double kBusyMost = 0.95;
constexpr double kBusyLeast = 0.05;
/// Requests that may be slower than a target.
constexpr double kTail = 0.01;

/// A batch of requests in the steady state, each with the mean prompt and answer.
struct Batch {
  double prompt_s = 0;  ///< a request's prompt, computed alone
  double token_s = 0;   ///< a token's share of the steps
  double tpot_s = 0;    ///< between two tokens of a request, prompts of others included
};

Batch batch_of(const CapacityTerms& terms, double requests) {
  const RequestShape& shape = terms.shape;
  const double slower = 1 + terms.error;
  const double context = shape.prompt + shape.output / 2;
  Batch batch;
  batch.prompt_s = slower * (shape.prompt * terms.cost.prompt_token_s +
                             shape.prompt * shape.prompt / 2 * terms.cost.prompt_pair_s);
  const double step =
      slower * seconds_of(terms.cost, {.sequences = requests, .context = requests * context});
  batch.token_s = step / requests;
  // As many prompts are computed as requests end: one for each `output` tokens of a request.
  batch.tpot_s = step + requests * batch.prompt_s / std::max(shape.output, 1.0);
  return batch;
}

/// Returns the time that one of a hundred requests waits for a place in the batch.
double wait_p99(double busy, double servers, double service_s) {
  const double waits = math::pow(busy, std::sqrt(2 * (servers + 1)) - 1);
  if (waits <= kTail) return 0;
  return service_s / (servers * (1 - busy)) * math::log(waits / kTail);
}

}  // namespace

ReplicaCapacity replica_capacity(const CapacityTerms& terms) {
  ReplicaCapacity capacity;
  if (!is_known(terms.cost)) return capacity;
  const std::uint32_t slots = std::max(terms.slots, 1U);
  capacity.batch = slots;
  if (terms.tpot_s > 0) {
    while (capacity.batch > 1 && batch_of(terms, capacity.batch).tpot_s > terms.tpot_s) {
      --capacity.batch;
    }
    if (batch_of(terms, 1).tpot_s > terms.tpot_s) {
      capacity.keeps = false;
      capacity.batch = slots;
    }
  }
  const Batch batch = batch_of(terms, capacity.batch);
  const RequestShape& shape = terms.shape;
  capacity.prompt_token_s = shape.prompt > 0 ? batch.prompt_s / shape.prompt : 0;
  capacity.output_token_s = batch.token_s;
  capacity.busy = kBusyWithoutTarget;
  const double own = batch.prompt_s + batch_of(terms, 1).token_s;
  if (terms.ttft_s <= 0) return capacity;
  if (own > terms.ttft_s) {
    capacity.keeps = false;
    return capacity;
  }
  const double requests = capacity.batch;
  const double service = batch.prompt_s + shape.output * batch.tpot_s;
  constexpr double kStep = 0.01;
  capacity.busy = kBusyMost;
  // A prompt also waits for those that are computed before it, which share the replica's time.
  const auto first_token = [&](double busy) {
    return own / (1 -
                  busy * batch.prompt_s * requests / std::max(service, batch.prompt_s * requests)) +
           wait_p99(busy, requests, service);
  };
  while (capacity.busy > kBusyLeast && first_token(capacity.busy) > terms.ttft_s) {
    capacity.busy -= kStep;
  }
  capacity.busy = std::max(capacity.busy, kBusyLeast);
  return capacity;
}

double replicas_for(const TokenDemand& demand, const ReplicaCapacity& capacity) {
  if (capacity.busy <= 0) return 0;
  return (demand.prompt_s * capacity.prompt_token_s + demand.output_s * capacity.output_token_s) /
         capacity.busy;
}

double requests_s_of(const ReplicaCapacity& capacity, const RequestShape& shape) {
  const double each = replicas_for({shape.prompt, shape.output}, capacity);
  return each > 0 ? 1 / each : 0;
}

}  // namespace orrery
