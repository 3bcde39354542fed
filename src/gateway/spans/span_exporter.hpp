// gateway/spans/span_exporter.hpp - sends the spans of requests to a receiver of OTLP/HTTP, such as
// an OpenTelemetry collector.
//
// The gateway's core owns one. On the loop's thread. Spans leave in batches, one call at a time;
// nothing waits for them. Invariant: at most kWaitingMax spans wait; what comes beyond it, and
// batches that the receiver does not take, are dropped and counted. Cost: O(1) a span, and the JSON
// of a batch once a second or for each kBatchMax spans.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/system/real_loop.hpp"
#include "gateway/spans/call_span.hpp"
#include "http/web_client.hpp"

namespace orrery {

/// Where spans go.
struct SpanReceiver {
  std::string endpoint;  ///< "HOST:PORT"
  std::string path = "/v1/traces";
};

/// Reads "http://HOST[:PORT][/BASE]", to which /v1/traces is appended; the port of OTLP/HTTP is
/// 4318. Error (kInput): another scheme, or no host.
[[nodiscard]] Result<SpanReceiver> read_span_receiver(std::string_view url);

class SpanExporter final : public WebCallEvents {
 public:
  static constexpr std::size_t kBatchMax = 256;
  static constexpr std::size_t kWaitingMax = 4096;

  /// `refused` is called with the reason when the receiver begins to take no spans.
  SpanExporter(RealLoop& loop, SpanReceiver receiver, std::string gateway,
               std::function<void(const std::string& why)> refused);
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;
  ~SpanExporter() override;

  void add(CallSpan span);
  [[nodiscard]] std::uint64_t sent() const { return counts_.sent; }
  [[nodiscard]] std::uint64_t dropped() const { return counts_.dropped; }

  void on_head(const WebResponseHead& head) override { running_.status = head.status; }
  void on_body(std::string_view) override {}
  void on_end() override;
  void on_error(const WebCallFailure& failure) override;

 private:
  void send_later();
  void send();
  void end_batch(const std::string& failure);

  RealLoop& loop_;
  std::unique_ptr<WebClient> client_;
  SpanReceiver receiver_;
  std::string gateway_;
  std::function<void(const std::string&)> refused_;
  bool refuses_ = false;
  std::deque<CallSpan> waiting_;
  struct Running {
    std::string body;       ///< of the call that runs
    std::size_t batch = 0;  ///< spans in it; 0: no call runs
    int status = 0;
  } running_;
  std::optional<TimerId> timer_;
  struct Counts {
    std::uint64_t sent = 0;
    std::uint64_t dropped = 0;
  } counts_;
  WebCall call_;
};

}  // namespace orrery
