// executor/managers/hold_token.hpp - the secret by which an agent in a hold shows that it is of it.
//
// Made from a key of the controller, so that nothing is stored for a hold. It is valid as long as
// the hold is known. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "executor/holds/hold.hpp"

namespace orrery {

/// Returns the token of a hold: "KEY.SECRET".
[[nodiscard]] std::string hold_token(std::string_view key, const HoldKey& hold);

/// Returns the hold of a token; none: it is no token of a hold, or was not made with this key.
[[nodiscard]] std::optional<HoldKey> hold_of_token(std::string_view key, std::string_view token);

}  // namespace orrery
