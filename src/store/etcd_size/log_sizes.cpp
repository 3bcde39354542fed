#include "store/etcd_size/log_sizes.hpp"

#include <algorithm>

namespace orrery {

/// Precondition: the lock is held, as for find().
template <class Key>
void LogSizes::put(std::map<Key, std::uint64_t>& sizes, const Key& key, std::uint64_t bytes) {
  std::uint64_t& size = sizes[key];
  bytes_ += bytes - size;
  size = bytes;
}

template <class Key>
void LogSizes::find(std::map<Key, std::uint64_t>& sizes, const Key& key, std::uint64_t bytes) {
  if (sizes.emplace(key, bytes).second) bytes_ += bytes;
}

void LogSizes::clear() {
  const std::scoped_lock lock(mutex_);
  batches_.clear();
  snapshots_.clear();
  texts_.clear();
  dropped_ = bytes_ = 0;
}

void LogSizes::put_batch(std::uint64_t number, std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  put(batches_, number, bytes);
}

void LogSizes::put_snapshot(std::uint64_t covers, std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  put(snapshots_, covers, bytes);
}

void LogSizes::put_text(const std::string& name, std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  put(texts_, name, bytes);
}

void LogSizes::drop(std::uint64_t covers) {
  const std::scoped_lock lock(mutex_);
  dropped_ = std::max(dropped_, covers);
  const auto erase = [this](auto& sizes, auto end) {
    for (auto at = sizes.begin(); at != end; at = sizes.erase(at)) bytes_ -= at->second;
  };
  erase(batches_, batches_.upper_bound(covers));
  erase(snapshots_, snapshots_.lower_bound(covers));
}

void LogSizes::found_batch(std::uint64_t number, std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  if (number > dropped_) find(batches_, number, bytes);
}

void LogSizes::found_snapshot(std::uint64_t covers, std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  if (covers >= dropped_) find(snapshots_, covers, bytes);
}

void LogSizes::found_text(const std::string& name, std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  find(texts_, name, bytes);
}

std::uint64_t LogSizes::bytes() const {
  const std::scoped_lock lock(mutex_);
  return bytes_;
}

}  // namespace orrery
