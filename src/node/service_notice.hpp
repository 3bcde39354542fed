// node/service_notice.hpp - tells a service manager how a daemon is, by the protocol of sd_notify:
// one datagram of "NAME=VALUE" lines to the socket that NOTIFY_SOCKET names.
#pragma once

#include <string>

namespace orrery {

/// `socket` is a path, or "@" and an abstract name; empty: there is no manager, nothing is told. A
/// manager that does not listen is told nothing, either: no daemon fails for that.
void notify_service(const std::string& socket, const std::string& lines);

}  // namespace orrery
