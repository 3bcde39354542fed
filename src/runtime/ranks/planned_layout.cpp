#include "runtime/ranks/planned_layout.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/format/document.hpp"

namespace orrery {
namespace {

constexpr std::string_view kFrom = "ORRERY_PLAN";

template <class T>
Status read_number(const nlohmann::json& plan, std::string_view key, T& value) {
  const auto found = plan.find(key);
  if (found == plan.end()) return {};
  if (found->is_number_unsigned() && found->get<std::uint64_t>() <= (1u << 20)) {
    value = found->get<T>();
    return {};
  }
  return input_error(
      {}, fmt::format("{}: plan.{}: expected a whole number, found {}", kFrom, key, found->dump()));
}

Result<ParallelPlan> read_plan(const nlohmann::json& json) {
  ParallelPlan plan;
  struct Number {
    std::string_view key;
    std::uint32_t* value;
  };
  for (const Number& number : {Number{"tp", &plan.tp},
                               {"pp", &plan.pp},
                               {"vpp", &plan.vpp},
                               {"dp", &plan.dp},
                               {"cp", &plan.cp},
                               {"ep", &plan.ep},
                               {"zero", &plan.zero},
                               {"micro_batch", &plan.micro_batch}}) {
    if (Status read = read_number(json, number.key, *number.value); !read) {
      return forward_error(read);
    }
  }
  const auto recompute = json.find("recompute");
  if (recompute == json.end()) return plan;
  for (const auto& [word, value] : enum_words(Recompute{})) {
    if (*recompute != word) continue;
    plan.recompute = value;
    return plan;
  }
  return input_error({}, fmt::format("{}: plan.recompute: expected none, selective or full, found "
                                     "{}",
                                     kFrom, recompute->dump()));
}

/// Takes one number from the plan, unless the spec states another, which is an error.
Status take(std::string_view key, const std::optional<std::uint32_t>& stated, std::uint32_t planned,
            std::uint32_t& value) {
  if (!stated || *stated == planned) {
    value = planned;
    return {};
  }
  return input_error({},
                     fmt::format("{}: the spec says {}, the job's plan {}: leave it to the plan "
                                 "or plan anew",
                                 key, *stated, planned));
}

Status check_able(const ParallelPlan& plan) {
  if (plan.cp != 1) {
    return input_error(
        {}, fmt::format("{}: plan.cp is {}: orrery-train can do 1 only", kFrom, plan.cp));
  }
  if (plan.recompute == Recompute::kSelective) {
    return input_error(
        {},
        fmt::format("{}: plan.recompute is selective: orrery-train can do none and full", kFrom));
  }
  return {};
}

}  // namespace

Result<std::optional<ParallelPlan>> plan_of_gang(std::string_view text, std::uint32_t gang) {
  if (text.empty()) return std::nullopt;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("gangs") || !json["gangs"].is_array()) {
    return input_error({}, fmt::format("{}: expected a JSON object with gangs", kFrom));
  }
  for (const auto& each : json["gangs"]) {
    const bool asked = each.is_object() && each.contains("gang") && each["gang"] == gang;
    if (!asked || !each.contains("plan")) continue;
    if (!each["plan"].is_object()) {
      return input_error({}, fmt::format("{}: gang {}: plan: expected an object", kFrom, gang));
    }
    Result<ParallelPlan> plan = read_plan(each["plan"]);
    if (!plan) return forward_error(plan);
    return *plan;
  }
  return std::nullopt;
}

Status follow(const ParallelPlan& plan, TrainingSpec& spec) {
  if (Status able = check_able(plan); !able) return able;
  const StatedLayout& stated = spec.stated;
  Status took = take("layout.tp", stated.tp, plan.tp, spec.layout.tp);
  if (took) took = take("layout.pp", stated.pp, plan.pp, spec.layout.pp);
  if (took) took = take("layout.vpp", stated.vpp, plan.vpp, spec.layout.vpp);
  if (took) took = take("layout.ep", stated.ep, plan.ep, spec.layout.ep);
  if (took) took = take("layout.zero", stated.zero, plan.zero, spec.layout.zero);
  if (took) took = take("batch.micro", stated.micro, plan.micro_batch, spec.batch.micro);
  if (!took) return input_error(spec.layout.where, took.error().message);
  const auto recompute =
      plan.recompute == Recompute::kFull ? ActivationRecompute::kFull : ActivationRecompute::kNone;
  // The spec's choice is kept without error, because recomputation does not change the bits.
  if (!stated.recompute) spec.model.recompute = recompute;
  return {};
}

}  // namespace orrery
