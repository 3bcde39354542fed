// kv_events/zmq_socket.hpp - owns a context of ZeroMQ, or a socket of one, and ends it. Moves, does
// not copy. A socket is used by one thread at a time; its context ends after it.
#pragma once

#include <memory>

#include "base/error.hpp"

namespace orrery {

struct ZmqContextEnd {
  void operator()(void* context) const;
};
struct ZmqSocketEnd {
  void operator()(void* socket) const;
};

using ZmqContext = std::unique_ptr<void, ZmqContextEnd>;
using ZmqSocket = std::unique_ptr<void, ZmqSocketEnd>;

/// Returns a context with one thread. It asserts that the process has descriptors left.
[[nodiscard]] ZmqContext make_zmq_context();
/// Returns a socket that keeps nothing at its end; `type`: ZMQ_PUB or ZMQ_SUB. `messages_max`: kept
/// for a reader, or unread.
[[nodiscard]] Result<ZmqSocket> make_zmq_socket(const ZmqContext& context, int type,
                                                int messages_max);
/// Returns what the last call of the library says.
[[nodiscard]] std::string last_zmq_error();

}  // namespace orrery
