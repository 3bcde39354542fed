// twin/replicas/virtual_store.hpp - the virtual etcd as one process of a controller opens it, with
// the mark and the archive of its machine, as store/etcd/etcd_store.hpp has them.
//
// Made by the Replica for one process; environment, machine and etcd outlive it. Calls have their
// effect at once, or late, or none, as VirtualEtcd draws it. One thread.
#pragma once

#include <memory>

#include "base/log.hpp"
#include "store/shared_store.hpp"
#include "twin/replicas/replica_env.hpp"
#include "twin/replicas/replica_machine.hpp"
#include "twin/replicas/virtual_etcd.hpp"

namespace orrery {

/// One process of a controller.
struct ReplicaProcess {
  VirtualEtcd& etcd;
  ReplicaMachine& machine;
  ReplicaEnv& env;
  std::size_t number = 0;  ///< of the process, in the whole world
  Log log;                 ///< its lines go to the trace
  bool killed = false;     ///< it does not end in an orderly way
};

class VirtualStore final : public SharedStore {
 public:
  /// How long a leader may speak, and how often it beats.
  static constexpr Duration kSpeaksFor = Duration::milliseconds(1200);
  static constexpr Duration kBeatEvery = Duration::milliseconds(500);

  /// Errors: kUnavailable; kOther: the log lacks what the machine's mark names.
  [[nodiscard]] static StorageResult<std::unique_ptr<VirtualStore>> open(ReplicaProcess& process);
  explicit VirtualStore(ReplicaProcess& process);
  VirtualStore(const VirtualStore&) = delete;
  VirtualStore& operator=(const VirtualStore&) = delete;
  ~VirtualStore() override;

  // What a reader sees.
  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] StoreTraits traits() const override;
  [[nodiscard]] StorageResult<StoreTexts> texts() override;
  [[nodiscard]] StorageResult<StoreExtent> extent() override;
  [[nodiscard]] StorageStatus check() override { return {}; }
  [[nodiscard]] StorageResult<std::vector<Batch>> read(std::uint64_t after,
                                                       std::size_t bytes_max) override;
  [[nodiscard]] StorageResult<std::string> snapshot(std::uint64_t covers) override;
  [[nodiscard]] StorageResult<std::vector<std::uint64_t>> snapshots() override;
  [[nodiscard]] std::unique_ptr<StoreFollower> follow(FollowOptions options) override;

  // What a writer does.
  [[nodiscard]] StorageResult<StoreTerm> claim() override;
  [[nodiscard]] StorageStatus beat(StoreTerm term) override;
  [[nodiscard]] StorageStatus put_texts(StoreTerm term, const StoreTexts& texts) override;
  [[nodiscard]] StorageStatus append(StoreTerm term, const Batch& batch) override;
  [[nodiscard]] StorageStatus drop_covered(StoreTerm term, std::uint64_t covers) override;
  [[nodiscard]] StorageStatus put_snapshot(StoreTerm term, const Batch& covers) override;
  [[nodiscard]] StorageStatus shrink() override { return {}; }
  [[nodiscard]] StorageResult<WriterSeen> look() override;
  [[nodiscard]] StorageResult<StoreTerm> claim_after(const WriterSeen& seen,
                                                     const std::string& writer) override;

  // What lies on the machine: its mark and its archive.
  [[nodiscard]] StorageStatus note_seen(const WriterSeen& seen, std::uint64_t next_job) override;
  [[nodiscard]] std::uint64_t marked_next_job() const override { return mark_.next_job(); }
  [[nodiscard]] StorageStatus keep_archived(const std::vector<ArchivedJob>& jobs) override;
  [[nodiscard]] StorageResult<std::vector<ArchivedJob>> archived(std::uint64_t before,
                                                                 std::size_t count) override;
  [[nodiscard]] StorageStatus put_archived(StoreTerm term,
                                           const std::vector<ArchivedJob>& jobs) override;

 private:
  [[nodiscard]] StorageStatus write(VirtualEtcd::Write write);
  void note(const ReplicaMark& mark, ReplicaMarkKeeper::Raise raise) {
    mark_.note(mark, raise, process_.env.world_now());
  }

  ReplicaProcess& process_;
  VirtualEtcd& etcd_;
  std::string name_ = "virtual etcd";
  EtcdFence held_;
  /// A claim whose answer is not known.
  std::optional<VirtualEtcd::Claim> open_claim_;
  std::uint64_t claims_ = 0;
  ReplicaMarkKeeper mark_;
};

}  // namespace orrery
