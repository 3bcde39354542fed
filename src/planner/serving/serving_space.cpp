#include "planner/serving/serving_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/format/field_writer.hpp"
#include "perf/machine/kernel_time.hpp"

namespace orrery {
namespace {

bool divides(double part, double whole) { return std::fmod(whole, part) == 0; }

bool heads_allow(const ServingShape& shape, double tp) {
  return std::all_of(shape.kinds.begin(), shape.kinds.end(), [&](const ServingLayer& layer) {
    return layer.attention.heads == 0 || divides(tp, layer.attention.heads);
  });
}

bool has_experts(const ServingShape& shape) {
  return std::any_of(shape.kinds.begin(), shape.kinds.end(),
                     [](const ServingLayer& layer) { return layer.experts.count > 0; });
}

bool experts_allow(const ServingShape& shape, double ep) {
  return has_experts(shape) &&
         std::all_of(shape.kinds.begin(), shape.kinds.end(), [&](const ServingLayer& layer) {
           return layer.experts.count == 0 || divides(ep, layer.experts.count);
         });
}

/// One pipeline stage's devices, as heads, groups and experts may divide them.
void add_stage_layouts(const ServingShape& shape, double stage, double pp,
                       std::vector<ServingPlan>& plans) {
  for (double groups = 1; groups <= stage; groups *= 2) {
    const ServingPlan plan{.tp = stage / groups, .pp = pp, .attention_dp = groups};
    if (!heads_allow(shape, plan.tp)) continue;
    if (groups == 1) plans.push_back(plan);
    if (stage == 1 || !experts_allow(shape, stage)) continue;
    plans.push_back(plan);
    plans.back().ep = stage;
  }
}

bool computes(const Accelerator& accelerator, NumberFormat format) {
  return accelerator.rate(format) && accelerator.rate(format)->value() > 0;
}

std::optional<NumberFormat> sixteen_bits(const Accelerator& accelerator) {
  for (const NumberFormat format : {NumberFormat::kBf16, NumberFormat::kFp16}) {
    if (computes(accelerator, format)) return format;
  }
  return std::nullopt;
}

bool is_sixteen_bits(NumberFormat format) {
  return format == NumberFormat::kBf16 || format == NumberFormat::kFp16;
}

std::vector<NumberFormat> usual_formats(const Accelerator& accelerator, const Model& model) {
  const NumberFormat published = model.quantized_format.value_or(NumberFormat::kBf16);
  std::vector<NumberFormat> formats = {NumberFormat::kBf16};
  const bool fp8 = computes(accelerator, NumberFormat::kFp8);
  for (const NumberFormat format :
       {fp8 ? NumberFormat::kFp8 : NumberFormat::kInt8, NumberFormat::kFp4}) {
    if (computes(accelerator, format)) formats.push_back(format);
  }
  std::erase_if(
      formats, [&](NumberFormat format) { return stored_bytes(format) > stored_bytes(published); });
  if (std::find(formats.begin(), formats.end(), published) == formats.end()) {
    formats.push_back(published);
  }
  return formats;
}

}  // namespace

std::vector<ServingPlan> serving_layouts(const ServingShape& shape, std::uint32_t devices) {
  std::vector<ServingPlan> plans;
  const double most = std::min(devices, kInstanceMax);
  for (double width = 1; width <= most; width *= 2) {
    for (double pp = 1; pp <= std::min(width, shape.layers); pp *= 2) {
      add_stage_layouts(shape, width / pp, pp, plans);
    }
  }
  return plans;
}

double devices_of(const ServingPlan& plan) { return plan.tp * plan.pp * plan.attention_dp; }

double domains_of(const ServingPlan& plan, std::uint32_t domain) {
  return std::ceil(devices_of(plan) / std::bit_floor(domain));
}

std::string print_layout(const ServingPlan& plan) {
  std::string text = fmt::format("tp={}", plan.tp);
  if (plan.pp > 1) text += fmt::format(",pp={}", plan.pp);
  if (plan.attention_dp > 1) text += fmt::format(",attention_dp={}", plan.attention_dp);
  if (plan.ep > 1) text += fmt::format(",ep={}", plan.ep);
  return text;
}

std::string print_numbers(const ServingNumbers& numbers) {
  if (numbers.weights == numbers.activations) return std::string(word_of(numbers.weights));
  return fmt::format("{} weights, {} products", word_of(numbers.weights),
                     word_of(numbers.activations));
}

std::vector<ServingNumbers> serving_numbers(const Accelerator& accelerator, const Model& model,
                                            const std::vector<NumberFormat>& stated) {
  const std::optional<NumberFormat> wide = sixteen_bits(accelerator);
  if (!wide) return {};
  std::vector<ServingNumbers> all;
  for (NumberFormat format : stated.empty() ? usual_formats(accelerator, model) : stated) {
    if (is_sixteen_bits(format)) format = *wide;
    const bool weights_alone = format == NumberFormat::kInt4 || !computes(accelerator, format);
    const ServingNumbers numbers{.weights = format, .activations = weights_alone ? *wide : format};
    if (std::find(all.begin(), all.end(), numbers) == all.end()) all.push_back(numbers);
  }
  return all;
}

}  // namespace orrery
