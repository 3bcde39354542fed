#include "apps/orrery-gateway/controller_link.hpp"

#include <utility>

#include "api/services/service_views.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {
namespace {

constexpr std::uint32_t kWaitMs = 1000;
constexpr Duration kPause = Duration::seconds(1);  ///< after a call that failed

}  // namespace

ControllerLink::ControllerLink(const Env& env, const Log& log, Options options)
    : env_(env),
      log_(log),
      options_(std::move(options)),
      client_(std::make_unique<Client>(options_.client)) {}

ControllerLink::~ControllerLink() { *alive_ = false; }

void ControllerLink::start() { call(); }

void ControllerLink::call() {
  GatewayReport report = options_.report();
  report.epoch = epoch_;
  v1::SyncGatewayRequest request = sync_request(report);
  request.set_wait_ms(kWaitMs);
  thread_.run([this, alive = alive_, request = std::move(request), inbox = &env_.inbox] {
    const auto answer = client_->call<v1::SyncGatewayResponse>("SyncGateway", request);
    Result<RouteTable> table =
        answer ? Result<RouteTable>(routes_of(*answer)) : tl::unexpected(answer.error());
    inbox->post([this, alive, table = std::move(table)] {
      if (*alive) take(table);
    });
  });
}

void ControllerLink::take(const Result<RouteTable>& answer) {
  if (!answer) {
    if (std::exchange(state_, State::kLost) != State::kLost) {
      log_.warning(env_.clock.now_wall(), "no controller gives a table, the last one stays",
                   {{"why", answer.error().text()}});
    }
    env_.timers.call_after(kPause, [this, alive = alive_] {
      if (*alive) call();
    });
    return;
  }
  if (std::exchange(state_, State::kReached) != State::kReached) {
    log_.info(env_.clock.now_wall(), "a controller answers", {});
  }
  if (answer->epoch != epoch_) {
    epoch_ = answer->epoch;
    log_.info(env_.clock.now_wall(), "table",
              {{"epoch", epoch_}, {"services", answer->services.size()}});
    options_.on_table(*answer);
  }
  call();
}

}  // namespace orrery
