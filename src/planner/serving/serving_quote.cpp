#include "planner/serving/serving_quote.hpp"

#include <algorithm>
#include <cmath>

#include "perf/machine/kernel_time.hpp"

namespace orrery {
namespace {

constexpr double kMillion = 1e6;

/// Operations/s of large products in the job's formats, one device.
double reached_rate(const ServingWork& work) {
  const auto rate = [&](NumberFormat format, double fraction) {
    const std::optional<FlopsPerSecond> peak = work.job.accelerator->rate(format);
    return peak ? peak->value() * fraction : 0;
  };
  const DeviceConstants& device = work.constants.device;
  const double wide = std::max(rate(NumberFormat::kBf16, device.matmul16),
                               rate(NumberFormat::kFp16, device.matmul16));
  const NumberFormat format = work.job.formats.activations;
  const double bytes = stored_bytes(format);
  if (bytes >= 2) return wide;
  return std::max(wide, rate(format, bytes >= 1 ? device.matmul8 : device.matmul4));
}

/// Earlier tokens that a token sees.
double seen(const ServingAttention& attention, double tokens) {
  if (attention.window > 0) tokens = std::min(tokens, attention.window);
  return attention.seen_max > 0 ? std::min(tokens, attention.seen_max) : tokens;
}

double linear_flops(const ServingLayer& layer) {
  double weights = 0;
  for (const ServingMatrix& matrix : layer.matrices) weights += matrix.rows * matrix.columns;
  const ServingExperts& experts = layer.experts;
  return 2 * (weights + experts.active * experts.outer * experts.ffn * experts.matrices);
}

double prompt_flops(const ServingLayer& layer, const ServingLoad& load) {
  const ServingAttention& attention = layer.attention;
  const double token = linear_flops(layer) + 6 * attention.state_elements +
                       2 * attention.prefill_width * seen(attention, load.input / 2);
  return token * load.input;
}

double answer_flops(const ServingLayer& layer, const ServingLoad& load) {
  const ServingAttention& attention = layer.attention;
  const double token = linear_flops(layer) + 6 * attention.state_elements +
                       2 * attention.decode_width * seen(attention, load.input + load.output / 2);
  return token * load.output;
}

}  // namespace

std::optional<RackSize> rack_size(const Catalog& catalog, const NodeType& node) {
  for (const SystemType& system : catalog.all<SystemType>()) {
    if (system.node != node.id) continue;
    double accelerators = system.rack_accelerators.value_or(0);
    const int nodes = system.nodes_per_rack.value_or(system.rack_trays.value_or(0));
    if (accelerators == 0) accelerators = 1.0 * nodes * node.accelerators_per_node;
    if (accelerators > 0) return RackSize{.accelerators = accelerators, .system = system.id};
  }
  return std::nullopt;
}

double request_flops(const ServingJob& job, ServingRole role) {
  const bool prompt = role != ServingRole::kAnswer;
  const bool answer = role != ServingRole::kPrompt;
  double flops = answer ? 2 * job.shape.vocab * job.shape.hidden * job.load.output : 0;
  for (const ServingLayer& layer : job.shape.kinds) {
    if (prompt) flops += layer.layers * prompt_flops(layer, job.load);
    if (answer) flops += layer.layers * answer_flops(layer, job.load);
  }
  return flops;
}

PowerLoad serving_power_load(const ServingWork& work) {
  const ServingPrediction& p = work.prediction;
  const ServingPlan& plan = work.job.plan;
  const double devices = plan.tp * plan.pp * plan.attention_dp;
  const double busy = std::clamp(p.batch, 0.0, 1.0);
  const double pass = p.breakdown.total();
  PowerLoad load;
  load.network_share = busy * p.breakdown.collective / pass;
  const double host = busy * p.breakdown.host / pass;
  const double rest = std::max(0.0, busy - load.network_share - host);
  load.compute_share = std::min(
      rest, p.requests * request_flops(work.job, work.role) / (devices * reached_rate(work)));
  load.memory_share = rest - load.compute_share;
  load.idle_share = std::max(0.0, 1 - load.compute_share - load.memory_share - load.network_share);
  return load;
}

ServingExpense expense_of(const Economics& economics, const ServingWork& work) {
  const ServingPlan& plan = work.job.plan;
  const double accelerators = plan.tp * plan.pp * plan.attention_dp * work.instances;
  ServingExpense expense;
  expense.load = serving_power_load(work);
  if (economics.power.value) {
    const Result<DevicePower> power = power_at(*economics.power.value, expense.load);
    if (power) expense.power = power->total() * accelerators;
  }
  if (!economics.price.value || (economics.owned && !expense.power)) return expense;
  expense.price = economics.price.value->hire * accelerators;
  if (economics.owned) {
    const Site& site = *economics.site.value;
    *expense.price += *expense.power * site.pue * site.electricity;
  }
  return expense;
}

ServingQuote quote_of(const ServingExpense& expense, const std::optional<RackSize>& rack,
                      const ServingYield& yield) {
  ServingQuote quote{.load = expense.load, .price = expense.price, .power = expense.power};
  if (quote.power) quote.tokens_per_joule = yield.generated / quote.power->value();
  if (quote.price) {
    quote.dollars_per_million = quote.price->value() / yield.generated * kMillion;
    quote.dollars_per_million_total = quote.price->value() / yield.total * kMillion;
  }
  if (rack) quote.tokens_per_rack = yield.generated / yield.accelerators * rack->accelerators;
  return quote;
}

ServingQuote quote_of(const Economics& economics, const std::optional<RackSize>& rack,
                      const ServingWork& work) {
  const ServingPlan& plan = work.job.plan;
  return quote_of(expense_of(economics, work), rack,
                  {.generated = work.prediction.output_tokens.value() * work.instances,
                   .total = work.prediction.tokens_total.value() * work.instances,
                   .accelerators = plan.tp * plan.pp * plan.attention_dp * work.instances});
}

}  // namespace orrery
