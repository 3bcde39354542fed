// twin/gateways/modelled_gateways.hpp - the gateways of a service in virtual time, each
// with its own router and queue, of which every request comes to one that is drawn.
//
// Owned by a service run; borrows the trace. A gateway knows its own charges at once and those of
// the others as tell() left them, as live ones do (gateway/peers). Invariant: with one gateway, a
// run is that of this gateway. Cost: that of the gateways; a telling O(gateways^2 * replicas).
#pragma once

#include <vector>

#include "twin/gateways/modelled_gateway.hpp"

namespace orrery {

class ModelledGateways {
 public:
  ModelledGateways(const RequestTrace& trace, const ServiceSetup& setup);

  void set_replicas(const std::vector<ReadyReplica>& ready);
  /// Every gateway gets to know what the others have charged; false: nothing has changed.
  bool tell();

  // What follows is done by the gateway of the request, as modelled_gateway.hpp says.
  [[nodiscard]] ModelledGateway::Dispatch offer(std::uint32_t request,
                                                ModelledGateway::Coming coming, Instant now) {
    return of(request).offer(request, coming, now);
  }
  [[nodiscard]] bool expire(std::uint32_t request) { return of(request).expire(request); }
  void send_on(std::uint32_t request, std::uint32_t cached_tokens, Instant now) {
    of(request).send_on(request, cached_tokens, now);
  }
  void keep_together(std::uint32_t request, Instant now) {
    of(request).keep_together(request, now);
  }
  void begin(std::uint32_t request, std::uint32_t cached_tokens, Instant now) {
    of(request).begin(request, cached_tokens, now);
  }
  void end(const ModelledGateway::Ended& ended, Instant now) { of(ended.request).end(ended, now); }
  void lose(std::uint32_t request, Instant now) { of(request).lose(request, now); }

  /// The next request that waits at any of them and that a replica can take now.
  [[nodiscard]] std::optional<ModelledGateway::Sent> next(Instant now);
  [[nodiscard]] std::size_t waiting() const;
  [[nodiscard]] std::size_t in_flight() const;

 private:
  [[nodiscard]] ModelledGateway& of(std::uint32_t request) {
    return gateways_[gateway_of_.empty() ? 0 : gateway_of_[request]];
  }

  std::vector<ModelledGateway> gateways_;
  std::vector<std::uint32_t> gateway_of_;  ///< by request; empty: there is one
  std::uint64_t told_ = 0;                 ///< sum of changes() when they told last
};

}  // namespace orrery
