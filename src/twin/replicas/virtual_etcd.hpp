// twin/replicas/virtual_etcd.hpp - the etcd of a world of controllers: one log that several
// machines write and follow, which is away or full at times, and which lies.
//
// Owned by the ReplicaWorld; it outlives stores and followers. It has what the keys of a log in
// etcd have (store/etcd/etcd_writer.hpp), with the same comparisons: a write compares the revision
// of the claim and needs the batch that its writer knows as the newest; a claim compares the
// revisions of term and beat, and the newest batch. One thread. Cost: copies of what is written.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "store/memory/memory_store.hpp"
#include "store/shared_store.hpp"
#include "twin/protocol/protocol_context.hpp"

namespace orrery {

/// Everything that a backup of etcd has.
struct EtcdContent {
  MemoryDisk disk;
  std::uint64_t revision = 1;
  std::uint64_t claim_mark = 0;
  std::uint64_t beat_mark = 0;
  std::uint64_t texts_mark = 0;
  std::uint64_t claim_nonce = 0;
  std::string writer;
  std::map<std::string, std::uint64_t> marks;        ///< of texts and snapshots
  std::map<std::uint64_t, std::uint64_t> next_jobs;  ///< by batch

  [[nodiscard]] WriterSeen seen() const;
  [[nodiscard]] std::uint64_t oldest() const;
};

/// What a write compares.
struct EtcdFence {
  StoreTerm term = StoreTerm::kNone;
  std::uint64_t mark = 0;    ///< of the claim
  std::uint64_t nonce = 0;   ///< of the claim
  std::uint64_t newest = 0;  ///< batch that has to be there
};

/// How often etcd lies, as shares of requests, and how late it is.
struct EtcdRules {
  double refused = 0;   ///< requests that have no effect and get no answer
  double lost = 0;      ///< writes that have an effect and get no answer
  double late = 0;      ///< writes that get no answer and have their effect up to 5 s later
  double delayed = 0;   ///< events that followers hear up to 4 s later
  double repeated = 0;  ///< batches that followers hear twice
  /// Claims whose answer takes up to 2 s; then the machine is cut off for a while.
  double slow_claims = 0;
  Duration write_max = Duration::milliseconds(20);
};

/// How a request fares.
enum class EtcdFate : std::uint8_t { kDone, kLost, kLate, kRefused };
enum class EtcdRequest : std::uint8_t { kRead, kWrite };

class VirtualEtcd {
 public:
  struct Outside {
    /// A process has claimed the log; called before anything is told.
    std::function<void(StoreTerm, std::size_t process)> claimed;
    std::function<void(StoreTerm, const Batch&)> appended;
    std::function<void()> texts_put;
  };
  /// A change of the content, made by a process.
  struct Write {
    EtcdFence fence;
    std::function<StorageStatus(EtcdContent&)> change;
    enum class Space : std::uint8_t { kTakes, kGives } space = Space::kTakes;
  };
  struct Claim {
    WriterSeen seen;
    std::string writer;
    std::uint64_t nonce = 0;
    std::size_t process = 0;
  };

  VirtualEtcd(ProtocolContext& context, EtcdRules rules, Outside outside)
      : context_(context), rules_(rules), outside_(std::move(outside)) {}
  VirtualEtcd(const VirtualEtcd&) = delete;
  VirtualEtcd& operator=(const VirtualEtcd&) = delete;

  [[nodiscard]] ProtocolContext& context() { return context_; }
  [[nodiscard]] const EtcdRules& rules() const { return rules_; }
  [[nodiscard]] const Outside& outside() const { return outside_; }
  [[nodiscard]] const EtcdContent& content() const { return content_; }
  /// The log itself, without any fault. Writes nothing.
  [[nodiscard]] StoreReader& reader() { return reader_; }

  // --- Requests, of a machine

  /// Whether a machine gets an answer at all.
  [[nodiscard]] bool reaches(std::size_t machine) const { return !away_ && !cut_[machine]; }
  [[nodiscard]] EtcdFate draw_fate(std::size_t machine, EtcdRequest request);
  /// Carries a write out. Errors: those of EtcdWriter; kFull.
  [[nodiscard]] StorageStatus commit(const Write& write);
  /// Error kSuperseded: something was written since `seen`.
  [[nodiscard]] StorageResult<EtcdFence> commit(const Claim& claim);
  /// Carries something out later, if etcd is there then and no calm has begun.
  void later(std::function<void()> carry_out);

  /// Calls `poke` when there may be something new; the key ends it.
  std::uint64_t add_follower(std::function<void()> poke);
  void end_follower(std::uint64_t key) { followers_.erase(key); }

  // --- Faults

  enum class Reach : std::uint8_t { kAway, kThere };
  void set(Reach reach);
  void set(std::size_t machine, Reach reach);
  void cut_for(std::size_t machine, Duration span);
  enum class Room : std::uint8_t { kFull, kFree };
  void set(Room room) { full_ = room == Room::kFull; }
  /// Puts an older content in place of the present one, in which nobody may write, until
  /// restore_newest().
  void restore(EtcdContent older);
  void restore_newest();
  [[nodiscard]] bool is_old() const { return newest_.has_value(); }
  /// Ends all faults; what was late never comes.
  void make_calm();

  static constexpr std::size_t kMachines = 3;

 private:
  void tell();

  ProtocolContext& context_;
  EtcdRules rules_;
  Outside outside_;
  EtcdContent content_;
  MemoryStore reader_{content_.disk};
  std::optional<EtcdContent> newest_;  ///< while an older one is in its place
  bool away_ = false;
  bool full_ = false;
  std::vector<bool> cut_ = std::vector<bool>(kMachines);
  std::uint64_t calm_ = 0;  ///< how often a calm has begun
  std::map<std::uint64_t, std::function<void()>> followers_;
  std::uint64_t next_ = 1;
};

}  // namespace orrery
