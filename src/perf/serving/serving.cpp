#include "perf/serving/serving.hpp"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

class ServingModel {
 public:
  ServingModel(const ServingJob& job, const ServingConstants& constants)
      : job_(job),
        engine_(constants.engine),
        step_(job, constants),
        memory_(serving_memory(job, constants.engine)) {}

  [[nodiscard]] ServingPrediction predict() const;

 private:
  /// One "round": every running sequence gains a token, and the prompts due meanwhile are read.
  struct Round {
    StepTime time;
    double prompt = 0;  ///< seconds of reading one request's prompt alone in its piece
    double decode = 0;  ///< seconds of a pass without prompts
    double share = 0;   ///< part of the time in which prompts are read
  };

  [[nodiscard]] double batch_limit() const;
  [[nodiscard]] Round round(double batch) const;
  [[nodiscard]] double batch_at_rate(double limit) const;
  [[nodiscard]] ServingPrediction closed(double batch) const;

  const ServingJob& job_;
  const EngineConstants& engine_;
  ServingStep step_;
  ServingMemory memory_;
};

double ServingModel::batch_limit() const {
  double limit = std::max(1.0, memory_.sequences);
  limit = std::min(limit, engine_.sequences_max * job_.plan.attention_dp);
  const ServingLoad& load = job_.load;
  if (load.batch_max) limit = std::min(limit, *load.batch_max);
  if (load.concurrency) limit = std::min(limit, *load.concurrency);
  if (load.requests) limit = std::min(limit, *load.requests);
  return std::max(1.0, limit);
}

// Prompts come in pieces of at least one prompt (or the chunk limit): per decode step of b
// sequences, b input / output prompt tokens are due, so a piece comes every so many steps.
ServingModel::Round ServingModel::round(double batch) const {
  const double b = batch / job_.plan.pp;
  const double input = job_.load.input;
  const double due = b * input / job_.load.output;
  const double groups = job_.plan.attention_dp;
  const double smallest = std::min(input, engine_.chunk) * groups;
  double piece = std::clamp(due, smallest, std::max(smallest, engine_.chunk * groups));
  if (job_.load.batching == Batching::kStatic) {
    piece = std::max(smallest, std::min(batch * input, engine_.chunk * groups));
  }
  piece = std::min(piece, batch * input);
  const double often = due / piece;
  const double kept = (job_.load.output - 1) / job_.load.output;  // prompts give the first token
  const StepLoad decode = answer_load(job_.load, b);
  const StepTime alone = step_.time(decode);
  const StepTime prompts = step_.time(prompt_load(job_.load, piece));
  Round result;
  result.decode = alone.total();
  result.prompt = prompts.total() * std::max(1.0, input * groups / piece);
  if (engine_.mixing > 0 && job_.load.batching == Batching::kContinuous && often <= kept) {
    StepLoad both = prompt_load(job_.load, piece);
    both.sequences = decode.sequences;
    both.context = decode.context;
    const StepTime together = step_.time(both);
    result.time = (kept - often) * alone;
    result.time += often * together;
    result.share = often * together.total() / result.time.total();
    return result;
  }
  result.time = kept * alone;
  result.time += often * prompts;
  result.share = often * prompts.total() / result.time.total();
  return result;
}

double ServingModel::batch_at_rate(double limit) const {
  double low = 0.05;
  double high = limit;
  const auto served = [&](double batch) {
    return batch / (job_.load.output * round(std::max(1.0, batch)).time.total());
  };
  if (served(high) <= *job_.load.rate) return high;
  for (int i = 0; i < 24; ++i) {
    const double middle = std::sqrt(low * high);
    (served(middle) < *job_.load.rate ? low : high) = middle;
  }
  return high;
}

ServingPrediction ServingModel::closed(double batch) const {
  const Round at = round(batch);
  const double output = job_.load.output;
  ServingPrediction prediction;
  prediction.batch = batch;
  prediction.breakdown = at.time;
  const double request = output * at.time.total();
  double ttft = at.prompt;
  if (job_.load.batching == Batching::kStatic) {
    ttft = at.share * request;
  } else {
    // A request waits for half a pass and for the prompts ahead of it.
    const double ahead = prompts_ahead(engine_, at.share, batch);
    ttft = engine_.first + 0.5 * at.decode + at.prompt * (1 + std::min(ahead, batch));
    ttft = std::min(ttft, 0.9 * request);
  }
  prediction.ttft = Seconds{ttft};
  prediction.tpot = Seconds{output > 1 ? std::max(at.decode, (request - ttft) / (output - 1)) : 0};
  prediction.e2e = Seconds{request};
  prediction.requests = batch / request;
  return prediction;
}

ServingPrediction ServingModel::predict() const {
  const double limit = batch_limit();
  const ServingLoad& load = job_.load;
  double batch = limit;
  const bool offered = load.rate.has_value();
  if (offered) batch = batch_at_rate(limit);
  ServingPrediction prediction = closed(std::max(1.0, batch));
  if (offered && batch < limit) {
    prediction.requests = *load.rate;
    prediction.batch = batch;
  }
  if (offered && batch < limit && load.requests) {
    const double n = *load.requests;
    prediction.requests = n / (n / prediction.requests + prediction.e2e.value());
  }
  if (load.latency_bound) prediction.requests *= engine_.latency_bound;
  const double wanted = load.batch_max.value_or(load.concurrency.value_or(batch));
  if (!offered && wanted > prediction.batch && load.concurrency) {
    const double wait = prediction.e2e.value() * (wanted / prediction.batch - 1);
    prediction.ttft += Seconds{wait};
    prediction.e2e += Seconds{wait};
  }
  prediction.requests *= job_.plan.replicas;
  prediction.output_tokens = TokensPerSecond{prediction.requests * load.output};
  prediction.tokens_total = TokensPerSecond{prediction.requests * (load.input + load.output)};
  prediction.memory = memory_;
  prediction.fits = memory_.fits();
  return prediction;
}

}  // namespace

StepLoad answer_load(const ServingLoad& load, double sequences) {
  return {.sequences = sequences, .context = load.input + load.output / 2};
}

StepLoad prompt_load(const ServingLoad& load, double tokens) {
  return {.prompts = tokens,
          .piece = std::min(tokens, load.input),
          .seen = load.input / 2,
          .finished = tokens / load.input};
}

double prompts_ahead(const EngineConstants& engine, double busy, double running) {
  busy = std::min(busy, kBusyMax);
  return engine.together * (running - 1) / 2 + busy / (1 - busy) / 2;
}

ServingPrediction predict_serving(const ServingJob& job, const ServingConstants& constants) {
  if (job.load.output <= constants.engine.answer) return ServingModel(job, constants).predict();
  ServingJob shorter = job;
  shorter.load.output = constants.engine.answer;
  return ServingModel(shorter, constants).predict();
}

}  // namespace orrery
