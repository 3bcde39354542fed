// executor/services/routed_duty.hpp - what the replicas of a role compute, as routers are told.
//
// Pure. Cost: O(1).
#pragma once

#include <optional>
#include <string_view>

#include "serving/replica.hpp"
#include "serving/routing/route_table.hpp"
#include "workload/service_spec.hpp"

namespace orrery {

struct RoutedDuty {
  ReplicaDuty duty = ReplicaDuty::kBoth;
  std::optional<RoutedTransfer> transfer;  ///< of duty prefill: how its caches leave it
};

/// `transfer`: of the replica's service; none: all replicas compute prompts and answers.
[[nodiscard]] inline RoutedDuty routed_duty(const std::optional<TransferSpec>& transfer,
                                            std::string_view role) {
  switch (duty_in({.transfer = transfer}, role)) {
    case EnginePart::kWhole:
      break;
    case EnginePart::kPrompts:
      return {ReplicaDuty::kPrefill,
              RoutedTransfer{transfer->token.value(), transfer->rate.value()}};
    case EnginePart::kAnswers:
      return {ReplicaDuty::kDecode, std::nullopt};
  }
  return {};
}

}  // namespace orrery
