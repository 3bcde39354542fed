// verbs/store/written_store_test.hpp - a store with a short history of one laptop, in the directory
// of a test.
#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "store/history.hpp"
#include "store/setup_texts.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "verbs/scratch_files_test.hpp"

namespace orrery {

class WrittenStore {
 public:
  static constexpr const char* kReason = "a-reason-that-is-looked-for";

  /// Two events, a third, a fourth.
  [[nodiscard]] static std::vector<std::vector<Event>> three_batches() {
    return {{SpareSet{NodeId(0), true}, SpareSet{NodeId(0), false}},
            {DecisionDropped{JobId(0), kReason}},
            {NodeBooted{NodeId(0), 77}}};
  }

  /// Begins the store "store" with these batches.
  explicit WrittenStore(const std::vector<std::vector<Event>>& batches = three_batches()) {
    auto store = SqliteStore::open(path());
    EXPECT_TRUE(store) << (store ? "" : store.error().text());
    if (!store) return;
    const StoreTerm term = *(*store)->claim();
    std::ifstream fleet(ORRERY_SOURCE_DIR "/examples/fleets/laptop.yaml");
    const SetupTexts setup{
        .fleet = {std::istreambuf_iterator<char>(fleet), std::istreambuf_iterator<char>()},
        .tenants = "",
        .policy = "apiVersion: orrery/v1\nkind: Policy\nname: fifo\n",
        .begin = Instant(),
        .writer = "test"};
    EXPECT_TRUE((*store)->put_texts(term, store_texts(setup)));
    HistoryWriter writer({.writer = "test", .setup = setup_digest(setup)});
    for (std::uint64_t i = 0; i < batches.size(); ++i) {
      writer.append(Instant::from_ns(static_cast<std::int64_t>(i)), batches[i]);
      EXPECT_TRUE((*store)->append(term, {i + 1, writer.take()}));
    }
  }

  [[nodiscard]] const ScratchFiles& files() const { return files_; }
  [[nodiscard]] std::string path() const { return files_.path("store"); }

  /// Changes one byte of the second batch.
  void damage() const {
    std::string bytes = files_.read("store/store.db");
    const std::size_t at = bytes.find(kReason);
    EXPECT_NE(at, bytes.npos);
    if (at == bytes.npos) return;
    bytes[at] = 'A';
    files_.write("store/store.db", bytes);
  }

 private:
  ScratchFiles files_;
};

}  // namespace orrery
