// perf/serving/serving_test.hpp - small serving jobs on catalog parts, for the tests of the serving
// model.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "perf/repository_facts_test.hpp"
#include "perf/serving/serving.hpp"
#include "perf/serving/serving_engine.hpp"

namespace orrery {

inline const Accelerator& part(std::string_view name) {
  const Accelerator* found = builtin_facts().find<Accelerator>(name);
  EXPECT_NE(found, nullptr) << name;
  static const Accelerator kNone{};
  return found == nullptr ? kNone : *found;
}

/// Llama-3 8B without its biases, `layers` deep.
inline Transformer small_dense(std::size_t layers = 32) {
  Transformer model;
  model.hidden = 4096;
  model.vocab = 128256;
  model.ffn = 14336;
  model.attention = {.heads = 32, .kv_heads = 8, .head_dim = 128};
  model.full_attention = model.attention;
  model.layers.assign(layers, Layer{});
  return model;
}

/// 128 experts of which a token visits 8.
inline Transformer small_experts() {
  Transformer model = small_dense(48);
  model.hidden = 2048;
  model.experts = Experts{.count = 128, .active = 8, .ffn = 768};
  for (Layer& layer : model.layers) layer.feed_forward = FeedForward::kExperts;
  return model;
}

inline ServingJob serving_job(std::string_view accelerator, const Transformer& model) {
  ServingJob job;
  job.shape = serving_shape_of(model);
  job.accelerator = &part(accelerator);
  job.engine =
      engine_profile(
          {.name = "vLLM", .version = "0.12", .vendor = job.accelerator->vendor, .served = true})
          .keys;
  job.load.input = 1000;
  job.load.output = 500;
  job.load.concurrency = 32;
  return job;
}

inline ServingConstants constants_for(const ServingJob& job) {
  return serving_constants(builtin_constants(),
                           {.accelerator = *job.accelerator,
                            .engine = job.engine,
                            .group = job.plan.tp * job.plan.pp * job.plan.attention_dp});
}

inline ServingPrediction predict(const ServingJob& job) {
  return predict_serving(job, constants_for(job));
}

}  // namespace orrery
