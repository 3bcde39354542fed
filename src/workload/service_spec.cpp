#include "workload/service_spec.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace orrery {

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
  if (service.rollout.surge > 0 || service.rollout.unavailable > 0) return {};
  return input_error(service.rollout.where,
                     "rollout has surge 0 and unavailable 0, expected one of them above 0: no "
                     "replica could be replaced");
}

}  // namespace orrery
