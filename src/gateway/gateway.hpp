// gateway/gateway.hpp - an OpenAI-compatible gateway: HTTP requests to models in, each sent to a
// replica of its service by a route table.
//
// main() starts one with its RealEnv and gives it tables (set_table) from wherever they come; the
// RealEnv outlives it. All on the loop's thread. Bodies and answers pass through unparsed but for
// what gateway/request_facts.hpp and gateway/stream/event_scanner.hpp name.
//
//   1. A request is tried on further replicas until the first byte of an answer's body has arrived,
//      as long as its client waits. After that byte, a failure ends the answer with an error.
//   2. A request for which its tenant's limit has no room is refused (429, rate_limit_exceeded).
//      Otherwise a request to a service without a replica waits up to GatewayOptions::wait, a
//      request to full replicas in the service's queue, those of class batch longer
//      (serving/admission has the order); beyond the queue one is shed (429,
//      overloaded), and so are requests that would be answered far too late.
//   3. A client that leaves cancels its call, which closes the connection to the replica.
//   4. Calls to a replica that a new table lacks finish.
//   5. Each accepted request ends as one of completed, cancelled, shed and failed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/log.hpp"
#include "base/system/real_env.hpp"
#include "gateway/prompt/prompt_tokenizer.hpp"
#include "http/web_server.hpp"
#include "serving/gateway_report.hpp"
#include "serving/routing/route_table.hpp"
#include "serving/routing/router.hpp"

namespace orrery {

/// The endpoint picker for Envoy (gateway/picker/picker.hpp).
struct PickerOptions {
  std::string address;  ///< "HOST:PORT"; empty: there is none
  /// Clients need no key: they may call the services of this tenant and those below. None: as at
  /// the gateway itself.
  std::optional<std::string> tenant;
  std::size_t body_bytes_max = std::size_t{16} << 20;
  std::size_t held_bytes_max = std::size_t{512} << 20;  ///< of all bodies that are collected
  std::size_t streams_max = 10'000;
};

struct GatewayOptions {
  WebServerOptions server;
  std::string name = "gateway";
  std::string url;                        ///< for the report; empty: made of the server's address
  Duration wait = Duration::seconds(10);  ///< for a replica of a service that has none
  Duration queue_wait = Duration::seconds(60);  ///< for one of a service whose replicas are full
  /// Interactive requests that would come later than this many times what their service is held to
  /// are refused more and more often, instead of queued; 0: none is.
  double shed_beyond = 2;
  RouterOptions router;
  /// "HOST:PORT" for the datagrams of other gateways; empty: any port of the server's host.
  std::string peer_address;
  PickerOptions picker;
  /// By the models whose prompts they read.
  std::map<std::string, std::shared_ptr<const PromptTokenizer>> tokenizers = {};
  std::size_t explained_max = 4096;  ///< newest routing decisions kept for /explain
  std::string otlp;  ///< URL of the receiver of spans (OTLP over HTTP); empty: none are sent
};

class Gateway {
 public:
  /// Errors: the address is malformed or taken, or otlp is no URL of a receiver.
  [[nodiscard]] static Result<std::unique_ptr<Gateway>> start(RealEnv& env, const Log& log,
                                                              const GatewayOptions& options);
  virtual ~Gateway() = default;

  /// "HOST:PORT" with the port chosen.
  [[nodiscard]] virtual const std::string& address() const = 0;
  /// Where its endpoint picker listens; empty: it has none.
  [[nodiscard]] virtual std::string picker_address() const = 0;
  /// Routes new calls by this table, one of an older epoch too. Waiting calls are looked at again.
  virtual void set_table(RouteTable table) = 0;
  [[nodiscard]] virtual const RouteTable& table() const = 0;
  [[nodiscard]] virtual GatewayReport report() const = 0;
  /// Requests that have come and not ended.
  [[nodiscard]] virtual std::size_t calls() const = 0;
  /// Accepts no more connections, lets running calls end; `stopped` runs when they have.
  virtual void stop(Callback stopped) = 0;
};

}  // namespace orrery
