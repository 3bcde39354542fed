#include "workload/service_spec.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string>
#include <string_view>

#include "base/text/name_check.hpp"

namespace orrery {
namespace {

Status check_tenant(const ServiceTenantSpec& tenant) {
  constexpr double kWeightMax = 1e6;
  constexpr std::int32_t kPriorityMax = 1000;
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = tenant.name.find('/', begin);
    const std::size_t length = end == std::string::npos ? end : end - begin;
    const std::string_view part = std::string_view(tenant.name).substr(begin, length);
    if (Status named = check_name(part, tenant.where); !named) return named;
  }
  const auto wrong = [&](std::string_view key, auto value, std::string_view expected) {
    return input_error(tenant.where, fmt::format("tenant {}: {} is {}, expected {}", tenant.name,
                                                 key, value, expected));
  };
  // The negation refuses NaN, too.
  if (!(tenant.weight > 0 && tenant.weight <= kWeightMax)) {
    return wrong("weight", tenant.weight, "more than 0, at most 1000000");
  }
  if (tenant.priority < -kPriorityMax || tenant.priority > kPriorityMax) {
    return wrong("priority", tenant.priority, "-1000 to 1000");
  }
  const double limit = tenant.tokens_per_s.value_or(1);
  if (!(limit > 0 && std::isfinite(limit))) {
    return wrong("tokens_per_s", limit, "more than 0");
  }
  return {};
}

/// Checks each tenant, and that none is named twice.
Status check_tenants(const std::vector<ServiceTenantSpec>& tenants) {
  std::map<std::string_view, SourcePosition> seen;
  for (const ServiceTenantSpec& tenant : tenants) {
    if (Status fits = check_tenant(tenant); !fits) return fits;
    const auto [first, added] = seen.emplace(tenant.name, tenant.where);
    if (added) continue;
    return input_error(tenant.where, fmt::format("a second tenant named \"{}\", the first is at {}",
                                                 tenant.name, first->second.text()));
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
  above_zero("batch_deadline", service.slo.batch_deadline);
  if (!wrong.empty()) return input_error(service.slo.where, wrong);
  if (Status fits = check_tenants(service.tenants); !fits) return fits;
  if (service.rollout.surge > 0 || service.rollout.unavailable > 0) return {};
  return input_error(service.rollout.where,
                     "rollout has surge 0 and unavailable 0, expected one of them above 0: no "
                     "replica could be replaced");
}

}  // namespace orrery
