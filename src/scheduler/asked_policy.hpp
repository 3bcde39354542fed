// scheduler/asked_policy.hpp - a policy as somebody asks for it now.
//
// Beside what policy_named() and read_policy() refuse, a key that says nothing is refused: one
// without a value, version 0, and one that no rule of the policy reads (the table in the source
// says which rules do). Policies of records and logs are read without this, so that what was once
// taken replays. Pure.
#pragma once

#include <string_view>

#include "base/document.hpp"
#include "base/error.hpp"
#include "scheduler/policy.hpp"

namespace orrery {

/// policy_named() of the newest version where the text states none. Errors name the key.
[[nodiscard]] Result<Policy> asked_policy(std::string_view text);

/// read_policy(), likewise. Errors with file:line:column.
[[nodiscard]] Result<Policy> asked_policy(const Document& document);

}  // namespace orrery
