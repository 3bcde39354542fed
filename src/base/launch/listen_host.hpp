// base/launch/listen_host.hpp - the address at which a program of this machine listens so that
// others reach it by a name.
//
// Functions of one call; looking up a name may block.
#pragma once

#include <string>

namespace orrery {

/// Returns the first address of `host` in numbers, with brackets around an IPv6 one; "0.0.0.0", all
/// addresses, where none is known.
[[nodiscard]] std::string listen_host(const std::string& host);

}  // namespace orrery
