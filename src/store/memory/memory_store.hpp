// store/memory/memory_store.hpp - a store in memory, for tests and rehearsals: nothing survives the
// process.
//
// The disk is separate from the store, so that a test can open it again. The disk must outlive the
// store; one thread. Cost: copies of the bytes.
#pragma once

#include <limits>

#include "store/store.hpp"

namespace orrery {

struct MemoryDisk {
  StoreTerm term = StoreTerm::kNone;
  std::uint64_t newest = 0;
  std::map<std::uint64_t, std::string> batches;
  std::map<std::uint64_t, std::string> snapshots;
  StoreTexts texts;
  std::map<std::uint64_t, std::string> archive;
  std::uint64_t room = std::numeric_limits<std::uint64_t>::max();  ///< bytes that still fit
};

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(MemoryDisk& disk) : disk_(disk) {}

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] StorageResult<StoreExtent> extent() override;
  [[nodiscard]] StorageResult<std::vector<Batch>> read(std::uint64_t after,
                                                       std::size_t bytes_max) override;
  [[nodiscard]] StorageResult<std::vector<std::uint64_t>> snapshots() override;
  [[nodiscard]] StorageResult<std::string> snapshot(std::uint64_t covers) override;
  [[nodiscard]] StorageResult<StoreTexts> texts() override { return disk_.texts; }
  [[nodiscard]] StorageResult<std::vector<ArchivedJob>> archived(std::uint64_t before,
                                                                 std::size_t count) override;
  [[nodiscard]] StorageStatus check() override { return {}; }

  [[nodiscard]] StorageResult<StoreTerm> claim() override;
  [[nodiscard]] StorageStatus append(StoreTerm term, const Batch& batch) override;
  [[nodiscard]] StorageStatus put_snapshot(StoreTerm term, const Batch& covers) override;
  [[nodiscard]] StorageStatus drop_covered(StoreTerm term, std::uint64_t covers) override;
  [[nodiscard]] StorageStatus shrink() override { return {}; }
  [[nodiscard]] StorageStatus put_texts(StoreTerm term, const StoreTexts& texts) override;
  [[nodiscard]] StorageStatus put_archived(StoreTerm term,
                                           const std::vector<ArchivedJob>& jobs) override;

 private:
  [[nodiscard]] StorageStatus take_room(std::size_t bytes);

  MemoryDisk& disk_;
  std::string name_ = "memory";
};

}  // namespace orrery
