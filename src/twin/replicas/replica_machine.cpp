#include "twin/replicas/replica_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "store/store.hpp"

namespace orrery {

StorageResult<std::unique_ptr<File>> ReplicaFiles::open(const std::string& path, OpenMode) {
  return store_error(StorageFailure::kOther, path + ": is read and written as a whole");
}

StorageResult<std::string> ReplicaFiles::read_file(const std::string& path, std::size_t size_max) {
  const auto found = files_.find(path);
  if (found == files_.end()) return store_error(StorageFailure::kNotFound, path + ": not there");
  if (found->second.size() > size_max) return store_error(StorageFailure::kOther, path);
  return found->second;
}

StorageStatus ReplicaFiles::write_file(const std::string& path, std::string_view bytes) {
  files_.insert_or_assign(path, std::string(bytes));
  return {};
}

StorageResult<std::vector<std::string>> ReplicaFiles::list(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& [path, bytes] : files_) {
    if (path.starts_with(directory + "/")) names.push_back(path.substr(directory.size() + 1));
  }
  return names;
}

StorageStatus ReplicaFiles::remove(const std::string& path) {
  files_.erase(path);
  return {};
}

StorageStatus ReplicaFiles::rename(const RenamePaths& paths) {
  auto moved = files_.extract(paths.from);
  if (moved.empty()) return store_error(StorageFailure::kNotFound, paths.from + ": not there");
  files_.insert_or_assign(paths.to, std::move(moved.mapped()));
  return {};
}

void ReplicaMark::raise(const ReplicaMark& other) {
  batch = std::max(batch, other.batch);
  term = std::max(term, other.term);
  next_job = std::max(next_job, other.next_job);
}

StorageStatus ReplicaMarkKeeper::check(std::uint64_t batch, std::uint64_t term) const {
  if (batch >= reached_.batch && term >= reached_.term) return {};
  return store_error(StorageFailure::kOther,
                     fmt::format("etcd: was restored from a backup: batch {} of term {}, and this "
                                 "machine has seen batch {} and term {}",
                                 batch, term, reached_.batch, reached_.term));
}

void ReplicaMarkKeeper::note(const ReplicaMark& mark, Raise raise, Instant now) {
  constexpr Duration kRaiseEvery = Duration::seconds(1);
  reached_.raise(mark);
  if (raise == Raise::kWhenDue && now - raised_ < kRaiseEvery) return;
  raised_ = now;
  machine_.mark.raise(reached_);
}

}  // namespace orrery
