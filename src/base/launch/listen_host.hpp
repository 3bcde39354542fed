// base/launch/listen_host.hpp - the address at which a program of this machine listens so that
// others reach it by a name.
//
// Functions of one call; looking up a name may block.
#pragma once

#include <cstdint>
#include <string>

#include "base/env.hpp"

namespace orrery {

/// Returns the first address of `host` in numbers, with brackets around an IPv6 one; "0.0.0.0", all
/// addresses, where none is known.
[[nodiscard]] std::string listen_host(const std::string& host);

/// Returns a port of `host` (as listen_host() writes it) that no program has, drawn below those
/// that the kernel gives to programs that ask for any. Another program may take it before it is
/// used. Error: none was free in some hundred tries.
[[nodiscard]] Result<std::uint16_t> free_port(const std::string& host, Entropy& entropy);

}  // namespace orrery
