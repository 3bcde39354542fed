#include "api/services/service_methods.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "api/services/service_views.hpp"
#include "executor/services/service_book.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {
namespace {

using CallPtr = std::shared_ptr<Call>;

/// Whether a user may call services: who may submit jobs may, and clients.
bool may_call(Role role) { return role == Role::kClient || role >= Role::kUser; }

/// Returns what no other controller has drawn: gateways get another one with another controller.
std::string new_peer_key(Entropy& entropy) {
  std::string key;
  for (int i = 0; i < 4; ++i) key += fmt::format("{:016x}", entropy.draw());
  return key;
}

/// Answers gateways as soon as there is another table than the one they route by.
class GatewayCalls : public std::enable_shared_from_this<GatewayCalls> {
 public:
  GatewayCalls(Controller& controller, const Env& env, const TokenBook& tokens)
      : controller_(controller),
        env_(env),
        tokens_(tokens),
        book_(controller.state(), controller.host().clock(), new_peer_key(env.entropy)) {}

  void sync(const v1::SyncGatewayRequest& request, const CallPtr& call);
  /// Calls `then` once every gateway that was heard lately routes by the present table, or after
  /// two seconds.
  void when_routed(std::function<void()> then);
  [[nodiscard]] ServiceBook& book() { return book_; }

 private:
  struct Waiting {
    CallPtr call;
    std::uint64_t epoch = 0;
    TimerId timer;
  };

  void watch_events();
  [[nodiscard]] const RouteTable& table();
  void answer_changed();
  void tell_routed();
  void answer(const CallPtr& call, std::uint64_t epoch);
  void give_up(std::uint64_t number);

  Controller& controller_;
  Env env_;
  const TokenBook& tokens_;
  ServiceBook book_;
  /// Who waits until a table is in use.
  struct Routed {
    std::uint64_t epoch = 0;
    std::function<void()> then;
    TimerId timer;
  };

  std::map<std::uint64_t, Waiting> waiting_;
  std::map<std::uint64_t, Routed> routed_;
  std::uint64_t numbers_ = 0;
  bool watching_ = false;
  bool posted_ = false;  ///< answer_changed() is about to be called
};

/// Follows events while gateways wait, one change for all events of a turn of the loop.
void GatewayCalls::watch_events() {
  if (std::exchange(watching_, true)) return;
  auto number = std::make_shared<EventFeed::WatchNumber>();
  *number = controller_.events().watch(
      [weak = weak_from_this(), number, &events = controller_.events()](const TimedEvent& event) {
        const std::shared_ptr<GatewayCalls> self = weak.lock();
        if (self == nullptr) return events.unwatch(*number);
        if (!ServiceBook::concerns(event.what) || std::exchange(self->posted_, true)) return;
        self->env_.timers.call_after(Duration(), [weak] {
          if (const auto calls = weak.lock()) calls->answer_changed();
        });
      });
}

const RouteTable& GatewayCalls::table() {
  const Instant now = env_.clock.now_wall();
  std::vector<RoutedKey> keys;
  for (const UserToken& token : tokens_.all()) {
    if (token.expires <= now || !may_call(token.user.role)) continue;
    keys.push_back({token.user.credential, token.user.name, token.user.tenant});
  }
  std::ranges::sort(keys, {}, &RoutedKey::sha256);
  book_.set_keys(std::move(keys));
  return book_.table();
}

void GatewayCalls::sync(const v1::SyncGatewayRequest& request, const CallPtr& call) {
  constexpr std::uint32_t kWaitMaxMs = 30'000;
  if (request.gateway().empty()) {
    return call->finish({CallCode::kInvalidArgument, "gateway is empty, expected its name"});
  }
  watch_events();
  if (Status taken = book_.take(gateway_report(request)); !taken) {
    return call->finish(status_of(taken.error()));
  }
  for (CanaryVerdict& verdict : book_.judge_canaries()) {
    controller_.command(std::move(verdict), "", [](const Result<JobId>&) {});
  }
  for (ScaleOrder& order : book_.scale_orders()) {
    controller_.command(std::move(order), "", [](const Result<JobId>&) {});
  }
  tell_routed();
  const std::uint32_t wait = std::min(request.wait_ms(), kWaitMaxMs);
  if (table().epoch != request.epoch() || wait == 0) return answer(call, request.epoch());
  const std::uint64_t number = ++numbers_;
  Waiting& waiting = waiting_[number];
  waiting = {call, request.epoch(), {}};
  waiting.timer =
      env_.timers.call_after(Duration::milliseconds(wait), [weak = weak_from_this(), number] {
        if (const auto calls = weak.lock()) calls->give_up(number);
      });
  call->when_gone([weak = weak_from_this(), number] {
    const auto calls = weak.lock();
    if (calls == nullptr) return;
    const auto at = calls->waiting_.find(number);
    if (at == calls->waiting_.end()) return;
    calls->env_.timers.cancel(at->second.timer);
    calls->waiting_.erase(at);
  });
}

void GatewayCalls::give_up(std::uint64_t number) {
  const auto at = waiting_.find(number);
  if (at == waiting_.end()) return;
  const Waiting waiting = std::move(at->second);
  waiting_.erase(at);
  answer(waiting.call, waiting.epoch);
}

void GatewayCalls::answer_changed() {
  posted_ = false;
  const std::uint64_t epoch = table().epoch;
  std::vector<Waiting> changed;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    if (at->second.epoch == epoch) {
      ++at;
      continue;
    }
    changed.push_back(std::move(at->second));
    at = waiting_.erase(at);
  }
  for (const Waiting& each : changed) {
    env_.timers.cancel(each.timer);
    answer(each.call, each.epoch);
  }
}

void GatewayCalls::when_routed(std::function<void()> then) {
  constexpr Duration kPatience = Duration::seconds(2);
  answer_changed();
  const std::uint64_t number = ++numbers_;
  Routed& routed = routed_[number];
  routed = {table().epoch, std::move(then), {}};
  routed.timer = env_.timers.call_after(kPatience, [weak = weak_from_this(), number] {
    const auto calls = weak.lock();
    if (calls == nullptr || !calls->routed_.contains(number)) return;
    calls->routed_.extract(number).mapped().then();
  });
  tell_routed();
}

void GatewayCalls::tell_routed() {
  constexpr Duration kHeardLately = Duration::seconds(5);
  const std::optional<std::uint64_t> oldest = book_.routed_by_all(kHeardLately);
  for (auto at = routed_.begin(); at != routed_.end();) {
    if (oldest && *oldest < at->second.epoch) {
      ++at;
      continue;
    }
    env_.timers.cancel(at->second.timer);
    const std::function<void()> then = std::move(at->second.then);
    at = routed_.erase(at);
    then();
  }
}

/// Answers with the table if it is not that of `epoch`. The events that it follows from are durable
/// before it leaves.
void GatewayCalls::answer(const CallPtr& call, std::uint64_t epoch) {
  v1::SyncGatewayResponse response;
  response.set_epoch(table().epoch);
  if (response.epoch() != epoch) add_routes(table(), response);
  controller_.after_durable([call, response = std::move(response)] { call->reply(response); });
}

/// Adds the service to the job in an answer.
class JobWithService final : public ForwardedCall {
 public:
  JobWithService(std::shared_ptr<Call> inner, Controller& controller,
                 std::shared_ptr<GatewayCalls> calls)
      : ForwardedCall(std::move(inner)), controller_(controller), calls_(std::move(calls)) {}

  void send(const google::protobuf::Message& message) override {
    const auto* job = dynamic_cast<const v1::Job*>(&message);
    if (job == nullptr || job->kind() != "Serve" || job->id() >= controller_.state().jobs() ||
        !controller_.state().has(JobId::at(job->id()))) {
      return inner().send(message);
    }
    v1::Job shown = *job;
    const ServiceSummary summary = calls_->book().summary(JobId::at(job->id()));
    *shown.mutable_service() = service_view(summary, controller_.state());
    if (const Service* service = controller_.state().services().find(JobId::at(summary.id))) {
      const ServiceRevision& runs = service->update ? service->update->to : service->revision;
      shown.mutable_service()->set_spec(runs.texts.spec);
    }
    inner().send(shown);
  }

 private:
  Controller& controller_;
  std::shared_ptr<GatewayCalls> calls_;
};

/// Answers with a new key once gateways know it, so that its first use is not refused.
class KeyInUse final : public ForwardedCall {
 public:
  KeyInUse(std::shared_ptr<Call> inner, std::shared_ptr<GatewayCalls> calls)
      : ForwardedCall(inner), inner_(std::move(inner)), calls_(std::move(calls)) {}

  void finish(const CallStatus& status) override {
    if (status.code != CallCode::kOk) return inner().finish(status);
    calls_->when_routed([call = inner_, status] { call->finish(status); });
  }

 private:
  std::shared_ptr<Call> inner_;
  std::shared_ptr<GatewayCalls> calls_;
};

/// Makes calls of a method go through another call.
template <class Through>
void wrap(MethodTable& table, const std::string& name, Through through) {
  Method method = *table.find(name);
  method.handle = [handle = method.handle, through = std::move(through)](
                      const google::protobuf::Message& request, const CallPtr& call) {
    handle(request, through(call));
  };
  table.add(name, std::move(method));
}

}  // namespace

void add_service_methods(MethodTable& table, Controller& controller, const Env& env,
                         const TokenBook& tokens) {
  const auto calls = std::make_shared<GatewayCalls>(controller, env, tokens);
  table.add<v1::SyncGatewayRequest>("SyncGateway",
                                    {Role::kOperator, Effect::kRead, Scope::kCluster},
                                    [calls](const v1::SyncGatewayRequest& request,
                                            const CallPtr& call) { calls->sync(request, call); });
  wrap(table, "GetJob", [calls, &controller](const CallPtr& call) {
    return std::make_shared<JobWithService>(call, controller, calls);
  });
  wrap(table, "AddServiceKey",
       [calls](const CallPtr& call) { return std::make_shared<KeyInUse>(call, calls); });
}

}  // namespace orrery
