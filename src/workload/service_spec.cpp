#include "workload/service_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string>
#include <string_view>

#include "base/format/field_writer.hpp"
#include "base/text/name_check.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

constexpr double kPartsPerPercent = 100;
constexpr std::string_view kPrefillRole = "prefill";
constexpr std::string_view kDecodeRole = "decode";
constexpr std::array<std::string_view, 8> kTargetNames{
    "ttft_p50", "ttft_p90", "ttft_p95", "ttft_p99", "tpot_p50", "tpot_p90", "tpot_p95", "tpot_p99"};

}  // namespace

std::vector<LatencyTarget> targets_of(const LatencySpec& spec) {
  std::vector<LatencyTarget> targets;
  for (const auto& [quantile, time] :
       {std::pair(0.5, spec.p50), {0.9, spec.p90}, {0.95, spec.p95}, {0.99, spec.p99}}) {
    if (time) targets.push_back({quantile, *time});
  }
  return targets;
}

std::optional<Seconds> tail_of(const LatencySpec& spec) {
  const std::vector<LatencyTarget> targets = targets_of(spec);
  return targets.empty() ? std::nullopt : std::optional(targets.back().time);
}

std::optional<Seconds>* target_named(SloSpec& slo, std::string_view name) {
  const std::size_t mark = std::min(name.find('_'), name.size());
  const std::string_view what = name.substr(0, mark);
  const std::string_view quantile = mark == name.size() ? "p99" : name.substr(mark + 1);
  if (what != "ttft" && what != "tpot") return nullptr;
  LatencySpec& spec = what == "ttft" ? slo.ttft : slo.tpot;
  if (quantile == "p50") return &spec.p50;
  if (quantile == "p90") return &spec.p90;
  if (quantile == "p95") return &spec.p95;
  return quantile == "p99" ? &spec.p99 : nullptr;
}

Result<std::vector<std::uint32_t>> canary_shares(const std::vector<std::string>& stages) {
  std::vector<std::uint32_t> shares;
  for (const std::string& stage : stages) {
    double percent = 0;
    const char* const end = stage.data() + stage.size();
    const auto [rest, failed] = std::from_chars(stage.data(), end, percent);
    constexpr double kRounding = 1e-6;
    const double exact = percent * kPartsPerPercent;
    const double parts = std::round(exact);
    const bool whole =
        parts >= 1 && parts <= 100 * kPartsPerPercent && std::abs(exact - parts) < kRounding;
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

Status check_rollout(const RolloutSpec& rollout, const SloSpec& slo) {
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
  const bool by_slo = std::ranges::find(rollout.gates, RolloutGate::kSlo) != rollout.gates.end();
  if (by_slo && !tail_of(slo.ttft) && !tail_of(slo.tpot)) {
    return wrong("rollout has the gate slo, expected slo with ttft_p99 or tpot_p99");
  }
  return {};
}

Status check_scaling(const ScalingSpec& scaling) {
  constexpr std::uint32_t kReplicasMax = 1U << 16;
  const auto wrong = [&scaling](const std::string& what) {
    return input_error(scaling.where, "scaling: " + what);
  };
  if (scaling.max == 0 || scaling.max > kReplicasMax || scaling.max < scaling.min) {
    return wrong(fmt::format("max is {}, expected {} to {}{}", scaling.max,
                             std::max(scaling.min, 1U), kReplicasMax,
                             scaling.min > 1 ? ", as min is the least" : ""));
  }
  if (scaling.idle && scaling.min > 0) {
    return wrong(fmt::format("idle with min {}, expected min: 0: replicas never rest otherwise",
                             scaling.min));
  }
  if (scaling.idle && !(scaling.idle->value() > 0)) {
    return wrong(fmt::format("idle is {} s, expected more than 0", scaling.idle->value()));
  }
  const double quantile = scaling.quantile.value_or(0.5);
  if (!(quantile >= 0.5 && quantile < 1)) {
    return wrong(fmt::format("quantile is {}, expected 0.5 to below 1", quantile));
  }
  return {};
}

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

Status check_quality(const QualitySpec& quality, std::string_view name) {
  if (quality.where.line == 0) return {};
  if (quality.small == name && !name.empty()) {
    return input_error(quality.where, "quality: small is the service itself, expected another one");
  }
  if (Status named = check_name(quality.small, quality.where); !named) return named;
  const std::pair<std::string_view, double> shares[]{{"max_loss", quality.max_loss},
                                                     {"confidence", quality.confidence},
                                                     {"audit_rate", quality.audit_rate}};
  for (const auto& [key, share] : shares) {
    // The negation refuses NaN, too.
    if (share > 0 && share < 1) continue;
    return input_error(quality.where, fmt::format("quality: {} is {}, expected more than 0 and "
                                                  "less than 1",
                                                  key, share));
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

Status check_scaled(const ServiceSpec& service, std::span<const ServiceRole> roles) {
  if (!service.scaling || roles.empty()) return {};
  const ScalingSpec& scaling = *service.scaling;
  if (roles.size() > 1) {
    return input_error(scaling.where,
                       fmt::format("scaling with {} roles, expected one", roles.size()));
  }
  if (service.revisions.empty()) {
    return input_error(scaling.where,
                       "scaling without revisions, expected them: what other programs serve is not "
                       "known");
  }
  const std::uint32_t least = std::max(scaling.min, 1U);
  const std::uint32_t replicas = roles.front().replicas;
  if (replicas >= least && replicas <= scaling.max) return {};
  return input_error(scaling.where,
                     fmt::format("scaling: the role has {} replicas, with which the service "
                                 "begins, expected {} to {}",
                                 replicas, least, scaling.max));
}

/// Checks that the engine of a service hands caches over.
Status check_hands_over(const ServiceSpec& service) {
  const SourcePosition& where = service.transfer->where;
  if (service.revisions.empty()) {
    return input_error(where, "transfer without revisions, expected one with engine vllm");
  }
  const EngineSpec& engine = service.revisions.front().engine;
  if (engine.name != EngineName::kVllm) {
    return input_error(where, fmt::format("transfer with engine {}, expected vllm: caches of other "
                                          "engines are not handed from replica to replica",
                                          word_of(engine.name)));
  }
  const bool own = std::ranges::any_of(engine.arguments, [](const std::string& each) {
    return each.starts_with("--kv-transfer-config") || each.starts_with("--kv_transfer_config");
  });
  if (!own) return {};
  return input_error(engine.where,
                     "arguments have --kv-transfer-config beside transfer, from which it follows");
}

Status check_transfer(const ServiceSpec& service, std::span<const ServiceRole> roles) {
  if (!service.transfer) return {};
  const TransferSpec& transfer = *service.transfer;
  for (const auto& [key, value] :
       {std::pair("token", transfer.token.value()), std::pair("rate", transfer.rate.value())}) {
    if (value > 0) continue;
    return input_error(transfer.where,
                       fmt::format("transfer: {} is {}, expected more than 0", key, value));
  }
  if (Status fits = check_hands_over(service); !fits) return fits;
  for (const std::string_view name : {kPrefillRole, kDecodeRole}) {
    if (std::ranges::find(roles, name, &ServiceRole::name) != roles.end()) continue;
    return input_error(transfer.where, fmt::format("transfer without a role named {}, expected "
                                                   "roles named {} and {}",
                                                   name, kPrefillRole, kDecodeRole));
  }
  return {};
}

}  // namespace

Status check_service(const ServiceSpec& service, std::string_view name) {
  std::string wrong;
  const auto above_zero = [&wrong](std::string_view key, const std::optional<Seconds>& time) {
    if (!time || time->value() > 0) return;
    if (!wrong.empty()) wrong += "; ";
    wrong += fmt::format("{} is {} s, expected more than 0", key, time->value());
  };
  SloSpec slo = service.slo;
  for (const std::string_view target : kTargetNames) {
    above_zero(target, *target_named(slo, target));
  }
  above_zero("batch_deadline", service.slo.batch_deadline);
  if (!wrong.empty()) return input_error(service.slo.where, wrong);
  if (Status fits = check_tenants(service.tenants); !fits) return fits;
  if (Status fits = check_quality(service.quality, name); !fits) return fits;
  if (service.scaling) {
    if (Status fits = check_scaling(*service.scaling); !fits) return fits;
  }
  return check_rollout(service.rollout, service.slo);
}

EnginePart duty_in(const ServiceSpec& service, std::string_view role) {
  if (!service.transfer) return EnginePart::kWhole;
  if (role == kPrefillRole) return EnginePart::kPrompts;
  return role == kDecodeRole ? EnginePart::kAnswers : EnginePart::kWhole;
}

Status check_roles(const ServiceSpec& service, std::span<const ServiceRole> roles) {
  if (Status fits = check_scaled(service, roles); !fits) return fits;
  return check_transfer(service, roles);
}

}  // namespace orrery
