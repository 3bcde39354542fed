// apps/orrery-gateway/own_address.hpp - the address by which the other gateways of a cluster reach
// a socket that takes what comes to every address of this machine.
//
// Used once at the start: it may ask the resolver. A function.
#pragma once

#include <string>

namespace orrery {

/// Returns "HOST:PORT" for other machines. That is `bound` itself unless its host stands for every
/// address; then with the address from which this machine reaches `controller`, a "HOST:PORT".
/// Empty: there is no way to it.
[[nodiscard]] std::string own_address(const std::string& bound, const std::string& controller);

}  // namespace orrery
