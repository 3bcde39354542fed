// bench/serving/scale_rules.hpp - rules of others that change the number of replicas of a service
// in virtual time, as bench_autoscaling compares them: Kubernetes' HorizontalPodAutoscaler over the
// requests in flight, and the throughput planner of NVIDIA Dynamo.
//
// Each is a ServiceScaler of one group that keeps its state between ticks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "twin/serving/service_setup.hpp"

namespace orrery {

/// HPA with the defaults of its documentation (a look each 15 s, a tolerance of 0.1, scale-down
/// stabilised over 300 s, scale-up by the larger of 100 % and 4 pods), on requests that wait or run
/// as an external metric with an average a pod, as KEDA sets it up.
class PodAutoscaler {
 public:
  /// `target`: requests of a replica.
  PodAutoscaler(double target, std::uint32_t max) : target_(target), max_(max) {}

  std::vector<std::uint32_t> operator()(const ServiceWindow& window) {
    constexpr Duration kLook = Duration::seconds(15);
    constexpr Duration kStable = Duration::seconds(300);
    constexpr double kTolerance = 0.1;
    const Duration now = window.begin + window.length;
    const std::uint32_t there = window.ready.front() + window.starting.front();
    if (now < next_) return {there};
    next_ = now + kLook;
    const auto load = static_cast<double>(window.waiting + window.in_flight);
    const bool near = std::abs(load / (target_ * there) - 1) <= kTolerance;
    const auto needed = static_cast<std::uint32_t>(std::ceil(load / target_));
    const std::uint32_t wanted = std::clamp(near ? there : needed, 1U, max_);
    advised_.push_back({now, wanted});
    while (advised_.front().at + kStable < now) advised_.pop_front();
    if (wanted > there) return {std::min(wanted, std::max(2 * there, there + 4))};
    std::uint32_t most = 0;
    for (const Advice& each : advised_) most = std::max(most, each.replicas);
    return {std::min(there, most)};
  }

 private:
  struct Advice {
    Duration at;
    std::uint32_t replicas = 0;
  };

  double target_;
  std::uint32_t max_;
  Duration next_;
  std::deque<Advice> advised_;
};

enum class LoadPredictor : std::uint8_t {
  kConstant,  ///< the next interval is like this one
  kTrend,     ///< level and trend, as ARIMA (0, 2, 2) has them
};

struct PlannerTerms {
  Duration interval = Duration::seconds(180);
  LoadPredictor predictor = LoadPredictor::kConstant;
  double tpot_s = 0;  ///< the mean between tokens that is aimed at
};

/// The throughput planner as its documentation describes it: requests of the next interval are
/// predicted, prefill and decode throughputs are those of a profile at the target, and corrected by
/// what was measured over what was expected. Replicas compute both, so both needs add up.
class ThroughputPlanner {
 public:
  ThroughputPlanner(const PlannerTerms& terms, const ReplicaGroup& group, std::uint32_t max)
      : terms_(terms), group_(group), max_(max) {}

  std::vector<std::uint32_t> operator()(const ServiceWindow& window) {
    const Duration now = window.begin + window.length;
    const std::uint32_t ready = window.ready.front();
    const std::uint32_t there = ready + window.starting.front();
    arrived_ += static_cast<double>(window.arrived);
    add(window.answered);
    running_ += static_cast<double>(window.in_flight) / std::max(ready, 1U);
    ++ticks_;
    if (now < next_) return {there};
    const bool whole = next_ > Duration();
    next_ = now + terms_.interval;
    const std::uint32_t wanted = whole && answered_.requests > 0 ? plan() : there;
    arrived_ = running_ = ticks_ = 0;
    answered_ = {};
    return {std::clamp(wanted, 1U, max_)};
  }

 private:
  void add(const AnsweredRequests& more) {
    answered_.requests += more.requests;
    answered_.prompt_tokens += more.prompt_tokens;
    answered_.output_tokens += more.output_tokens;
    answered_.ttft_s += more.ttft_s;
    answered_.tpot_s += more.tpot_s;
  }

  /// Returns the requests of the next interval.
  double predict() {
    constexpr double kLevelGain = 0.5;
    constexpr double kTrendGain = 0.3;
    if (terms_.predictor == LoadPredictor::kConstant) return arrived_;
    if (!level_) level_ = arrived_;
    const double before = *level_;
    level_ = before + trend_ + kLevelGain * (arrived_ - before - trend_);
    trend_ += kTrendGain * (*level_ - before - trend_);
    return std::max(*level_ + trend_, 0.0);
  }

  std::uint32_t plan() {
    const auto answered = static_cast<double>(answered_.requests);
    const double prompt = static_cast<double>(answered_.prompt_tokens) / answered;
    const double output = static_cast<double>(answered_.output_tokens) / answered;
    const double context = prompt + output / 2;
    const double requests_s = predict() / terms_.interval.count_seconds();
    const auto step = [&](double batch) {
      return seconds_of(group_.cost, {.sequences = batch, .context = batch * context});
    };
    const double prefill =
        seconds_of(group_.cost, {.prompt = prompt, .prompt_context = prompt * prompt / 2});
    const double prefill_correction = answered_.ttft_s / answered / prefill;
    const double decode_correction =
        answered_.tpot_s / answered / step(std::max(running_ / ticks_, 1.0));
    const double tpot = terms_.tpot_s / std::max(decode_correction, 0.1);
    double batch = 1;
    while (batch < group_.rules.sequences_max && step(batch + 1) <= tpot) ++batch;
    const double busy =
        requests_s * (prefill * std::min(prefill_correction, 1.0) + output * step(batch) / batch);
    return static_cast<std::uint32_t>(std::ceil(busy));
  }

  PlannerTerms terms_;
  ReplicaGroup group_;
  std::uint32_t max_;
  Duration next_;
  double arrived_ = 0;
  AnsweredRequests answered_;
  double running_ = 0;  ///< requests of a replica, summed over ticks
  double ticks_ = 0;
  std::optional<double> level_;
  double trend_ = 0;
};

}  // namespace orrery
