#include "store/memory/memory_store.hpp"

namespace orrery {

StorageResult<StoreExtent> MemoryStore::extent() {
  const bool none = disk_.batches.empty();
  return StoreExtent{.oldest = none ? disk_.newest + 1 : disk_.batches.begin()->first,
                     .newest = disk_.newest};
}

StorageResult<std::vector<Batch>> MemoryStore::read(std::uint64_t after, std::size_t bytes_max) {
  std::vector<Batch> found;
  std::size_t bytes = 0;
  for (auto at = disk_.batches.upper_bound(after); at != disk_.batches.end(); ++at) {
    bytes += at->second.size();
    if (!found.empty() && bytes > bytes_max) break;
    found.push_back({at->first, at->second});
  }
  return found;
}

StorageResult<std::vector<std::uint64_t>> MemoryStore::snapshots() {
  std::vector<std::uint64_t> found;
  found.reserve(disk_.snapshots.size());
  for (auto at = disk_.snapshots.rbegin(); at != disk_.snapshots.rend(); ++at) {
    found.push_back(at->first);
  }
  return found;
}

StorageResult<std::string> MemoryStore::snapshot(std::uint64_t covers) {
  const auto at = disk_.snapshots.find(covers);
  if (at == disk_.snapshots.end()) return no_snapshot(name_, covers);
  return at->second;
}

StorageStatus MemoryStore::take_room(std::size_t bytes) {
  if (bytes > disk_.room) {
    return store_error(StorageFailure::kFull, fmt::format("{}: no room for {} bytes, {} are left",
                                                          name_, bytes, disk_.room));
  }
  disk_.room -= bytes;
  return {};
}

StorageResult<StoreTerm> MemoryStore::claim() {
  disk_.term = static_cast<StoreTerm>(static_cast<std::uint64_t>(disk_.term) + 1);
  return disk_.term;
}

StorageStatus MemoryStore::append(StoreTerm term, const Batch& batch) {
  if (StorageStatus status = check_term(name_, {disk_.term, term}); !status) return status;
  if (StorageStatus status = check_next(name_, {disk_.newest, batch.number}); !status) {
    return status;
  }
  if (StorageStatus status = take_room(batch.bytes.size()); !status) return status;
  disk_.batches.emplace(batch.number, batch.bytes);
  disk_.newest = batch.number;
  return {};
}

StorageStatus MemoryStore::put_snapshot(StoreTerm term, const Batch& covers) {
  if (StorageStatus status = check_term(name_, {disk_.term, term}); !status) return status;
  if (StorageStatus status = check_covered(name_, {disk_.newest, covers.number}); !status) {
    return status;
  }
  if (StorageStatus status = take_room(covers.bytes.size()); !status) return status;
  disk_.snapshots[covers.number] = covers.bytes;
  return {};
}

StorageStatus MemoryStore::drop_covered(StoreTerm term, std::uint64_t covers) {
  if (StorageStatus status = check_term(name_, {disk_.term, term}); !status) return status;
  const auto kept = disk_.snapshots.find(covers);
  if (kept == disk_.snapshots.end()) return no_snapshot(name_, covers);
  disk_.snapshots.erase(disk_.snapshots.begin(), kept);
  disk_.batches.erase(disk_.batches.begin(), disk_.batches.upper_bound(covers));
  return {};
}

StorageStatus MemoryStore::put_texts(StoreTerm term, const StoreTexts& texts) {
  if (StorageStatus status = check_term(name_, {disk_.term, term}); !status) return status;
  for (const auto& [name, text] : texts) disk_.texts[name] = text;
  return {};
}

StorageResult<std::vector<ArchivedJob>> MemoryStore::archived(std::uint64_t before,
                                                              std::size_t count) {
  std::vector<ArchivedJob> found;
  for (auto at = disk_.archive.lower_bound(before);
       at != disk_.archive.begin() && found.size() < count;) {
    --at;
    found.push_back({at->first, at->second});
  }
  return found;
}

StorageStatus MemoryStore::put_archived(StoreTerm term, const std::vector<ArchivedJob>& jobs) {
  if (StorageStatus status = check_term(name_, {disk_.term, term}); !status) return status;
  for (const ArchivedJob& job : jobs) disk_.archive[job.id] = job.bytes;
  return {};
}

}  // namespace orrery
