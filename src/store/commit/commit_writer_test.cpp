#include "store/commit/commit_writer.hpp"

#include <gtest/gtest.h>

#include "base/system/real_clock.hpp"
#include "store/memory/memory_shared_store_test.hpp"

namespace orrery {
namespace {

/// Runs what is posted at once.
class DirectInbox final : public Inbox {
 public:
  void post(Callback callback) override { callback(); }
};

TEST(CommitWriter, OnlyWritesThatAClaimIsComparedWithLetAWriterSpeak) {
  MemoryService service;
  MemorySharedStore store(service);
  const StoreTerm term = *store.claim();
  ASSERT_TRUE(store.append(term, {1, "one"}));
  RealClock clock;
  DirectInbox inbox;
  std::size_t spoke = 0;
  CommitWriter writer({.store = store,
                       .term = term,
                       .newest = 1,
                       .clock = clock,
                       .inbox = inbox,
                       .durable = [](std::uint64_t) {},
                       .failed = [](const StorageError&) {},
                       .spoke = [&](Instant) { ++spoke; }});
  const auto speaks_after = [&](CommitWork work) {
    const std::size_t before = spoke;
    const WriterSeen seen = *store.look();
    const StorageStatus written = writer.write(work);
    EXPECT_TRUE(written) << written.error().message;
    EXPECT_TRUE(writer.note(work, clock.now_monotonic(), written));
    const bool speaks = spoke > before;
    if (speaks) EXPECT_NE(*store.look(), seen);
    return speaks;
  };
  using Kind = CommitWork::Kind;
  EXPECT_TRUE(speaks_after({.kind = Kind::kBeat}));
  EXPECT_TRUE(speaks_after({.kind = Kind::kBatch, .batch = {2, "two"}}));
  EXPECT_TRUE(speaks_after({.kind = Kind::kTexts, .texts = {{"policy", "fifo"}}}));
  EXPECT_FALSE(speaks_after({.kind = Kind::kArchive, .jobs = {{0, "job"}}}))
      << "the archive is on this machine";
  EXPECT_FALSE(speaks_after({.kind = Kind::kSnapshot, .batch = {2, "state"}}))
      << "it may have been put some time ago, with nothing to drop now";
}

}  // namespace
}  // namespace orrery
