// control/settings.hpp - reads the texts that an operator may change while jobs run.
//
// Called by Core to check a text, by State to apply one from a log, and by snapshots. Pure. Cost:
// that of parsing YAML.
#pragma once

#include <string>

#include "base/error.hpp"
#include "scheduler/policy.hpp"
#include "scheduler/tenants/tenant_tree.hpp"

namespace orrery {

/// Reads a Tenants file for a fleet. Errors: "tenants:line:column", of its form or its guarantees.
[[nodiscard]] Result<TenantTree> tenants_from(const std::string& yaml, const Topology& topology);

/// Reads a Policy file. Errors: "policy:line:column".
[[nodiscard]] Result<Policy> policy_from(const std::string& yaml);

}  // namespace orrery
