// twin/world/event_queue.hpp - the future events of a virtual world, in the order in which they
// happen.
//
// Ordered by (time, rank, order of insertion), so that equal times are ordered the same way on
// every machine. The code that takes an event out decides whether it is still valid. Cost: O(log
// n).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/time.hpp"

namespace orrery {

template <class Payload>
class EventQueue {
 public:
  /// Lower ranks come first among events of one instant.
  void push(Instant at, std::uint8_t rank, Payload payload) {
    heap_.push_back({at, (std::uint64_t{rank} << 56) | next_++, std::move(payload)});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] std::size_t size() const { return heap_.size(); }
  /// Precondition, for pop() too: not empty.
  [[nodiscard]] Instant next() const { return heap_.front().at; }

  Payload pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    Payload payload = std::move(heap_.back().payload);
    heap_.pop_back();
    return payload;
  }

 private:
  struct Entry {
    Instant at;
    std::uint64_t order;  ///< rank, then sequence
    Payload payload;
  };
  static bool later(const Entry& a, const Entry& b) {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }

  std::vector<Entry> heap_;
  std::uint64_t next_ = 0;
};

}  // namespace orrery
