// apps/orreryd/reachable_address.hpp - the address by which other machines reach a server that
// listens on every address.
//
// Used once at the start: it may ask the resolver. Functions.
#pragma once

#include <string>
#include <vector>

namespace orrery {

/// Whether it listens on all addresses of the machine: "0.0.0.0:P", "[::]:P", ":P".
[[nodiscard]] bool listens_everywhere(const std::string& address);

/// Returns "HOST:PORT" for other machines. That is the address itself unless it listens everywhere;
/// then with the first of `names`, else the machine's name where that resolves to an address others
/// can use, else the first such address of its interfaces, else the machine's name.
[[nodiscard]] std::string reachable_address(const std::string& address,
                                            const std::vector<std::string>& names);

}  // namespace orrery
