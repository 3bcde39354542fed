#include "twin/serving/demand_scaler.hpp"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "twin/gateways/modelled_gateway.hpp"

namespace orrery {
namespace {

/// The window of a gateway's figures.
constexpr Duration kWindow = Duration::minutes(5);

class DemandScaler {
 public:
  DemandScaler(const std::vector<ReplicaGroup>& groups, const ScaleTargets& targets)
      : targets_(targets), groups_(groups) {
    for (const ReplicaGroup& each : groups) {
      costs_.push_back(engine_step_cost_of(pace_of(each), each.rules.sequences_max));
      cold_start_ = std::max(cold_start_, each.cold_start);
    }
  }

  std::vector<std::uint32_t> operator()(const ServiceWindow& window) {
    const Instant now = Instant() + window.begin + window.length;
    count(window, now);
    std::vector<SeenVariant> variants;
    std::vector<std::uint32_t> wanted;
    std::uint32_t total = 0;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      variants.push_back(variant(window, i));
      wanted.push_back(variants.back().wanted);
      total += wanted.back();
    }
    const auto answer = scaler_.look({.now = now,
                                      .flow = flow_,
                                      .shape = shape_,
                                      .waiting = static_cast<std::uint32_t>(window.waiting),
                                      .running = static_cast<std::uint32_t>(window.in_flight),
                                      .variants = std::move(variants),
                                      .cold_start = cold_start_,
                                      .last = last_},
                                     targets_);
    if (!answer || answer->replicas == wanted) return wanted;
    last_ = PastScaleOrder{now, answer->total > total ? ScaleDirection::kOut : ScaleDirection::kIn};
    return answer->replicas;
  }

 private:
  [[nodiscard]] SeenVariant variant(const ServiceWindow& window, std::size_t group) const {
    const ReplicaGroup& of = groups_[group];
    const std::uint32_t ready = window.ready[group];
    const bool known = ready > 0 || groups_.size() > 1;
    return {.name = groups_.size() > 1 ? of.name : std::string(),
            .wanted = ready + window.starting[group],
            .ready = ready,
            .slots = of.rules.sequences_max,
            .cost = known ? costs_[group] : EngineStepCost(),
            .most = of.most,
            .usd_s = of.usd_h / 3600,
            .watts = of.watts};
  }

  struct Reported {
    Instant at;
    AnsweredRequests answered;
  };

  void count(const ServiceWindow& window, Instant now) {
    const AnsweredRequests& answered = window.answered;
    flow_.requests += static_cast<std::int64_t>(window.arrived);
    flow_.requests -= static_cast<std::int64_t>(window.refused);
    flow_.prompt_tokens += answered.prompt_tokens;
    flow_.output_tokens += answered.output_tokens;
    flow_.answered += answered.requests;
    flow_.late += answered.late;
    recent_.push_back({now, answered});
    while (recent_.front().at + kWindow < now) recent_.pop_front();
    AnsweredRequests all;
    for (const Reported& each : recent_) {
      all.requests += each.answered.requests;
      all.prompt_tokens += each.answered.prompt_tokens;
      all.output_tokens += each.answered.output_tokens;
    }
    if (all.requests == 0) return;
    const auto requests = static_cast<double>(all.requests);
    shape_ = {static_cast<double>(all.prompt_tokens) / requests,
              static_cast<double>(all.output_tokens) / requests};
  }

  ScaleTargets targets_;
  std::vector<ReplicaGroup> groups_;
  std::vector<EngineStepCost> costs_;
  Duration cold_start_;
  Autoscaler scaler_;
  ServiceFlow flow_;
  std::deque<Reported> recent_;  ///< of the window, tick by tick
  RequestShape shape_;
  std::optional<PastScaleOrder> last_;
};

}  // namespace

ServiceScaler demand_scaler(const std::vector<ReplicaGroup>& groups, const ScaleTargets& targets) {
  return DemandScaler(groups, targets);
}

}  // namespace orrery
