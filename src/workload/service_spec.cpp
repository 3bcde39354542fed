#include "workload/service_spec.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include "base/text/utf8.hpp"

namespace orrery {
namespace {

constexpr double kPartsPerPercent = 100;

}  // namespace

Result<std::vector<std::uint32_t>> canary_shares(const std::vector<std::string>& stages) {
  std::vector<std::uint32_t> shares;
  for (const std::string& stage : stages) {
    double percent = 0;
    const char* const end = stage.data() + stage.size();
    const auto [rest, failed] = std::from_chars(stage.data(), end, percent);
    const double parts = percent * kPartsPerPercent;
    const bool whole = parts >= 1 && parts <= 100 * kPartsPerPercent && parts == std::floor(parts);
    if (failed != std::errc() || std::string_view(rest, end) != "%" || !whole) {
      return input_error({}, fmt::format("canary has \"{}\", expected a percentage from 0.01% to "
                                         "100%, such as 5%",
                                         printable(stage, 40)));
    }
    const auto share = static_cast<std::uint32_t>(parts);
    if (!shares.empty() && share <= shares.back()) {
      return input_error({}, fmt::format("canary has {} after {}, expected a larger share in each "
                                         "stage",
                                         stage, stages[shares.size() - 1]));
    }
    shares.push_back(share);
  }
  return shares;
}

namespace {

Status check_rollout(const RolloutSpec& rollout) {
  const auto wrong = [&rollout](const std::string& what) {
    return input_error(rollout.where, what);
  };
  if (rollout.surge == 0 && rollout.unavailable == 0) {
    return wrong(
        "rollout has surge 0 and unavailable 0, expected one of them above 0: no replica could be "
        "replaced");
  }
  const Result<std::vector<std::uint32_t>> shares = canary_shares(rollout.canary);
  if (!shares) return wrong("rollout: " + shares.error().message);
  if (rollout.bake && rollout.bake->value() < 0) return wrong("rollout has a bake below 0 s");
  if (rollout.canary.empty() && (rollout.bake || !rollout.gates.empty())) {
    return wrong("rollout has bake or gates, which are those of a canary: expected canary, too");
  }
  return {};
}

}  // namespace

Status check_service(const ServiceSpec& service) {
  std::string wrong;
  const auto above_zero = [&wrong](std::string_view key, const std::optional<Seconds>& time) {
    if (!time || time->value() > 0) return;
    if (!wrong.empty()) wrong += "; ";
    wrong += fmt::format("{} is {} s, expected more than 0", key, time->value());
  };
  above_zero("ttft_p99", service.slo.ttft_p99);
  above_zero("tpot_p99", service.slo.tpot_p99);
  if (!wrong.empty()) return input_error(service.slo.where, wrong);
  return check_rollout(service.rollout);
}

}  // namespace orrery
