// store/etcd_size/log_sizes.hpp - how many bytes a log in etcd has: what its writer wrote, and what
// a survey finds that was there before.
//
// Shared by the store of a writer and the survey that it begins with its claim; any thread.
// Invariant: what the writer wrote or dropped counts, whatever the survey found there before.
// Histories that etcd has not compacted yet do not count. Cost: about 50 bytes of memory a batch.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace orrery {

class LogSizes {
 public:
  /// Nothing is known from now on.
  void clear();
  void put_batch(std::uint64_t number, std::uint64_t bytes);
  void put_snapshot(std::uint64_t covers, std::uint64_t bytes);
  void put_text(const std::string& name, std::uint64_t bytes);
  /// The batches up to `covers` and the snapshots before that one are gone.
  void drop(std::uint64_t covers);

  void found_batch(std::uint64_t number, std::uint64_t bytes);
  void found_snapshot(std::uint64_t covers, std::uint64_t bytes);
  void found_text(const std::string& name, std::uint64_t bytes);

  [[nodiscard]] std::uint64_t bytes() const;

 private:
  template <class Key>
  void put(std::map<Key, std::uint64_t>& sizes, const Key& key, std::uint64_t bytes);
  template <class Key>
  void find(std::map<Key, std::uint64_t>& sizes, const Key& key, std::uint64_t bytes);

  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> batches_;  ///< guarded, as all below
  std::map<std::uint64_t, std::uint64_t> snapshots_;
  std::map<std::string, std::uint64_t> texts_;
  std::uint64_t dropped_ = 0;
  std::uint64_t bytes_ = 0;  ///< of all
};

}  // namespace orrery
