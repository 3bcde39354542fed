#include "verbs/store/store_answer.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "verbs/store/written_store_test.hpp"

namespace orrery {
namespace {

JudgedAnswer verified(const std::string& path) {
  Result<JudgedAnswer> answer = verify_store(path);
  EXPECT_TRUE(answer) << (answer ? "" : answer.error().text());
  return answer ? *std::move(answer) : JudgedAnswer{};
}

/// The bytes of all files of the store, by name.
std::map<std::string, std::string> bytes_of(const WrittenStore& store) {
  std::map<std::string, std::string> bytes;
  for (const auto& entry : std::filesystem::directory_iterator(store.path())) {
    const std::string name = entry.path().filename().string();
    bytes[name] = store.files().read("store/" + name);
  }
  return bytes;
}

TEST(BatchesText, HasARangeOrSaysWhyThereIsNone) {
  EXPECT_EQ(batches_text({.oldest = 1, .newest = 0}), "no batches yet");
  EXPECT_EQ(batches_text({.oldest = 10, .newest = 9}), "all batches up to 9 dropped");
  EXPECT_EQ(batches_text({.oldest = 9, .newest = 9}), "batches 9 to 9");
  EXPECT_EQ(batches_text({.oldest = 3, .newest = 9}), "batches 3 to 9");
}

TEST(CompactedAnswer, CountsBytesAndBatches) {
  const VerbAnswer one = compacted_answer("s", {.covers = 7, .snapshot_bytes = 1, .dropped = 1});
  EXPECT_EQ(one.text, "s: wrote a snapshot of 1 byte up to batch 7, dropped 1 batch\n");
  EXPECT_EQ(one.json, Json({{"snapshot", 7}, {"snapshot_bytes", 1}, {"dropped_batches", 1}}));
  const VerbAnswer none = compacted_answer("s", {.covers = 7, .snapshot_bytes = 20, .dropped = 0});
  EXPECT_EQ(none.text, "s: wrote a snapshot of 20 bytes up to batch 7, dropped 0 batches\n");
}

TEST(VerifyStore, AGoodStoreIsCounted) {
  const WrittenStore store;
  const JudgedAnswer answer = verified(store.path());
  EXPECT_TRUE(answer.verdict);
  const Json& json = answer.shown.json;
  EXPECT_EQ(json["good"], true);
  EXPECT_EQ(json["oldest_batch"], 1);
  EXPECT_EQ(json["newest_batch"], 3);
  EXPECT_EQ(json["segments"], 1);
  EXPECT_EQ(json["events"], 4);
  EXPECT_EQ(json["snapshots"], Json::array());
  const std::string hash = json["history_hash"].get<std::string>();
  EXPECT_EQ(hash.size(), 16U);
  EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), hash.npos);
  EXPECT_TRUE(answer.shown.text.ends_with(
      ": good: batches 1 to 3 with 4 events in 1 segment, history hash " + hash + "\n"))
      << answer.shown.text;
}

TEST(VerifyStore, ADamagedOneIsShownWithItsPlaceAndFails) {
  const WrittenStore store;
  store.damage();
  const JudgedAnswer answer = verified(store.path());
  EXPECT_EQ(answer.shown.text, "") << "people read the error";
  EXPECT_EQ(answer.shown.json["good"], false);
  EXPECT_EQ(answer.shown.json["segment"], 1);
  EXPECT_EQ(answer.shown.json["batch"], 2);
  EXPECT_EQ(answer.shown.json["offset"], 0);
  ASSERT_FALSE(answer.verdict);
  EXPECT_EQ(answer.verdict.error().kind, ErrorKind::kEnvironment);
  const std::string why = answer.shown.json["why"].get<std::string>();
  EXPECT_TRUE(answer.verdict.error().message.starts_with(why));
  EXPECT_GT(answer.verdict.error().message.size(), why.size()) << "it says how to mend it";
  EXPECT_NE(answer.verdict.error().message.find("orrery store salvage " + store.path()),
            std::string::npos)
      << answer.verdict.error().message;
}

TEST(VerifyStore, WhatIsNoStoreIsAnErrorOfInputAndNothingIsShown) {
  const ScratchFiles files;
  for (const std::string& path : {files.path("nowhere"), files.path("")}) {
    const Result<JudgedAnswer> none = verify_store(path);
    ASSERT_FALSE(none) << path;
    EXPECT_EQ(none.error().kind, ErrorKind::kInput);
    EXPECT_NE(none.error().text().find("expected a directory with store.db, or a backup"),
              std::string::npos)
        << none.error().text();
  }
  EXPECT_FALSE(std::filesystem::exists(files.path("nowhere"))) << "nothing was made";
}

TEST(ExportStore, ShowsEventsInOrderUpToTheFirstDamage) {
  const WrittenStore store;
  std::vector<Json> events;
  const auto keep = [&](const Json& event) { events.push_back(event); };
  ASSERT_TRUE(export_store(store.path(), keep));
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0]["event"], "SpareSet");
  EXPECT_EQ(events[2]["why"], WrittenStore::kReason);
  EXPECT_EQ(events[3]["at"], "1970-01-01T00:00:00.000000002Z");
  events.clear();
  store.damage();
  const Status damaged = export_store(store.path(), keep);
  EXPECT_FALSE(damaged);
  EXPECT_EQ(events.size(), 2U);
}

TEST(BackUpStore, TheCopyIsTheSameHistoryAndIsNotWrittenTwice) {
  const WrittenStore store;
  const std::string to = store.files().path("copy.db");
  const Result<VerbAnswer> copied = back_up_store(store.path(), to);
  ASSERT_TRUE(copied) << copied.error().text();
  EXPECT_EQ(copied->text, to + ": batches 1 to 3\n");
  EXPECT_EQ(copied->json, Json({{"backup", to}, {"oldest_batch", 1}, {"newest_batch", 3}}));
  EXPECT_EQ(verified(to).shown.json, verified(store.path()).shown.json);
  const Result<VerbAnswer> again = back_up_store(store.path(), to);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, ErrorKind::kEnvironment);
  EXPECT_NE(again.error().text().find("is there already"), std::string::npos);
  const Result<VerbAnswer> none = back_up_store(store.files().path("no"), to);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::kInput);
}

TEST(CompactStore, LeavesOneSnapshotAndTheHistory) {
  const WrittenStore store;
  const std::string hash = verified(store.path()).shown.json["history_hash"];
  const Result<VerbAnswer> done = compact_store({}, store.path());
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(done->json["snapshot"], 3);
  EXPECT_EQ(done->json["dropped_batches"], 3);
  EXPECT_TRUE(done->text.ends_with(" up to batch 3, dropped 3 batches\n")) << done->text;
  const JudgedAnswer after = verified(store.path());
  EXPECT_EQ(after.shown.json["history_hash"], hash);
  EXPECT_EQ(after.shown.json["snapshots"], Json::array({3}));
  EXPECT_NE(after.shown.text.find(": good: all batches up to 3 dropped with 0 events"),
            std::string::npos)
      << after.shown.text;
  EXPECT_TRUE(after.shown.text.ends_with("\nsnapshots up to batch 3\n"));
  const Result<VerbAnswer> again = compact_store({}, store.path());
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->json["dropped_batches"], 0);
}

TEST(CompactStore, RefusesAnEmptyADamagedAndAMissingStore) {
  const WrittenStore empty(std::vector<std::vector<Event>>{});
  const Result<VerbAnswer> nothing = compact_store({}, empty.path());
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().kind, ErrorKind::kInfeasible);
  EXPECT_TRUE(nothing.error().text().ends_with(": no batches yet, nothing to compact"));
  const std::string missing = empty.files().path("missing");
  ASSERT_FALSE(compact_store({}, missing));
  EXPECT_EQ(compact_store({}, missing).error().kind, ErrorKind::kInput);
  EXPECT_FALSE(std::filesystem::exists(missing));
}

TEST(CompactStore, ADamagedStoreStaysAsItIs) {
  const WrittenStore store;
  store.damage();
  const std::map<std::string, std::string> before = bytes_of(store);
  EXPECT_TRUE(before.contains("store.db"));
  EXPECT_FALSE(compact_store({}, store.path()));
  EXPECT_TRUE(bytes_of(store) == before);
}

}  // namespace
}  // namespace orrery
