#include "twin/serving/demand_scaler.hpp"

#include <deque>

#include "twin/gateways/modelled_gateway.hpp"

namespace orrery {
namespace {

/// The window of a gateway's figures.
constexpr Duration kWindow = Duration::minutes(5);

class DemandScaler {
 public:
  DemandScaler(const ReplicaGroup& group, const ScaleTargets& targets)
      : targets_(targets),
        slots_(group.rules.sequences_max),
        cost_(engine_step_cost_of(pace_of(group), slots_)),
        cold_start_(group.cold_start) {}

  std::vector<std::uint32_t> operator()(const ServiceWindow& window) {
    const Instant now = Instant() + window.begin + window.length;
    count(window, now);
    const std::uint32_t ready = window.ready.front();
    const std::uint32_t wanted = ready + window.starting.front();
    const auto answer = scaler_.look({.now = now,
                                      .flow = flow_,
                                      .shape = shape_,
                                      .answered = lately_,
                                      .waiting = static_cast<std::uint32_t>(window.waiting),
                                      .running = static_cast<std::uint32_t>(window.in_flight),
                                      .wanted = wanted,
                                      .ready = ready,
                                      .slots = slots_,
                                      .cost = ready > 0 ? cost_ : EngineStepCost(),
                                      .cold_start = cold_start_,
                                      .last = last_},
                                     targets_);
    if (!answer || answer->total == wanted) return {wanted};
    last_ =
        PastScaleOrder{now, answer->total > wanted ? ScaleDirection::kOut : ScaleDirection::kIn};
    return {answer->total};
  }

 private:
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
    recent_.push_back({now, answered});
    while (recent_.front().at + kWindow < now) recent_.pop_front();
    AnsweredRequests all;
    for (const Reported& each : recent_) {
      all.requests += each.answered.requests;
      all.prompt_tokens += each.answered.prompt_tokens;
      all.output_tokens += each.answered.output_tokens;
      all.late += each.answered.late;
    }
    lately_ = {};
    if (all.requests == 0) return;
    const auto requests = static_cast<double>(all.requests);
    lately_ = {.requests = requests, .late = static_cast<double>(all.late)};
    shape_ = {static_cast<double>(all.prompt_tokens) / requests,
              static_cast<double>(all.output_tokens) / requests};
  }

  ScaleTargets targets_;
  std::uint32_t slots_;
  EngineStepCost cost_;
  Duration cold_start_;
  Autoscaler scaler_;
  ServiceFlow flow_;
  std::deque<Reported> recent_;  ///< of the window, tick by tick
  RequestShape shape_;
  AnsweredLately lately_;
  std::optional<PastScaleOrder> last_;
};

}  // namespace

ServiceScaler demand_scaler(const ReplicaGroup& group, const ScaleTargets& targets) {
  return DemandScaler(group, targets);
}

}  // namespace orrery
