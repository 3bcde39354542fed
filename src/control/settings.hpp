// control/settings.hpp - the texts an operator may change while jobs run, read.
//
// Called by Core to judge a text, by State to take up one that a log holds, by a snapshot. Pure.
// Cost: that of parsing YAML.
#pragma once

#include <string>

#include "base/error.hpp"
#include "scheduler/policy.hpp"
#include "scheduler/tenant_tree.hpp"

namespace orrery {

/// Of a Tenants file on a fleet. Errors: "tenants:line:column", of its form or of what it promises.
[[nodiscard]] Result<TenantTree> tenants_from(const std::string& yaml, const Topology& topology);

/// Of a Policy file. Errors: "policy:line:column".
[[nodiscard]] Result<Policy> policy_from(const std::string& yaml);

}  // namespace orrery
