// store/transfer/written_log_test.hpp - writes a short history into any store, for tests of what
// copies and adopts a log.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "store/history.hpp"
#include "store/store.hpp"

namespace orrery {

/// Appends batches with one event each, and puts snapshots, whose state is a text.
class WrittenLog {
 public:
  explicit WrittenLog(Store& store) : store_(store), term_(*store.claim()) {}

  void append(std::uint64_t next_job = 0) {
    const std::vector<Event> events{SpareSet{NodeId(0), newest_ % 2 == 0}};
    writer_.append(Instant::from_ns(static_cast<std::int64_t>(newest_)), events);
    EXPECT_TRUE(store_.append(term_, {++newest_, writer_.take(), next_job}));
  }
  void put_snapshot() {
    const std::string bytes = seal_snapshot(writer_.history_hash(), "state");
    EXPECT_TRUE(store_.put_snapshot(term_, {newest_, bytes}));
    writer_.begin_segment();
  }
  [[nodiscard]] StoreTerm term() const { return term_; }

 private:
  Store& store_;
  StoreTerm term_;
  HistoryWriter writer_{{.writer = "test"}};
  std::uint64_t newest_ = 0;
};

}  // namespace orrery
