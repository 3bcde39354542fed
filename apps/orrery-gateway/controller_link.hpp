// apps/orrery-gateway/controller_link.hpp - keeps a gateway's table that of the controller, and the
// controller informed of what the gateway measures.
//
// Made by main() on the gateway's loop; `on_table` and `report` are called there. Calls are made on
// a thread beside it, one after the other: each waits up to a second for another table. While no
// controller answers, nothing changes and the calls go on; the gateway logs the loss once, and the
// return.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/grpc/client.hpp"
#include "base/env.hpp"
#include "base/log.hpp"
#include "base/threads/side_thread.hpp"
#include "serving/gateway_report.hpp"
#include "serving/routing/route_table.hpp"

namespace orrery {

class ControllerLink {
 public:
  struct Options {
    ClientOptions client;
    std::function<GatewayReport()> report;
    std::function<void(RouteTable)> on_table;
  };

  /// The environment outlives the link, and every callback it has posted.
  ControllerLink(const Env& env, const Log& log, Options options);
  ControllerLink(const ControllerLink&) = delete;
  ControllerLink& operator=(const ControllerLink&) = delete;
  ~ControllerLink();

  /// Makes the first call.
  void start();

 private:
  void call();
  void take(const Result<RouteTable>& answer);

  Env env_;
  Log log_;
  Options options_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  ///< used on the loop alone
  std::unique_ptr<Client> client_;                              ///< used on the thread alone
  enum class State : std::uint8_t { kUnknown, kReached, kLost } state_ = State::kUnknown;
  std::uint64_t epoch_ = 0;
  SideThread thread_;
};

}  // namespace orrery
