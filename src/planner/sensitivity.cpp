#include "planner/sensitivity.hpp"

namespace orrery {
namespace {

constexpr double kStep = 0.01;

bool is_scale_up(const Tier& tier) {
  return tier.link == LinkClass::kSwitched || tier.link == LinkClass::kMesh ||
         tier.link == LinkClass::kPcie || tier.link == LinkClass::kTorus;
}

enum class Side { kUp, kOut };
enum class LinkFigure { kBandwidth, kLatency };

void scale_tiers(Machine& machine, Side side, LinkFigure figure, double factor) {
  for (Tier& tier : machine.tiers) {
    if (is_scale_up(tier) != (side == Side::kUp)) continue;
    (figure == LinkFigure::kBandwidth ? tier.bandwidth : tier.latency) *= factor;
  }
}

Status scale_power_cap(const PlannerFacts& facts, MachineChoice& choice, double factor) {
  const Result<PowerModel> power =
      power_model(facts.catalog, facts.calibration, *choice.machine.node, choice.economics.power);
  if (!power) return tl::unexpected<Error>(power.error());
  choice.economics.power.cap = std::min(power->tdp, power->cap * factor);
  return {};
}

std::optional<double> relative(std::optional<double> before, std::optional<double> after) {
  if (!before || !after || *before <= 0) return std::nullopt;
  return *after / *before - 1;
}

template <class Q>
std::optional<double> value_of(const std::optional<Q>& figure) {
  return figure ? std::optional(figure->value()) : std::nullopt;
}

FigureChange change(const PlanOffer& base, const PlanOffer& other) {
  return {.step = other.cost.seconds / base.cost.seconds - 1,
          .run = relative(value_of(base.quote.run_time), value_of(other.quote.run_time)),
          .cost = relative(value_of(base.quote.run_cost), value_of(other.quote.run_cost)),
          .energy = relative(value_of(base.quote.step_energy), value_of(other.quote.step_energy)),
          .plan = other.plan};
}

}  // namespace

Result<MachineChoice> changed(const PlannerFacts& facts, const MachineChoice& choice,
                              HardwareFigure figure, double factor) {
  MachineChoice result = choice;
  Machine& machine = result.machine;
  switch (figure) {
    case HardwareFigure::kPeak:
      for (double& peak : machine.peak) peak *= factor;
      break;
    case HardwareFigure::kMemorySize:
      machine.memory *= factor;
      break;
    case HardwareFigure::kMemoryBandwidth:
      machine.memory_bandwidth *= factor;
      break;
    case HardwareFigure::kScaleUpBandwidth:
      scale_tiers(machine, Side::kUp, LinkFigure::kBandwidth, factor);
      break;
    case HardwareFigure::kScaleUpLatency:
      scale_tiers(machine, Side::kUp, LinkFigure::kLatency, factor);
      break;
    case HardwareFigure::kScaleOutBandwidth:
      scale_tiers(machine, Side::kOut, LinkFigure::kBandwidth, factor);
      break;
    case HardwareFigure::kScaleOutLatency:
      scale_tiers(machine, Side::kOut, LinkFigure::kLatency, factor);
      break;
    case HardwareFigure::kHostLink:
      machine.host_bandwidth *= factor;
      break;
    case HardwareFigure::kStorage:
      result.economics.storage_speed *= factor;
      break;
    case HardwareFigure::kPowerCap:
      if (Status scaled = scale_power_cap(facts, result, factor); !scaled) {
        return forward_error(scaled);
      }
      break;
  }
  return result;
}

Result<std::vector<Sensitivity>> sensitivities(const PlannerFacts& facts,
                                               const PlanQuestion& question, std::size_t machine) {
  PlanQuestion alone = question;
  alone.machines = {question.machines[machine]};
  alone.best = 1;
  alone.progress = {};
  Result<PlanAnswer> base = plan(facts, alone);
  if (!base) return forward_error(base);
  const auto at = [&](HardwareFigure figure, double factor) -> std::optional<FigureChange> {
    Result<MachineChoice> choice = changed(facts, question.machines[machine], figure, factor);
    if (!choice) return std::nullopt;
    alone.machines = {*std::move(choice)};
    const Result<PlanAnswer> other = plan(facts, alone);
    if (!other) return std::nullopt;
    return change(base->plans.front(), other->plans.front());
  };
  std::vector<Sensitivity> all;
  for (const auto& entry : enum_words(HardwareFigure{})) {
    const std::optional<FigureChange> up = at(entry.value, 1 + kStep);
    const std::optional<FigureChange> down = at(entry.value, 1 - kStep);
    if (up && down) all.push_back({.figure = entry.value, .up = *up, .down = *down});
  }
  return all;
}

}  // namespace orrery
