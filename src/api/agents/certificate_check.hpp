// api/agents/certificate_check.hpp - why the certificate that a server shows is not accepted.
//
// For a client whose connection failed: gRPC reports the failure without its cause. Makes a
// connection of its own, which ends with the handshake. Any thread; waits for the handshake.
#pragma once

#include <string>

namespace orrery {

/// Returns one clause for a person, without the address: "has expired; ...". Empty: the certificate
/// is good, or no cause was found. `authority`: PEM.
[[nodiscard]] std::string certificate_complaint(const std::string& address,
                                                const std::string& authority);

}  // namespace orrery
