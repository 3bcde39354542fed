#include "twin/replicas/virtual_follower.hpp"

#include <fmt/format.h>

#include <utility>

namespace orrery {
namespace {

constexpr Duration kAskAgain = Duration::milliseconds(500);

Duration draw_ms(Rng& rng, std::uint64_t most) {
  return Duration::milliseconds(static_cast<std::int64_t>(1 + rng.below(most)));
}

}  // namespace

VirtualFollower::VirtualFollower(VirtualEtcd& etcd, std::size_t machine, FollowOptions options)
    : etcd_(etcd), machine_(machine), options_(std::move(options)), newest_(options_.after) {
  key_ = etcd_.add_follower([this] { poke(); });
  poke();
}

VirtualFollower::~VirtualFollower() {
  *lives_ = false;
  etcd_.end_follower(key_);
}

template <class Call>
void VirtualFollower::post(Call call) {
  options_.inbox.post([lives = lives_, call = std::move(call)] {
    if (*lives) call();
  });
}

void VirtualFollower::poke() {
  // Once nothing is delayed any more, it does not wait for what was.
  const bool waits = std::exchange(due_, true) && etcd_.rules().delayed > 0;
  if (ended_ || waits) return;
  ProtocolContext& context = etcd_.context();
  constexpr std::uint64_t kUsual = 10;
  constexpr std::uint64_t kLate = 4'000;
  const bool late = context.chance(etcd_.rules().delayed);
  context.time().after(draw_ms(context.rng(), late ? kLate : kUsual), [this, lives = lives_] {
    if (*lives) hear();
  });
}

void VirtualFollower::fail(const StorageError& why) {
  ended_ = why.failure != StorageFailure::kUnavailable;
  post([call = options_.failed, why] { call(why); });
}

void VirtualFollower::hear() {
  due_ = false;
  if (ended_) return;
  if (!etcd_.reaches(machine_)) {
    if (!std::exchange(reported_, true)) {
      fail({{ErrorKind::kEnvironment, "etcd: no answer", {}}, StorageFailure::kUnavailable});
    }
    return etcd_.context().time().after(kAskAgain, [this, lives = lives_] {
      if (*lives) hear();
    });
  }
  reported_ = false;
  hear_batches();
  if (ended_) return;
  const EtcdContent& content = etcd_.content();
  if (first_ || texts_ != content.texts_mark) post(options_.texts_put);
  texts_ = content.texts_mark;
  const WriterSeen now = content.seen();
  if (std::exchange(first_, false) || !(now == told_)) {
    told_ = now;
    post([call = options_.seen, now] { call(now); });
  }
}

void VirtualFollower::hear_batches() {
  const EtcdContent& content = etcd_.content();
  if (content.disk.newest < newest_) {
    return fail({{ErrorKind::kEnvironment,
                  fmt::format("etcd: was restored from a backup: batch {} was seen", newest_),
                  {}},
                 StorageFailure::kOther});
  }
  if (content.oldest() > newest_ + 1) {
    return fail({{ErrorKind::kEnvironment,
                  fmt::format("etcd: the batches after {} were dropped", newest_),
                  {}},
                 StorageFailure::kOther});
  }
  if (newest_ < content.disk.newest) {
    post([call = options_.ahead, newest = content.disk.newest] { call(newest); });
  }
  auto at = content.disk.batches.upper_bound(newest_);
  for (; at != content.disk.batches.end(); ++at) {
    newest_ = at->first;
    const int times = etcd_.context().chance(etcd_.rules().repeated) ? 2 : 1;
    for (int i = 0; i < times; ++i) {
      post([call = options_.batch, batch = Batch{at->first, at->second}] { call(batch); });
    }
  }
}

}  // namespace orrery
