#include "api/grpc/open_calls.hpp"

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

constexpr std::size_t kLookAtLeast = 64;

}  // namespace

/// A call that may be ended from outside; what its method sends afterwards is dropped.
class OpenCalls::OpenCall final : public ForwardedCall {
 public:
  using ForwardedCall::ForwardedCall;

  void send(const google::protobuf::Message& message) override {
    if (!over_) inner().send(message);
  }
  void finish(const CallStatus& status) override {
    if (over_) return;
    over_ = true;
    inner().finish(status);
    // It holds what the method keeps of the call, which holds the call: this breaks the cycle.
    if (!ending_) gone_ = nullptr;
  }
  [[nodiscard]] bool wanted() const override { return !over_ && inner().wanted(); }
  void when_gone(std::function<void()> gone) override {
    gone_ = gone;
    inner().when_gone(std::move(gone));
  }
  /// Ends the call from outside its method and reports to the method that the client has gone.
  void end(const CallStatus& status) {
    if (over_) return;
    ending_ = true;
    finish(status);
    if (const auto gone = std::exchange(gone_, nullptr)) gone();
  }

 private:
  bool over_ = false;
  bool ending_ = false;  ///< from outside its method
  std::function<void()> gone_;
};

OpenCalls::OpenCalls(const Env& env, TokenBook& tokens)
    : env_(env), tokens_(tokens), look_at_size_(kLookAtLeast) {
  tokens_.on_change([this] { look(); });
  look_at_expiry();
}

OpenCalls::~OpenCalls() {
  tokens_.on_change({});
  if (timer_) env_.timers.cancel(*timer_);
}

MethodTable OpenCalls::watched(const MethodTable& methods) {
  MethodTable table;
  for (const auto& [name, method] : methods.all()) {
    Method wrapped = method;
    if (method.rule.effect == Effect::kRead || method.rule.lasting == Lasting::kYes) {
      wrapped.handle = [this, handle = method.handle](const google::protobuf::Message& request,
                                                      const std::shared_ptr<Call>& call) {
        // The token may have been revoked since the server looked.
        const auto holder = tokens_.holder(call->caller().credential);
        if (!holder) return call->finish(holder.error());
        auto open = std::make_shared<OpenCall>(call);
        add(open);
        handle(request, open);
      };
    }
    table.add(name, std::move(wrapped));
  }
  return table;
}

void OpenCalls::add(const std::shared_ptr<OpenCall>& call) {
  calls_.push_back(call);
  if (calls_.size() < look_at_size_) return;
  std::erase_if(calls_, [](const auto& each) { return each.expired(); });
  look_at_size_ = std::max(kLookAtLeast, 2 * calls_.size());
}

void OpenCalls::look() {
  // Ending a call may begin others.
  const std::vector<std::weak_ptr<OpenCall>> calls = calls_;
  for (const std::weak_ptr<OpenCall>& each : calls) {
    const std::shared_ptr<OpenCall> call = each.lock();
    if (call == nullptr || !call->wanted()) continue;
    if (const auto holder = tokens_.holder(call->caller().credential); !holder) {
      call->end(holder.error());
    }
  }
  look_at_expiry();
}

/// At the latest in a day: the wall clock may be set meanwhile.
void OpenCalls::look_at_expiry() {
  if (timer_) env_.timers.cancel(*timer_);
  const Duration longest = Duration::hours(24);
  const Instant next = tokens_.next_expiry();
  const Instant now = env_.clock.now_wall();
  const Duration wait = next == Instant::max() ? longest : std::min(longest, next - now);
  timer_ = env_.timers.call_after(wait, [this] {
    timer_.reset();
    look();
  });
}

}  // namespace orrery
