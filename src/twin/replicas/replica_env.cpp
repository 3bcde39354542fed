#include "twin/replicas/replica_env.hpp"

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

constexpr std::uint64_t kUptimeMax = 1'000'000;  ///< s, of a machine when the world begins
constexpr std::uint64_t kSkewMax = 20;           ///< s, of the time of day
constexpr Duration kBegin = Duration::seconds(1'000'000);

Duration draw_seconds(Rng& random, std::uint64_t most) {
  return Duration::seconds(static_cast<std::int64_t>(random.below(most)));
}

tl::unexpected<Error> no_network() { return environment_error("this machine has no network"); }

}  // namespace

ReplicaEnv::ReplicaEnv(ProtocolContext& context, Storage& files, Rng random)
    : context_(context),
      files_(files),
      random_(random),
      wall_(kBegin + draw_seconds(random_, kSkewMax)),
      monotonic_(draw_seconds(random_, kUptimeMax)) {}

Instant ReplicaEnv::world_now() const { return std::max(context_.now(), busy_until_); }

void ReplicaEnv::spend(Duration time) { busy_until_ = world_now() + time; }

void ReplicaEnv::later(Duration delay, Callback callback) {
  context_.time().after(std::max(delay, Duration()),
                        [this, lives = lives_, callback = std::move(callback)]() mutable {
                          if (*lives) arrive(std::move(callback));
                        });
}

void ReplicaEnv::arrive(Callback callback) {
  arrived_.push_back(std::move(callback));
  run_arrived();
}

void ReplicaEnv::resume() {
  paused_ = false;
  run_arrived();
}

void ReplicaEnv::run_arrived() {
  if (runs_) return;
  runs_ = true;
  while (*lives_ && !paused_ && !arrived_.empty() && busy_until_ <= context_.now()) {
    const Callback callback = std::move(arrived_.front());
    arrived_.pop_front();
    callback();
  }
  runs_ = false;
  if (*lives_ && busy_until_ > context_.now()) {
    context_.time().after(busy_until_ - context_.now(), [this, lives = lives_] {
      if (*lives) run_arrived();
    });
  }
}

TimerId ReplicaEnv::call_at(Instant monotonic, Callback callback) {
  const TimerId timer{monotonic, next_++};
  timers_.emplace(timer, std::move(callback));
  later(monotonic - (context_.now() + monotonic_), [this, timer] { fire(timer); });
  return timer;
}

TimerId ReplicaEnv::call_after(Duration delay, Callback callback) {
  return call_at(now_monotonic() + delay, std::move(callback));
}

void ReplicaEnv::fire(const TimerId& timer) {
  auto due = timers_.extract(timer);
  if (!due.empty()) due.mapped()();
}

void ReplicaEnv::post(Callback callback) { later(Duration(), std::move(callback)); }

Result<Listening> ReplicaEnv::listen(std::string_view, ListenerEvents&) { return no_network(); }

Result<ConnectionId> ReplicaEnv::connect(std::string_view, ConnectionEvents&) {
  return no_network();
}

}  // namespace orrery
