#include "http/web_client.hpp"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "http/connection/web_upstream.hpp"
#include "http/name_lookup.hpp"
#include "http/status_line.hpp"

namespace orrery {
namespace {

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};

Duration sweep_interval(const WebClientOptions& options) {
  const Duration shortest =
      std::min({options.connect_max, options.silence_max, options.idle_max, Duration::seconds(2)});
  return Duration::nanoseconds(std::max<std::int64_t>(shortest.count_ns() / 2, 1'000'000));
}

class SocketWebClient final : public WebClient, public WebUpstreamOwner {
 public:
  SocketWebClient(RealLoop& loop, const WebClientOptions& options)
      : shared_{loop, options, {}, std::make_unique_for_overwrite<char[]>(kSocketReadBytes), {}},
        names_(loop) {
    sweep();
  }
  SocketWebClient(const SocketWebClient&) = delete;
  SocketWebClient& operator=(const SocketWebClient&) = delete;
  ~SocketWebClient() override { shared_.loop.cancel(sweep_); }

  WebCall start(std::string_view endpoint, const WebCallRequest& request,
                WebCallEvents& events) override {
    WebUpstreamCall call{
        .events = &events,
        .body = request.body,
        .answer_body = request.method == "HEAD" ? AnswerBody::kNone : AnswerBody::kAsFramed};
    write_head(call.head, endpoint, request);
    WebPool& pool = pool_of(endpoint);
    if (pool.idle.empty()) return WebCall(connect_for(pool, std::move(call)));
    WebUpstream& upstream = *pool.idle.back();
    pool.idle.pop_back();
    upstream.carry(std::move(call));
    return WebCall(upstream);
  }

  void forget(std::string_view endpoint) override {
    const auto found = pools_.find(endpoint);
    if (found == pools_.end()) return;
    WebPool& pool = found->second;
    pool.forgotten = true;
    while (!pool.idle.empty()) pool.idle.back()->drop_idle();
    if (pool.upstreams == 0) pools_.erase(found);
  }

  void bury(std::uint64_t upstream) override {
    dead_.push_back(upstream);
    if (dead_.size() > 1) return;
    post([this] { bury_dead(); });
  }

  void call_again(WebPool& pool, WebUpstreamCall call) override {
    WebCall* const handle = call.handle;
    WebUpstream& upstream = connect_for(pool, std::move(call));
    if (handle != nullptr) handle->rebind(upstream);
  }

  void post_failure(std::uint64_t upstream, std::string why) override {
    post([this, upstream, why = std::move(why)] {
      if (WebUpstream* found = find(upstream)) {
        found->fail_late(WebCallFailure::Kind::kConnect, why);
      }
    });
  }

 private:
  static void write_head(std::string& head, std::string_view endpoint,
                         const WebCallRequest& request) {
    head.reserve(512);
    head.append(request.method).append(" ").append(request.target).append(" HTTP/1.1\r\n");
    append_header(head, {"Host", endpoint});
    for (const WebHeader& each : request.headers) append_header(head, each);
    if (!request.body.empty() || request.method == "POST" || request.method == "PUT") {
      append_content_length(head, request.body.size());
    }
    head.append("\r\n");
  }

  WebPool& pool_of(std::string_view endpoint) {
    auto found = pools_.find(endpoint);
    if (found == pools_.end()) {
      found = pools_.try_emplace(std::string(endpoint)).first;
      found->second.endpoint = endpoint;
      if (Result<SocketAddress> numeric = SocketAddress::parse("tcp:" + found->first); numeric) {
        found->second.address = *numeric;
      }
    }
    found->second.forgotten = false;
    return found->second;
  }

  WebUpstream& connect_for(WebPool& pool, WebUpstreamCall call) {
    const std::uint64_t id = next_id_++;
    auto made = std::make_unique<WebUpstream>(shared_, *this, pool, id);
    WebUpstream& upstream = *made;
    upstreams_.emplace(id, std::move(made));
    upstream.carry(std::move(call));
    if (pool.address) {
      upstream.connect();
    } else {
      resolve(pool, id);
    }
    return upstream;
  }

  void resolve(WebPool& pool, std::uint64_t upstream) {
    pool.resolving.push_back(upstream);
    if (pool.resolving.size() > 1) return;
    names_.find(pool.endpoint, [this, endpoint = pool.endpoint](Result<SocketAddress> found) {
      const auto at = pools_.find(endpoint);
      if (at == pools_.end()) return;
      if (found) at->second.address = *found;
      for (const std::uint64_t id : std::exchange(at->second.resolving, {})) {
        WebUpstream* const waiting = find(id);
        if (waiting == nullptr) continue;
        if (at->second.address) {
          waiting->connect();
        } else {
          waiting->fail_late(WebCallFailure::Kind::kAddress, found.error().message);
        }
      }
    });
  }

  WebUpstream* find(std::uint64_t id) {
    const auto found = upstreams_.find(id);
    return found == upstreams_.end() ? nullptr : found->second.get();
  }

  void bury_dead() {
    for (const std::uint64_t id : std::exchange(dead_, {})) {
      const auto found = upstreams_.find(id);
      WebPool& pool = found->second->pool();
      upstreams_.erase(found);
      if (--pool.upstreams == 0 && pool.forgotten) pools_.erase(std::string(pool.endpoint));
    }
  }

  void post(Callback callback) {
    shared_.loop.post([callback = std::move(callback), alive = std::weak_ptr<const bool>(alive_)] {
      if (!alive.expired()) callback();
    });
  }

  void sweep() {
    const Instant now = shared_.clock.now_monotonic();
    due_.clear();
    for (const auto& [id, upstream] : upstreams_) due_.push_back(id);
    for (const std::uint64_t id : due_) {
      // What is told may start calls, so the table may change meanwhile.
      if (WebUpstream* found = find(id)) found->check_time(now);
    }
    sweep_ = shared_.loop.call_after(sweep_interval(shared_.options), [this] { sweep(); });
  }

  WebClientShared shared_;
  NameLookup names_;
  TimerId sweep_;
  std::uint64_t next_id_ = 1;
  std::unordered_map<std::string, WebPool, TextHash, std::equal_to<>> pools_;
  std::unordered_map<std::uint64_t, std::unique_ptr<WebUpstream>> upstreams_;
  std::vector<std::uint64_t> dead_;
  std::vector<std::uint64_t> due_;  ///< of the sweep in progress
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace

WebCall::WebCall(WebUpstream& upstream) { rebind(upstream); }

WebCall::WebCall(WebCall&& other) noexcept : upstream_(std::exchange(other.upstream_, nullptr)) {
  if (upstream_ != nullptr) upstream_->adopt(*this);
}

WebCall& WebCall::operator=(WebCall&& other) noexcept {
  if (this == &other) return *this;
  cancel();
  upstream_ = std::exchange(other.upstream_, nullptr);
  if (upstream_ != nullptr) upstream_->adopt(*this);
  return *this;
}

void WebCall::rebind(WebUpstream& upstream) {
  upstream_ = &upstream;
  upstream.adopt(*this);
}

void WebCall::cancel() {
  if (upstream_ != nullptr) upstream_->cancel();
}

void WebCall::pause() {
  if (upstream_ != nullptr) upstream_->pause();
}

void WebCall::resume() {
  if (upstream_ != nullptr) upstream_->resume();
}

std::unique_ptr<WebClient> WebClient::make(RealLoop& loop, const WebClientOptions& options) {
  return std::make_unique<SocketWebClient>(loop, options);
}

}  // namespace orrery
