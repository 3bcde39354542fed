// gateway/picker/picker.hpp - an endpoint picker of the Gateway API Inference Extension: Envoy asks
// it by external processing (gRPC) which replica a request goes to, and sends the request itself.
//
// A gateway owns one beside its HTTP server: both choose by the same router, table and keys, count
// in the same figures and keep their decisions in one history. All calls are on the loop's thread;
// gRPC's own threads decode messages and post them to it. Each HTTP request at Envoy is one stream
// (gateway/picker/picker_call.hpp). gRPC's health check knows the services "liveness" (the loop
// answers), "readiness", "envoy.service.ext_proc.v3.ExternalProcessor" and "" (there is a table,
// and the picker does not stop).
// Invariant: once a stream has ended, nothing of its request is charged. Cost: two posts a message.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/env.hpp"
#include "base/error.hpp"
#include "base/system/real_loop.hpp"
#include "gateway/gateway_core.hpp"

namespace orrery {

class Picker {
 public:
  /// Serves at options.picker.address of the core's options; core and loop outlive it. Error: it
  /// cannot listen there.
  [[nodiscard]] static Result<std::unique_ptr<Picker>> start(RealLoop& loop, GatewayCore& core);
  /// Breaks the streams that are open. Waits for gRPC's threads.
  virtual ~Picker() = default;

  /// "HOST:PORT" with the port chosen.
  [[nodiscard]] virtual const std::string& address() const = 0;
  /// Requests that have come and not ended.
  [[nodiscard]] virtual std::size_t calls() const = 0;
  /// Lets waiting requests try again, where there may be room for them.
  virtual void look() = 0;
  /// Refuses new streams from now on.
  virtual void refuse() = 0;
  /// Refuses them; `stopped` runs once no stream is open, in a later round.
  virtual void stop(Callback stopped) = 0;
};

}  // namespace orrery
