// bench/serving/scale_rules.hpp - rules of others that change the number of replicas of a service
// in virtual time, as bench_autoscaling compares them: Kubernetes' HorizontalPodAutoscaler over the
// requests in flight, the saturation analyzer of llm-d's Workload Variant Autoscaler, the
// throughput planner of NVIDIA Dynamo, and one that knows the requests, as a bound.
//
// Each is a ServiceScaler of one group that keeps its state between ticks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "twin/serving/service_setup.hpp"
#include "workload/requests/request_trace.hpp"

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

struct SaturationTerms {
  double kv_threshold = 0.8;  ///< share of a cache that is not to be exceeded
  double up = 0.85;           ///< share of the supply beyond which there are to be more replicas
  double down = 0.7;          ///< .. below which there may be fewer
};

/// The capacity engine of the Workload Variant Autoscaler as its documentation describes it: a look
/// each 30 s, demand in tokens of caches, those of requests that wait among them, and a supply of
/// replicas that are ready or start, each with the lesser of its cache's tokens at the threshold
/// and of those that were in use when requests last queued there. Scale-down is that of the HPA to
/// which it tells its number, stabilised over 120 s.
class SaturationAnalyzer {
 public:
  SaturationAnalyzer(const SaturationTerms& terms, const ReplicaGroup& group, std::uint32_t max)
      : terms_(terms),
        cache_tokens_(terms.kv_threshold * group.rules.kv_blocks * kKvBlockTokens),
        max_(max) {}

  std::vector<std::uint32_t> operator()(const ServiceWindow& window) {
    constexpr Duration kLook = Duration::seconds(30);
    const Duration now = window.begin + window.length;
    const std::uint32_t there = window.ready.front() + window.starting.front();
    if (window.answered.requests > 0) {
      const auto answered = static_cast<double>(window.answered.requests);
      constexpr double kGain = 0.05;
      const double gain = prompt_ > 0 ? kGain : 1;
      prompt_ += gain * (static_cast<double>(window.answered.prompt_tokens) / answered - prompt_);
      output_ += gain * (static_cast<double>(window.answered.output_tokens) / answered - output_);
    }
    if (now < next_) return {there};
    next_ = now + kLook;
    return {stable(wanted(window, there), there, now)};
  }

 private:
  struct Advice {
    Duration at;
    std::uint32_t replicas = 0;
  };

  /// Returns the number that demand and supply ask for.
  std::uint32_t wanted(const ServiceWindow& window, std::uint32_t there) {
    constexpr double kQueued = 5;  // requests of a replica
    const double ready = std::max(window.ready.front(), 1U);
    const double used = static_cast<double>(window.in_flight) * (prompt_ + output_ / 2);
    const auto waiting = static_cast<double>(window.waiting);
    if (waiting / ready >= kQueued) computes_tokens_ = used / ready;
    const double each = std::min(cache_tokens_, computes_tokens_.value_or(cache_tokens_));
    const double demand = used + waiting * (prompt_ + output_);
    const double supply = each * there;
    if (each <= 0) return there;
    if (demand / terms_.up > supply) {
      return there + static_cast<std::uint32_t>(std::ceil((demand / terms_.up - supply) / each));
    }
    const double spare = std::floor((supply - demand / terms_.down) / each);
    return there - static_cast<std::uint32_t>(std::clamp(spare, 0.0, there - 1.0));
  }

  std::uint32_t stable(std::uint32_t wanted, std::uint32_t there, Duration now) {
    constexpr Duration kStable = Duration::seconds(120);
    wanted = std::clamp(wanted, 1U, max_);
    advised_.push_back({now, wanted});
    while (advised_.front().at + kStable < now) advised_.pop_front();
    if (wanted >= there) return wanted;
    std::uint32_t most = 0;
    for (const Advice& each : advised_) most = std::max(most, each.replicas);
    return std::min(there, most);
  }

  SaturationTerms terms_;
  double cache_tokens_;
  std::uint32_t max_;
  Duration next_;
  double prompt_ = 0;  ///< mean tokens of a request
  double output_ = 0;
  std::optional<double> computes_tokens_;  ///< of a replica where requests queued
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

/// Requests a second of each minute of a trace.
inline std::vector<double> minute_rates(const RequestTrace& trace) {
  constexpr Duration kMinute = Duration::minutes(1);
  std::vector<double> rates;
  for (const TraceRequest& each : trace.requests) {
    const auto minute = static_cast<std::size_t>(each.arrival.count_ns() / kMinute.count_ns());
    if (minute >= rates.size()) rates.resize(minute + 1);
    rates[minute] += 1 / kMinute.count_seconds();
  }
  return rates;
}

/// Knows the requests that will come.
class ForeseeingScaler {
 public:
  /// `requests_s`: that a replica serves.
  ForeseeingScaler(std::vector<double> rates, Duration cold_start, double requests_s,
                   std::uint32_t max)
      : rates_(std::move(rates)), cold_start_(cold_start), requests_s_(requests_s), max_(max) {}

  std::vector<std::uint32_t> operator()(const ServiceWindow& window) const {
    const Duration now = window.begin + window.length;
    const auto minute = [](Duration at) {
      return static_cast<std::size_t>(at.count_ns() / Duration::minutes(1).count_ns());
    };
    double most = 0;
    const std::size_t last = minute(now + cold_start_ + Duration::minutes(1));
    for (std::size_t i = minute(now); i <= last && i < rates_.size(); ++i) {
      most = std::max(most, rates_[i]);
    }
    const double replicas = std::ceil(most / requests_s_);
    return {std::clamp(static_cast<std::uint32_t>(replicas), 1U, max_)};
  }

 private:
  std::vector<double> rates_;
  Duration cold_start_;
  double requests_s_;
  std::uint32_t max_;
};

}  // namespace orrery
