#include "twin/replicas/virtual_etcd.hpp"

#include <fmt/format.h>

#include <utility>

namespace orrery {

WriterSeen EtcdContent::seen() const {
  return {static_cast<std::uint64_t>(disk.term), writer, claim_mark, beat_mark, disk.newest};
}

std::uint64_t EtcdContent::oldest() const {
  return disk.batches.empty() ? disk.newest + 1 : disk.batches.begin()->first;
}

EtcdFate VirtualEtcd::draw_fate(std::size_t machine, EtcdRequest request) {
  const bool writes = request == EtcdRequest::kWrite;
  if (!reaches(machine) || context_.chance(rules_.refused)) return EtcdFate::kRefused;
  if (writes && context_.chance(rules_.lost)) return EtcdFate::kLost;
  if (writes && context_.chance(rules_.late)) return EtcdFate::kLate;
  return EtcdFate::kDone;
}

StorageStatus VirtualEtcd::commit(const Write& write) {
  if (content_.claim_mark != write.fence.mark) {
    StorageStatus superseded = check_term("etcd", {content_.disk.term, write.fence.term});
    if (!superseded) return superseded;
    return store_error(StorageFailure::kSuperseded, "etcd: the writer may write no more");
  }
  if (content_.disk.newest < write.fence.newest) {
    return store_error(StorageFailure::kOther, "etcd: was restored from a backup");
  }
  if (full_ && write.space == Write::Space::kTakes) {
    return store_error(StorageFailure::kFull, "etcd: no space");
  }
  ++content_.revision;
  StorageStatus changed = write.change(content_);
  if (changed && is_old()) context_.wrong("an older copy of the log is written");
  if (changed) tell();
  return changed;
}

StorageResult<EtcdFence> VirtualEtcd::commit(const Claim& claim) {
  const auto own = [&]() -> EtcdFence {
    return {content_.disk.term, content_.claim_mark, claim.nonce, claim.seen.newest};
  };
  if (content_.claim_nonce == claim.nonce) return own();
  const WriterSeen now = content_.seen();
  if (now.claim_mark != claim.seen.claim_mark || now.beat_mark != claim.seen.beat_mark ||
      now.newest != claim.seen.newest) {
    return store_error(StorageFailure::kSuperseded, "etcd: a writer has written since");
  }
  if (full_) return store_error(StorageFailure::kFull, "etcd: no space");
  if (is_old()) context_.wrong("an older copy of the log is claimed");
  content_.disk.term = static_cast<StoreTerm>(claim.seen.term + 1);
  content_.claim_mark = ++content_.revision;
  content_.claim_nonce = claim.nonce;
  content_.writer = claim.writer;
  outside_.claimed(content_.disk.term, claim.process);
  tell();
  return own();
}

void VirtualEtcd::later(std::function<void()> carry_out) {
  constexpr std::uint64_t kLateMax = 5'000;  // ms
  const auto delay =
      Duration::milliseconds(static_cast<std::int64_t>(1 + context_.rng().below(kLateMax)));
  context_.time().after(delay, [this, calm = calm_, carry_out = std::move(carry_out)] {
    if (calm == calm_ && !away_ && !is_old()) carry_out();
  });
}

std::uint64_t VirtualEtcd::add_follower(std::function<void()> poke) {
  followers_.emplace(next_, std::move(poke));
  return next_++;
}

void VirtualEtcd::tell() {
  for (const auto& [key, poke] : followers_) poke();
}

void VirtualEtcd::set(Reach reach) {
  away_ = reach == Reach::kAway;
  tell();
}

void VirtualEtcd::set(std::size_t machine, Reach reach) {
  cut_[machine] = reach == Reach::kAway;
  tell();
}

void VirtualEtcd::cut_for(std::size_t machine, Duration span) {
  set(machine, Reach::kAway);
  context_.time().after(span, [this, machine] { set(machine, Reach::kThere); });
}

void VirtualEtcd::restore(EtcdContent older) {
  newest_ = std::exchange(content_, std::move(older));
  tell();
}

void VirtualEtcd::restore_newest() {
  if (!newest_) return;
  content_ = *std::exchange(newest_, std::nullopt);
  tell();
}

void VirtualEtcd::make_calm() {
  ++calm_;
  restore_newest();
  full_ = false;
  rules_ = {};
  cut_.assign(kMachines, false);
  set(Reach::kThere);
}

}  // namespace orrery
