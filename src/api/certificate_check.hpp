// api/certificate_check.hpp - why the certificate that a server shows is not accepted.
//
// For a client whose connection failed: gRPC says that it failed, not why. One connection of its
// own, which ends with the handshake. Any thread; waits for the handshake.
#pragma once

#include <string>

namespace orrery {

/// One clause for a person, without the address: "has expired; ...". Empty: the certificate is
/// good, or nothing can be said. `authority`: PEM.
[[nodiscard]] std::string certificate_complaint(const std::string& address,
                                                const std::string& authority);

}  // namespace orrery
