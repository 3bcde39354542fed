// scheduler/asked_policy.hpp - reads a policy that a user requests now.
//
// Beside what policy_named() and read_policy() refuse, a key without effect is refused: one without
// a value, version 0, and one that no rule of the policy reads (the table in the source lists the
// rules). Policies of records and logs are read without this check, so that what was once accepted
// replays. Pure.
#pragma once

#include <string_view>

#include "base/error.hpp"
#include "base/format/document.hpp"
#include "scheduler/policy.hpp"

namespace orrery {

/// Calls policy_named(), with the newest version where the text states none. Errors name the key.
[[nodiscard]] Result<Policy> asked_policy(std::string_view text);

/// Calls read_policy(), with the newest version where the document states none. Errors with
/// file:line:column.
[[nodiscard]] Result<Policy> asked_policy(const Document& document);

}  // namespace orrery
