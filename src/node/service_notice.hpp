// node/service_notice.hpp - reports a daemon's state to a service manager, by the protocol of
// sd_notify: one datagram of "NAME=VALUE" lines to the socket that NOTIFY_SOCKET names.
#pragma once

#include <string>

namespace orrery {

/// `socket` is a path, or "@" and an abstract name; empty: there is no manager, nothing is sent. A
/// manager that does not listen is ignored: no daemon fails for that.
void notify_service(const std::string& socket, const std::string& lines);

}  // namespace orrery
