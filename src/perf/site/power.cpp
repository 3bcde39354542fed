#include "perf/site/power.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/numbers/math.hpp"
#include "base/text/quantity_text.hpp"
#include "perf/range_check.hpp"

namespace orrery {
namespace {

constexpr double kShareSlack = 1e-6;  // rounding of a breakdown that was summed elsewhere

Status check_load(const PowerLoad& load) {
  double sum = 0;
  for (const auto& [what, share] : {std::pair{"compute share", load.compute_share},
                                    {"memory share", load.memory_share},
                                    {"network share", load.network_share},
                                    {"idle share", load.idle_share}}) {
    if (Status checked = check_range(what, share, kFraction); !checked) return checked;
    sum += share;
  }
  return check_range("sum of the shares of a step", sum, {1 - kShareSlack, 1 + kShareSlack});
}

Status check_watts(std::string_view what, const std::optional<Watts>& given) {
  return given ? check_range(what, given->value(), kPositive) : Status{};
}

/// TDP and idle draw of one accelerator, the operator's first.
Status set_accelerator(PowerModel& model, const Accelerator& accelerator,
                       const Calibration& calibration, const PowerOptions& options) {
  if (!options.tdp && !accelerator.tdp) {
    return input_error({}, fmt::format("the TDP of {} ({}) is not published; give its watts",
                                       accelerator.name, accelerator.id));
  }
  model.tdp = options.tdp.value_or(accelerator.tdp.value_or(Watts(0)));
  model.training = model.tdp * calibration.first_of({"power.compute.fraction"});
  model.memory = model.tdp * calibration.first_of({"power.memory.fraction"});
  model.network = model.tdp * calibration.first_of({"power.network.fraction"});
  const double fraction = calibration.first_of({"power.idle.fraction"});
  if (!accelerator.idle_power) {
    model.assumptions.push_back(
        fmt::format("idle power of {}: {:.0f} % of its TDP", accelerator.id, fraction * 100));
  }
  model.idle = std::min(accelerator.idle_power.value_or(model.tdp * fraction), model.training);
  return check_range("TDP", model.tdp.value(), kPositive);
}

Status set_cap(PowerModel& model, const Accelerator& accelerator, const PowerOptions& options) {
  model.cap = options.cap.value_or(
      std::min(accelerator.default_power_limit.value_or(model.tdp), model.tdp));
  // Below a tenth of the clock the curve is all static power and says nothing.
  constexpr double kClockMin = 0.1;
  const Watts curve_end = model.tdp * power_at_clock(model.curve, kClockMin);
  const Watts allowed = std::max(accelerator.power_cap_min.value_or(model.idle), model.idle);
  const Watts least = std::min(std::max(allowed, curve_end), model.tdp);
  if (model.cap > model.tdp || model.cap < least) {
    return input_error({}, fmt::format("power cap {} of {}: expected {} to {}", print(model.cap),
                                       accelerator.id, print(least), print(model.tdp)));
  }
  Result<double> clock = clock_at_power(model.curve, model.cap / model.tdp);
  if (!clock) return forward_error(clock);
  model.clock = *clock;
  return {};
}

/// What the node draws beside its accelerators at its rating, each one's share; assumed or not.
Result<Watts> rest_at_rating(PowerModel& model, const NodeType& node) {
  const double count = node.accelerators_per_node;
  Watts rating;
  if (node.max_power) {
    rating = *node.max_power;
  } else if (node.assumed_power) {
    // No node is rated less than its accelerators: that end of the range is out.
    const Watts low = std::max(node.assumed_power->low, model.tdp * count);
    rating = (low + node.assumed_power->high) / 2;
    model.assumptions.push_back(
        fmt::format("rating of {}: {}, the middle of {} to {} ({})", node.id, print(rating),
                    print(low), print(node.assumed_power->high), node.assumed_power->basis));
  } else {
    return input_error(node.where, fmt::format("the power of node type {} is not published; give "
                                               "the watts of a node in training",
                                               node.id));
  }
  if (rating < model.tdp * count) {
    return input_error(node.where,
                       fmt::format("{} is rated {}, less than its {} accelerators of {}; give the "
                                   "watts of a node in training",
                                   node.id, print(rating), count, print(model.tdp)));
  }
  return rating / count - model.tdp;
}

/// Anchors of the line from the accelerator's draw to the rest's.
Status set_rest(PowerModel& model, const NodeType& node, const Calibration& calibration,
                const PowerOptions& options) {
  const double count = node.accelerators_per_node;
  const double training_part = calibration.first_of({"power.rest.training"});
  const double idle_part = calibration.first_of({"power.rest.idle"});
  model.rest_anchor = model.training * power_at_clock(model.curve, model.clock);
  const std::optional<Watts> typical =
      options.node_training ? options.node_training : node.typical_training_power;
  if (typical) {
    model.rest_training = *typical / count - model.rest_anchor;
    if (model.rest_training < Watts(0)) {
      return input_error(node.where,
                         fmt::format("{} in training draws {}, less than its {} accelerators at {}",
                                     node.id, print(*typical), count, print(model.rest_anchor)));
    }
  } else {
    Result<Watts> rest = rest_at_rating(model, node);
    if (!rest) return forward_error(rest);
    model.rest_training = *rest * training_part;
    model.assumptions.push_back(
        fmt::format("rest of {} in training: {:.0f} % of its rating beside the accelerators",
                    node.id, training_part * 100));
  }
  const Watts idle = node.idle_power ? *node.idle_power / count - model.idle
                                     : model.rest_training * (idle_part / training_part);
  if (!node.idle_power) {
    model.assumptions.push_back(fmt::format("idle power of {}: {} beside each accelerator", node.id,
                                            print(std::min(idle, model.rest_training))));
  }
  model.rest_idle = std::clamp(idle, Watts(0), model.rest_training);
  return {};
}

}  // namespace

Result<PowerLoad> power_load(const PhaseTimes& times) {
  for (const auto& [what, time] : {std::pair{"time computing", times.compute},
                                   {"time on memory", times.memory},
                                   {"time on the network", times.network},
                                   {"time idle", times.idle}}) {
    Status checked = check_range(what, time.value(), kNotNegative);
    if (!checked) return forward_error(checked);
  }
  const Seconds sum = times.compute + times.memory + times.network + times.idle;
  Status checked = check_range("time of a step", sum.value(), {kFigureMin, 4 * kFigureMax});
  if (!checked) return forward_error(checked);
  return PowerLoad{.compute_share = times.compute / sum,
                   .memory_share = times.memory / sum,
                   .network_share = times.network / sum,
                   .idle_share = times.idle / sum};
}

double power_at_clock(const PowerCurve& curve, double clock) {
  return curve.static_share + (1 - curve.static_share) * math::pow(clock, curve.exponent);
}

Result<double> clock_at_power(const PowerCurve& curve, double power_fraction) {
  if (!(power_fraction > curve.static_share && power_fraction <= 1)) {
    return input_error({}, fmt::format("a cap at {:.3g} of the full power: expected more than "
                                       "{:.3g} (no clock draws less) and at most 1",
                                       power_fraction, curve.static_share));
  }
  const double dynamic = (power_fraction - curve.static_share) / (1 - curve.static_share);
  return std::min(1.0, math::pow(dynamic, 1 / curve.exponent));
}

Result<double> relative_throughput(double clock_bound_share, double clock) {
  Status checked = check_range("clock-bound share", clock_bound_share, kFraction);
  if (checked) checked = check_range("clock", clock, {kFigureMin, 1});
  if (!checked) return forward_error(checked);
  return 1 / (clock_bound_share / clock + 1 - clock_bound_share);
}

Result<PowerModel> power_model(const Catalog& catalog, const Calibration& calibration,
                               const NodeType& node, const PowerOptions& options) {
  Status status = check_watts("TDP", options.tdp);
  if (status) status = check_watts("power of the node in training", options.node_training);
  if (status) status = check_watts("power cap", options.cap);
  if (!status) return forward_error(status);
  Result<const Accelerator*> accelerator = catalog.require<Accelerator>(node.accelerator);
  if (!accelerator) return forward_error(accelerator);
  PowerModel model;
  model.curve = {.static_share = calibration.first_of({"power.curve.static"}),
                 .exponent = calibration.first_of({"power.curve.exponent"})};
  model.compute_clock_bound = calibration.first_of({"power.clock_bound.compute"});
  model.memory_clock_bound = calibration.first_of({"power.clock_bound.memory"});
  status = set_accelerator(model, **accelerator, calibration, options);
  // The node was measured as the part ships, so its rest is found there and the cap set after it.
  PowerOptions as_shipped = options;
  as_shipped.cap.reset();
  if (status) status = set_cap(model, **accelerator, as_shipped);
  if (status) status = set_rest(model, node, calibration, options);
  if (status) status = set_cap(model, **accelerator, options);
  if (!status) return forward_error(status);
  return model;
}

Result<DevicePower> power_at(const PowerModel& model, const PowerLoad& load) {
  if (Status checked = check_load(load); !checked) return forward_error(checked);
  const double scale = power_at_clock(model.curve, model.clock);
  const Watts computing = std::max(model.idle, model.training * scale);
  const Watts waiting = std::clamp(model.network, model.idle, computing);
  const Watts reading = std::max(model.idle, model.memory * scale);
  const Watts accelerator = computing * load.compute_share + reading * load.memory_share +
                            waiting * load.network_share + model.idle * load.idle_share;
  const Watts span = model.rest_anchor - model.idle;
  const double activity = span > Watts(0) ? (accelerator - model.idle) / span : 0;
  const Watts rest = model.rest_idle + (model.rest_training - model.rest_idle) * activity;
  return DevicePower{.accelerator = accelerator, .rest = std::max(rest, Watts(0))};
}

double clock_bound_of(const PowerModel& model, const PowerLoad& load) {
  const double bound =
      load.compute_share * model.compute_clock_bound + load.memory_share * model.memory_clock_bound;
  return std::min(bound, 1.0);
}

Result<Energy> energy_of(const PowerDraw& draw, const Site& site) {
  Status checked = check_range("power", draw.each.value(), kNotNegative);
  if (checked) checked = check_range("number of accelerators", draw.accelerators, kNotNegative);
  if (checked) checked = check_range("time", draw.time.value(), kNotNegative);
  if (checked) checked = check_range("PUE", site.pue, {1, kFigureMax});
  if (checked) checked = check_range("carbon of the grid", site.carbon.value(), kNotNegative);
  if (!checked) return forward_error(checked);
  const Joules machines = draw.each * draw.accelerators * draw.time;
  const Joules facility = machines * site.pue;
  return Energy{.machines = machines, .facility = facility, .carbon = facility * site.carbon};
}

Result<JoulesPerFlop> joules_per_flop(Joules energy, Flops work) {
  Status checked = check_range("energy", energy.value(), kNotNegative);
  if (checked) checked = check_range("operations", work.value(), kPositive);
  if (!checked) return forward_error(checked);
  return energy / work;
}

}  // namespace orrery
