#include "kv_events/zmq_socket.hpp"

#include <zmq.h>

#include "base/assert.hpp"

namespace orrery {

void ZmqContextEnd::operator()(void* context) const { zmq_ctx_term(context); }

void ZmqSocketEnd::operator()(void* socket) const { zmq_close(socket); }

ZmqContext make_zmq_context() {
  ZmqContext context(zmq_ctx_new());
  ORRERY_ASSERT(context != nullptr, "a context takes no resource before its first socket");
  return context;
}

Result<ZmqSocket> make_zmq_socket(const ZmqContext& context, int type, int messages_max) {
  ZmqSocket socket(zmq_socket(context.get(), type));
  if (!socket) return environment_error("no socket of ZeroMQ: " + last_zmq_error());
  const int none = 0;
  const int v6 = 1;
  zmq_setsockopt(socket.get(), ZMQ_LINGER, &none, sizeof none);
  zmq_setsockopt(socket.get(), ZMQ_IPV6, &v6, sizeof v6);
  zmq_setsockopt(socket.get(), ZMQ_SNDHWM, &messages_max, sizeof messages_max);
  zmq_setsockopt(socket.get(), ZMQ_RCVHWM, &messages_max, sizeof messages_max);
  return socket;
}

std::string last_zmq_error() { return zmq_strerror(zmq_errno()); }

}  // namespace orrery
