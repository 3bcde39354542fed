#include "gateway/spans/span_exporter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace orrery {
namespace {

constexpr Duration kPeriod = Duration::seconds(1);

}  // namespace

Result<SpanReceiver> read_span_receiver(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  constexpr std::string_view kPort = ":4318";
  std::string_view rest = url.starts_with(kScheme) ? url.substr(kScheme.size()) : "";
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  SpanReceiver receiver{.endpoint = std::string(rest.substr(0, slash))};
  if (receiver.endpoint.empty() || receiver.endpoint.starts_with(':')) {
    return input_error(
        {}, fmt::format("--otlp: \"{}\", expected http://HOST:PORT of a receiver of OTLP "
                        "over HTTP",
                        url));
  }
  const std::size_t bracket = receiver.endpoint.rfind(']');
  const std::size_t colon = receiver.endpoint.rfind(':');
  const bool has_port =
      colon != std::string::npos && (bracket == std::string::npos || colon > bracket);
  if (!has_port) receiver.endpoint += kPort;
  std::string_view base = rest.substr(slash);
  while (base.ends_with('/')) base.remove_suffix(1);
  receiver.path = std::string(base) + receiver.path;
  return receiver;
}

SpanExporter::SpanExporter(RealLoop& loop, SpanReceiver receiver, std::string gateway,
                           std::function<void(const std::string& why)> refused)
    : loop_(loop),
      client_(WebClient::make(loop, {.silence_max = Duration::seconds(10)})),
      receiver_(std::move(receiver)),
      gateway_(std::move(gateway)),
      refused_(std::move(refused)) {}

SpanExporter::~SpanExporter() {
  if (timer_) loop_.cancel(*timer_);
}

void SpanExporter::add(CallSpan span) {
  if (waiting_.size() >= kWaitingMax) {
    ++counts_.dropped;
    return;
  }
  waiting_.push_back(std::move(span));
  if (running_.batch == 0 && waiting_.size() >= kBatchMax) {
    send();
  } else {
    send_later();
  }
}

void SpanExporter::send_later() {
  if (timer_ || running_.batch > 0 || waiting_.empty()) return;
  timer_ = loop_.call_after(kPeriod, [this] {
    timer_.reset();
    send();
  });
}

void SpanExporter::send() {
  if (running_.batch > 0 || waiting_.empty()) return;
  running_.batch = std::min(waiting_.size(), kBatchMax);
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(running_.batch);
  const std::vector<CallSpan> spans(std::make_move_iterator(waiting_.begin()),
                                    std::make_move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
  running_.body = otlp_json(spans, gateway_);
  running_.status = 0;
  constexpr std::array<WebHeader, 1> kHeaders{{{"Content-Type", "application/json"}}};
  call_ = client_->start(
      receiver_.endpoint,
      {.method = "POST", .target = receiver_.path, .headers = kHeaders, .body = running_.body},
      *this);
}

void SpanExporter::on_end() {
  const bool taken = running_.status >= 200 && running_.status < 300;
  end_batch(taken ? "" : fmt::format("HTTP status {}", running_.status));
}

void SpanExporter::on_error(const WebCallFailure& failure) { end_batch(failure.error.message); }

void SpanExporter::end_batch(const std::string& failure) {
  (failure.empty() ? counts_.sent : counts_.dropped) += running_.batch;
  running_.batch = 0;
  const bool first = !failure.empty() && !refuses_;
  refuses_ = !failure.empty();
  if (first) refused_(failure);
  // A receiver that is away is not asked at the pace of the requests.
  if (failure.empty() && waiting_.size() >= kBatchMax) {
    send();
  } else {
    send_later();
  }
}

}  // namespace orrery
