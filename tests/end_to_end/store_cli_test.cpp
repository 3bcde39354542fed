// `orrery store` on a store that a daemon might have left.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "store/history.hpp"
#include "store/setup_texts.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "tests/end_to_end/cli.hpp"

namespace orrery {
namespace {

constexpr const char* kReason = "a-reason-that-is-looked-for";

class StoreCli : public Cli {
 protected:
  /// Three batches: two events, a third, a fourth.
  void SetUp() override {
    Cli::SetUp();
    auto store = SqliteStore::open(path("store"));
    ASSERT_TRUE(store) << store.error().text();
    const StoreTerm term = *(*store)->claim();
    const SetupTexts setup{.fleet = slurp(ORRERY_SOURCE_DIR "/examples/fleets/laptop.yaml"),
                           .tenants = "",
                           .policy = "apiVersion: orrery/v1\nkind: Policy\nname: fifo\n",
                           .begin = Instant(),
                           .writer = "test"};
    ASSERT_TRUE((*store)->put_texts(term, store_texts(setup)));
    HistoryWriter writer({.writer = "test", .setup = setup_digest(setup)});
    const std::vector<std::vector<Event>> batches{
        {SpareSet{NodeId(0), true}, SpareSet{NodeId(0), false}},
        {DecisionDropped{JobId(0), kReason}},
        {NodeBooted{NodeId(0), 77}}};
    for (std::uint64_t i = 0; i < batches.size(); ++i) {
      writer.append(Instant::from_ns(static_cast<std::int64_t>(i)), batches[i]);
      ASSERT_TRUE((*store)->append(term, {i + 1, writer.take()}));
    }
  }
  [[nodiscard]] nlohmann::json verified(const std::string& name) const {
    return nlohmann::json::parse(orrery("store verify " + path(name) + " -o json").out);
  }
};

TEST_F(StoreCli, VerifiesExportsAndBacksUp) {
  const CliRun good = orrery("store verify " + path("store"));
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_NE(good.out.find("good: batches 1 to 3 with 4 events in 1 segment,"), std::string::npos)
      << good.out;
  const CliRun exported = orrery("store export " + path("store"));
  EXPECT_EQ(exported.code, 0) << exported.err;
  std::istringstream lines(exported.out);
  std::vector<nlohmann::json> events;
  for (std::string line; std::getline(lines, line);) events.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0]["event"], "SpareSet");
  EXPECT_EQ(events[0]["node"], 0);
  EXPECT_EQ(events[2]["why"], kReason);
  EXPECT_EQ(events[3]["at"], "1970-01-01T00:00:00.000000002Z");
  const std::string backup = "store backup " + path("store") + " " + path("copy.db");
  EXPECT_EQ(orrery(backup).code, 0);
  EXPECT_EQ(verified("copy.db"), verified("store"));
  const CliRun again = orrery(backup);
  EXPECT_EQ(again.code, 1);
  EXPECT_NE(again.err.find("is there already"), std::string::npos) << again.err;
}

TEST_F(StoreCli, CompactsToOneSnapshotWithTheSameHistoryUnlessSomebodyWrites) {
  {
    const auto writes = SqliteStore::open(path("store"));
    ASSERT_TRUE(writes) << writes.error().text();
    const CliRun refused = orrery("store compact " + path("store"));
    EXPECT_EQ(refused.code, 1);
    EXPECT_NE(refused.err.find("writes this store"), std::string::npos) << refused.err;
  }
  const nlohmann::json before = verified("store");
  const CliRun compacted = orrery("store compact " + path("store"));
  EXPECT_EQ(compacted.code, 0) << compacted.err;
  EXPECT_NE(compacted.out.find("up to batch 3, dropped 3 batches"), std::string::npos)
      << compacted.out;
  const nlohmann::json after = verified("store");
  EXPECT_EQ(after["good"], true);
  EXPECT_EQ(after["history_hash"], before["history_hash"]);
  EXPECT_EQ(after["oldest_batch"], 4);
  EXPECT_EQ(after["snapshots"], nlohmann::json::parse("[3]"));
  EXPECT_EQ(orrery("store compact " + path("store")).code, 0) << "once more does no harm";
}

TEST_F(StoreCli, OfADamagedStoreThePlaceIsNamedAndWhatComesBeforeIsExported) {
  const std::string file = path("store") + "/store.db";
  std::string bytes = slurp(file);
  const std::size_t at = bytes.find(kReason);
  ASSERT_NE(at, std::string::npos);
  bytes[at] = 'A';
  std::ofstream(file, std::ios::binary) << bytes;
  const CliRun text = orrery("store verify " + path("store"));
  EXPECT_EQ(text.code, 1);
  EXPECT_NE(text.err.find("segment 1, batch 2, byte 0: "), std::string::npos) << text.err;
  const nlohmann::json json = verified("store");
  EXPECT_EQ(json["good"], false);
  EXPECT_EQ(json["batch"], 2);
  const CliRun exported = orrery("store export " + path("store"));
  EXPECT_EQ(exported.code, 1);
  EXPECT_EQ(std::count(exported.out.begin(), exported.out.end(), '\n'), 2);
}

TEST_F(StoreCli, ALogOfTheFirstFormatGoesOnInThePresentOne) {
  const std::string first = slurp(ORRERY_SOURCE_DIR "/tests/compat/control_v5.journal");
  auto reader = JournalReader<TimedEvent>::open(first, {.name = "first"});
  ASSERT_TRUE(reader) << reader.error().text();
  while (*reader->next()) continue;
  {
    auto store = SqliteStore::open(path("older"));
    ASSERT_TRUE(store) << store.error().text();
    const StoreTerm term = *(*store)->claim();
    ASSERT_TRUE((*store)->append(term, {1, first}));
    HistoryWriter writer({.writer = "test", .before = reader->history_hash()});
    const std::vector<Event> events{SpareSet{NodeId(0), true}};
    writer.append(Instant::from_ns(std::int64_t{1} << 62), events);
    ASSERT_TRUE((*store)->append(term, {2, writer.take()}));
  }
  const CliRun good = orrery("store verify " + path("older"));
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_NE(good.out.find("good: batches 1 to 2"), std::string::npos) << good.out;
}

TEST_F(StoreCli, WhatIsNoStoreIsWrongInput) {
  const CliRun none = orrery("store verify " + path("nowhere"));
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("expected a directory with store.db, or a backup"), std::string::npos)
      << none.err;
  EXPECT_EQ(orrery("store compact " + path("nowhere")).code, 2);
  EXPECT_FALSE(std::filesystem::exists(path("nowhere")));
  EXPECT_EQ(orrery("store backup " + path("store")).code, 2);
}

}  // namespace
}  // namespace orrery
