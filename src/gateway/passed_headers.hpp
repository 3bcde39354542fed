// gateway/passed_headers.hpp - which header fields go through a gateway.
//
// Functions over values. Not passed on: fields of one connection (RFC 9110, 7.6.1), those that the
// next message gets anew, and, upstream, what is between the client and the gateway alone.
#pragma once

#include <vector>

#include "http/web_headers.hpp"

namespace orrery {

/// The fields for the replica, with the request's id. Views into both.
[[nodiscard]] std::vector<WebHeader> headers_upstream(const WebHeaders& received,
                                                      std::string_view request_id);
/// The fields for the client, with the request's id. Views into both.
[[nodiscard]] std::vector<WebHeader> headers_downstream(const WebHeaders& received,
                                                        std::string_view request_id);

}  // namespace orrery
