// verbs/nodes/power_answer.hpp - the power domains of a running cluster and their caps.
//
// Functions of one call of a verb; powers are shown in kW, to 0.1 kW.
#pragma once

#include <string>

#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/live_answer.hpp"

namespace orrery {

enum class Racks { kCapped, kAll };  ///< which racks are shown: those with a cap, or all

/// Returns the domains as a table, or one line where there are none.
[[nodiscard]] std::string power_text(const v1::ListPowerDomainsResponse& domains, Racks racks);

/// Errors: those of the controller.
[[nodiscard]] Result<LiveAnswer> answer_power(const LiveCall& call, Racks racks);

/// A cap as typed.
struct PowerCap {
  std::string name;   ///< of the domain
  std::string power;  ///< "400 kW", or "none"
};

/// Returns the request, without its request id; watts, absent for "none". Error (kInput): a power
/// that is none, or not above 0.
[[nodiscard]] Result<v1::SetPowerCapRequest> cap_request(const PowerCap& cap);

/// Returns what a new cap means, with a warning where the idle nodes alone draw more.
[[nodiscard]] LiveAnswer cap_answer(v1::PowerDomain domain);

/// Sets or removes a cap. Errors: those of cap_request() and of the controller.
[[nodiscard]] Result<LiveAnswer> set_power_cap(const LiveCall& call, const PowerCap& cap);

}  // namespace orrery
