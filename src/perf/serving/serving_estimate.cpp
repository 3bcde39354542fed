#include "perf/serving/serving_estimate.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/numbers/math.hpp"
#include "perf/serving/serving_engine.hpp"

namespace orrery {
namespace {

using Warnings = std::vector<std::string>;

// Weights of attention and dense layers. Checkpoints with 4-bit experts keep them in 16 bits when
// only the experts' weights are narrow (MXFP4, INT4), and latent attention in 8.
NumberFormat mixer_format(const ServingRun& run, const ServingJob& job) {
  const NumberFormat weights = job.formats.weights;
  bool experts = false;
  bool latent = false;
  for (const ServingLayer& layer : job.shape.kinds) {
    experts = experts || layer.experts.count > 0;
    latent = latent || layer.attention.latent;
  }
  if (!experts || stored_bytes(weights) >= 1) return weights;
  const bool narrow_activations = stored_bytes(job.formats.activations) < 1;
  const bool experts_only = run.model.quantized_format == NumberFormat::kFp4;
  if (experts_only || !narrow_activations) return NumberFormat::kBf16;
  return latent ? NumberFormat::kFp8 : weights;
}

void set_formats(const ServingRun& run, ServingJob& job, Warnings& warnings) {
  if (!run.weights) warnings.emplace_back("no weight format stated: 16 bits assumed");
  job.formats.weights = run.weights.value_or(NumberFormat::kBf16);
  job.formats.activations = run.activations.value_or(job.formats.weights);
  const bool narrow = stored_bytes(job.formats.activations) < 2;
  job.formats.kv = run.kv.value_or(narrow ? NumberFormat::kFp8 : NumberFormat::kBf16);
  job.formats.mixers = mixer_format(run, job);
}

bool has_experts(const ServingJob& job) {
  return std::any_of(job.shape.kinds.begin(), job.shape.kinds.end(),
                     [](const ServingLayer& layer) { return layer.experts.count > 0; });
}

// Devices an instance takes are tp x pp x attention_dp; a layout that counts cores is divided by
// the cores of a device. Experts dealt to more devices than attention is divided over are shared by
// groups with their own sequences.
ServingPlan plan_of(const ServingRun& run, const ServingJob& job) {
  const auto count = static_cast<double>(run.count);
  const auto stated = [](const std::optional<std::uint32_t>& value) {
    return static_cast<double>(value.value_or(1));
  };
  ServingPlan plan;
  plan.tp = std::max(1.0, stated(run.plan.tp) / run.ranks_per_accelerator);
  plan.cores = run.ranks_per_accelerator;
  plan.pp = stated(run.plan.pp);
  plan.ep = has_experts(job) ? stated(run.plan.ep) : 1;
  plan.attention_dp = std::max(1.0, plan.ep / plan.tp);
  if (run.plan.attention_dp) plan.attention_dp = stated(run.plan.attention_dp);
  plan.attention_dp = std::clamp(plan.attention_dp, 1.0, std::max(1.0, count / plan.tp / plan.pp));
  plan.ep = std::min(plan.ep, plan.tp * plan.attention_dp);
  plan.replicas = std::max(1.0, std::floor(count / (plan.tp * plan.pp * plan.attention_dp) + 1e-9));
  return plan;
}

// Concurrency counts the requests of the stated layout, further copies of it have their own.
void set_load(const ServingRun& run, const EngineProfile& profile, ServingJob& job) {
  ServingLoad& load = job.load;
  const double replicas = job.plan.replicas;
  const double sharing = std::max(1.0, replicas / run.copies);
  const bool served = run.scenario == ServingRun::kServer;
  if (run.concurrency) load.concurrency = std::max(1.0, *run.concurrency / sharing);
  load.batch_max = run.max_batch;
  if (run.request_rate) load.rate = *run.request_rate / replicas;
  if (profile.requests) load.requests = *profile.requests / replicas;
  const bool batch = run.max_batch.has_value() && !served && !profile.mlperf;
  if (batch || !profile.queued) load.batching = Batching::kStatic;
  load.latency_bound = profile.mlperf && served;
}

// Layouts worth trying where the row leaves them open: tensor-parallel devices in powers of two,
// and with experts also as many groups that share them.
std::vector<ServingPlan> open_layouts(const ServingRun& run, const ServingJob& job) {
  const auto count = static_cast<double>(run.count);
  std::vector<ServingPlan> plans;
  for (double width = 1; width <= count; width *= 2) {
    ServingPlan plan = job.plan;
    plan.tp = width;
    plan.replicas = std::max(1.0, std::floor(count / (plan.tp * plan.pp)));
    plans.push_back(plan);
    if (!has_experts(job) || width == 1) continue;
    plan.ep = plan.attention_dp = width;
    plan.tp = 1;
    plans.push_back(plan);
  }
  return plans;
}

// The layout of the highest throughput among those that fit; the widest when none does.
void choose_layout(const ServingRun& run, const Calibration& calibration,
                   ServingEstimate& estimate) {
  TokensPerSecond best{-1};
  ServingJob job = estimate.job;
  for (const ServingPlan& plan : open_layouts(run, estimate.job)) {
    job.plan = plan;
    const ServingPrediction found = predict_serving(job, constants_of(job, run, calibration));
    const TokensPerSecond worth = found.fits ? found.output_tokens : TokensPerSecond{0};
    if (worth < best) continue;
    best = worth;
    estimate.job.plan = plan;
  }
  const ServingPlan& plan = estimate.job.plan;
  estimate.warnings.push_back(fmt::format("layout not stated: {} x tp {} x attention groups {}",
                                          plan.replicas, plan.tp, plan.attention_dp));
}

ServingInterval interval(const ResidualKind& kind, double widen) {
  return {.low = math::pow(kind.low, widen), .high = math::pow(kind.high, widen)};
}

// Residuals of the same kind of load; wider where the row left something open.
void set_intervals(const ServingRun& run, const Calibration& calibration,
                   ServingEstimate& estimate) {
  // Measured on rows without prompt length or layout: their spread is that of the others to
  // the 2.5.
  const double widen = run.complete() ? 1 : 2.5;
  const bool served = run.scenario == ServingRun::kServer;
  const ResidualKind rate = calibration.residual_of(
      {served ? "serving.throughput.server" : "serving.throughput.offline", "serving.throughput"});
  const ResidualKind first = calibration.residual_of(
      {served ? "serving.first_token.server" : "serving.first_token.offline",
       "serving.first_token"});
  estimate.throughput = interval(rate, widen);
  estimate.first_token = interval(first, widen);
  estimate.latency = {.low = 1 / estimate.throughput.high, .high = 1 / estimate.throughput.low};
}

}  // namespace

ServingConstants constants_of(const ServingJob& job, const ServingRun& run,
                              const Calibration& calibration) {
  const double group = job.plan.tp * job.plan.pp * job.plan.attention_dp;
  ServingNetwork network;
  if (run.joined && group > run.joined->domain) {
    network = {.domain = static_cast<double>(std::bit_floor(run.joined->domain)),
               .between = network_of(run.joined->machine, calibration)};
  }
  ServingConstants constants =
      serving_constants(calibration, {.accelerator = *job.accelerator,
                                      .engine = job.engine,
                                      .group = std::min(group, network.domain)});
  constants.network = network;
  const std::optional<Watts> rated = job.accelerator->tdp;
  if (!run.power_limit || !rated || *run.power_limit >= *rated) return constants;
  // Power at clock f is 0.30 + 0.70 f^2.4 of the rated one.
  const double power = std::max(0.31, *run.power_limit / *rated);
  constants.engine.compute /= math::pow((power - 0.30) / 0.70, 1 / 2.4);
  return constants;
}

Result<ServingJob> serving_job_of(const ServingRun& run, Warnings& warnings) {
  ServingJob job;
  Result<ServingShape> shape = serving_shape_of(run.model);
  if (!shape) return forward_error(shape);
  if (!run.output_tokens) {
    return input_error(run.where, "\"output_tokens\" is needed to predict a serving run");
  }
  job.shape = std::move(*shape);
  job.accelerator = run.accelerator;
  job.load.output = *run.output_tokens;
  job.load.input = run.input_tokens.value_or(*run.output_tokens);
  if (!run.input_tokens) warnings.emplace_back("no prompt length: the answer's is assumed");
  set_formats(run, job, warnings);
  job.plan = plan_of(run, job);
  const EngineProfile profile = engine_profile({.name = run.engine_text,
                                                .version = run.version_text,
                                                .vendor = run.accelerator->vendor,
                                                .served = run.scenario == ServingRun::kServer});
  job.engine = profile.keys;
  set_load(run, profile, job);
  return job;
}

Result<ServingEstimate> estimate_serving(const ServingRun& run, const Calibration& calibration) {
  ServingEstimate estimate;
  estimate.warnings = run.warnings;
  Result<ServingJob> job = serving_job_of(run, estimate.warnings);
  if (!job) return forward_error(job);
  estimate.job = std::move(*job);
  if (!run.plan.tp) choose_layout(run, calibration, estimate);
  const ServingConstants constants = constants_of(estimate.job, run, calibration);
  estimate.prediction = predict_serving(estimate.job, constants);
  set_intervals(run, calibration, estimate);
  return estimate;
}

}  // namespace orrery
