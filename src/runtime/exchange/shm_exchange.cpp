#include "runtime/exchange/shm_exchange.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/assert.hpp"

namespace orrery {
namespace {

constexpr std::uint32_t kSmall = 0;      ///< in the slot
constexpr std::uint32_t kWorkspace = 1;  ///< in the segment
constexpr std::uint32_t kSocket = 2;     ///< it comes over the mesh

constexpr std::uint32_t kSpinsAlone = 4000;
constexpr std::uint32_t kSpinsCrowded = 20;
/// How often a sleeping rank checks for lost peers.
constexpr long kDozeNs = 10'000'000;

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void doze(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  static_assert(sizeof(std::atomic<std::uint32_t>) == 4);
  const timespec limit{0, kDozeNs};
  (void)::syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

std::uint32_t usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  return static_cast<std::uint32_t>(CPU_COUNT(&cores));
}

}  // namespace

Result<ShmWorkspace> ShmWorkspace::make(std::uint64_t bytes, std::uint64_t cookie,
                                        const std::string& domain) {
  Result<SharedSegment> segment = SharedSegment::make(sizeof(ShmBoard) + bytes, cookie, domain);
  if (!segment) return forward_error(segment);
  return ShmWorkspace(std::move(*segment));
}

std::optional<std::uint64_t> ShmWorkspace::offset_of(std::span<const std::byte> part) const {
  const std::byte* begin = segment_.data();
  const std::byte* end = begin + segment_.size();
  if (part.data() < begin || part.data() + part.size() > end) return std::nullopt;
  return static_cast<std::uint64_t>(part.data() - begin);
}

std::vector<std::uint32_t> machines_of(std::span<const std::uint64_t> opened) {
  const auto ranks = static_cast<std::uint32_t>(opened.size());
  std::vector<std::uint32_t> alone(ranks);
  std::iota(alone.begin(), alone.end(), 0u);
  if (ranks > ShmBoard::kRanksMax) return alone;
  const auto share = [&](std::uint32_t one, std::uint32_t other) {
    return one == other || (((opened[one] >> other) & (opened[other] >> one) & 1) != 0);
  };
  std::vector<std::uint32_t> machines(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    while (!share(rank, machines[rank])) ++machines[rank];
  }
  for (std::uint32_t one = 0; one < ranks; ++one) {
    for (std::uint32_t other = 0; other < one; ++other) {
      if (share(one, other) != (machines[one] == machines[other])) return alone;
    }
  }
  return machines;
}

ShmExchange::ShmExchange(PeerMesh& mesh, ShmWorkspace& own, ExchangeSeat seat)
    : mesh_(mesh), own_(own), seat_(std::move(seat)), peers_(seat_.members.size()) {
  ORRERY_ASSERT(rank() < size() && size() <= ShmBoard::kRanksMax, "a seat is one of the members'");
  // Part numbers of a later generation are higher than all of this one.
  const std::uint64_t first = std::uint64_t{seat_.generation} << 32;
  for (Peer& peer : peers_) peer.shown = peer.seen = first;
  for (std::uint32_t rank = 0; rank < size(); ++rank) machines_.push_back(rank);
}

void ShmExchange::open(std::span<const SegmentAddress> workspaces) {
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (rank == this->rank()) continue;
    Result<SharedSegment> segment = SharedSegment::open(workspaces[rank], own_.address().host);
    if (segment && segment->size() >= sizeof(ShmBoard)) peers_[rank].segment = std::move(*segment);
  }
}

std::uint64_t ShmExchange::opened() const {
  std::uint64_t bits = 0;
  for (std::uint32_t peer = 0; peer < size(); ++peer) {
    if (peer == rank() || near(peer)) bits |= std::uint64_t{1} << peer;
  }
  return bits;
}

void ShmExchange::share_by(std::vector<std::uint32_t> machines) {
  machines_ = std::move(machines);
  std::uint32_t together = 0;
  for (std::uint32_t peer = 0; peer < size(); ++peer) {
    const bool here = machine_of(peer) == machine_of(rank());
    ORRERY_ASSERT(!here || peer == rank() || near(peer), "ranks of a machine share memory");
    together += here ? 1 : 0;
    if (!here) peers_[peer].segment.reset();
  }
  spins_ = together <= usable_cores() ? kSpinsAlone : kSpinsCrowded;
}

ShmBoard& ShmExchange::board(std::uint32_t rank) {
  if (rank == seat_.rank) return own_.board();
  return *reinterpret_cast<ShmBoard*>(peers_[rank].segment->data());
}

Shared<std::size_t> ShmExchange::show(std::span<const ShownPart> parts, Wait wait) {
  std::size_t shown = 0;
  for (; shown < parts.size(); ++shown) {
    const Shared<bool> posted = post(parts[shown], wait);
    if (!posted) return tl::unexpected(posted.error());
    if (!*posted) break;
    const ShownPart& part = parts[shown];
    const bool copied = part.bytes.size() <= ShmBoard::kInlineMax || !near(part.to);
    if (!copied && own_.offset_of(part.bytes)) peers_[part.to].must_look = true;
  }
  if (shown > 0) ring();
  return shown;
}

Shared<PartOnItsWay> ShmExchange::begin_show(const ShownPart& part) {
  const Shared<bool> posted = post(part, Wait::kUntilDone);
  if (!posted) return tl::unexpected(posted.error());
  ring();
  return PartOnItsWay{part.to, peers_[part.to].shown};
}

Shared<void> ShmExchange::arrived(const PartOnItsWay& part) {
  if (!near(part.to)) return flush_to(mesh_, seat_, part.to);
  const Shared<bool> looked = await(looked_by(part.to), part.number, Wait::kUntilDone);
  if (!looked) return tl::unexpected(looked.error());
  return {};
}

Shared<bool> ShmExchange::post(const ShownPart& part, Wait wait) {
  if (!near(part.to)) {
    mesh_.send(seat_.members[part.to], {MessageKind::kData, seat_.generation, part.bytes});
    return true;
  }
  const Peer& peer = peers_[part.to];
  // The slot held the part before the previous one.
  const std::uint64_t first = (std::uint64_t{seat_.generation} << 32) + 2;
  if (peer.shown >= first) {
    const Shared<bool> free = await(looked_by(part.to), peer.shown - 1, wait);
    if (!free || !*free) return free;
  }
  fill_slot(part);
  return true;
}

void ShmExchange::fill_slot(const ShownPart& part) {
  const std::uint64_t number = ++peers_[part.to].shown;
  ShmBoard::Slot& slot = own_.board().pairs[part.to].slots[number & 1];
  slot.bytes = part.bytes.size();
  if (part.bytes.size() <= ShmBoard::kInlineMax) {
    slot.kind = kSmall;
    if (!part.bytes.empty()) std::memcpy(slot.small, part.bytes.data(), part.bytes.size());
  } else if (const auto offset = own_.offset_of(part.bytes)) {
    slot.kind = kWorkspace;
    slot.where = *offset;
  } else {
    slot.kind = kSocket;
    mesh_.send(seat_.members[part.to], {MessageKind::kData, seat_.generation, part.bytes});
  }
  slot.posted.store(number);
}

void ShmExchange::ring() {
  ShmBoard& own = own_.board();
  own.bell.fetch_add(1);
  if (own.sleepers.load() == 0) return;
  (void)::syscall(SYS_futex, &own.bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

Shared<std::optional<std::span<const std::byte>>> ShmExchange::look(std::uint32_t from, Wait wait) {
  if (!near(from)) return look_at_socket(from, wait);
  Peer& peer = peers_[from];
  const std::uint64_t number = peer.seen + 1;
  ShmBoard::Slot& slot = board(from).pairs[seat_.rank].slots[number & 1];
  const Shared<bool> there = await({from, slot.posted}, number, wait);
  if (!there) return tl::unexpected(there.error());
  if (!*there) return std::nullopt;
  const std::uint64_t bytes = slot.bytes;
  std::optional<std::span<const std::byte>> view;
  if (slot.kind == kSmall && bytes <= ShmBoard::kInlineMax) {
    view = std::span<const std::byte>(slot.small, bytes);
  } else if (slot.kind == kWorkspace) {
    const SharedSegment& segment = *peer.segment;
    const bool inside = slot.where <= segment.size() && bytes <= segment.size() - slot.where;
    if (!inside) return give_up(mesh_, {from});  // an invalid offset counts as a lost peer
    view = std::span<const std::byte>(segment.data() + slot.where, bytes);
  } else {
    auto arrived = look_at_socket(from, wait);
    if (!arrived || !*arrived) return arrived;
    view = *arrived;
  }
  peer.seen = number;
  viewed_.push_back(from);
  return view;
}

Shared<std::optional<std::span<const std::byte>>> ShmExchange::look_at_socket(std::uint32_t from,
                                                                              Wait wait) {
  if (!peers_[from].message.bytes.empty()) {
    mesh_.recycle(seat_.members[from], std::exchange(peers_[from].message, {}));
  }
  Shared<std::optional<PeerMessage>> message = await_data(mesh_, seat_, from, wait);
  if (!message) return tl::unexpected(message.error());
  if (!*message) return std::nullopt;
  peers_[from].message = std::move(**message);
  return std::span<const std::byte>(peers_[from].message.bytes);
}

Shared<bool> ShmExchange::settle(Wait wait) {
  for (const std::uint32_t rank : viewed_) {
    own_.board().pairs[rank].looked.store(peers_[rank].seen);
  }
  if (!viewed_.empty()) ring();
  viewed_.clear();
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    Peer& peer = peers_[rank];
    if (!peer.must_look) continue;
    const Shared<bool> done = await(looked_by(rank), peer.shown, wait);
    if (!done || !*done) return done;
    peer.must_look = false;
  }
  return flush(mesh_, seat_, wait);
}

Shared<bool> ShmExchange::await(const Word& word, std::uint64_t number, Wait wait) {
  const auto there = [&] { return word.value.load(std::memory_order_acquire) >= number; };
  if (wait == Wait::kNo) {
    if (there()) return true;
    mesh_.pump(Duration());
    const auto lost = in_vain(mesh_, seat_, word.at);
    if (lost && !there()) return give_up(mesh_, *lost);
    return there();
  }
  for (std::uint32_t spin = 0; spin < spins_; ++spin) {
    if (there()) return true;
    pause_cpu();
  }
  if (auto reached = doze_until(word, number); !reached) return tl::unexpected(reached.error());
  return true;
}

Shared<void> ShmExchange::doze_until(const Word& word, std::uint64_t number) {
  ShmBoard& board = this->board(word.at);
  while (word.value.load() < number) {
    const std::uint32_t bell = board.bell.load();
    board.sleepers.fetch_add(1);
    if (word.value.load() < number) doze(board.bell, bell);
    board.sleepers.fetch_sub(1);
    if (word.value.load() >= number) break;
    mesh_.pump(Duration());
    const auto lost = in_vain(mesh_, seat_, word.at);
    if (lost && word.value.load() < number) return give_up(mesh_, *lost);
  }
  return {};
}

}  // namespace orrery
