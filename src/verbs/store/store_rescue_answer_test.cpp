#include "verbs/store/store_rescue_answer.hpp"

#include <gtest/gtest.h>

#include "verbs/store/store_answer.hpp"
#include "verbs/store/store_setup.hpp"
#include "verbs/store/written_store_test.hpp"

namespace orrery {
namespace {

TEST(RestoredAnswer, TellsOfTheOldStoreAndOfNumbersOnlyWhereThereAreSome) {
  RestoredStore restored{.extent = {.oldest = 1, .newest = 9}};
  EXPECT_EQ(restored_answer("/c", restored).text, "/c/store: restored up to batch 9\n");
  restored.kept = "/c/store.1";
  restored.next_job = 12;
  const VerbAnswer answer = restored_answer("/c", restored);
  EXPECT_EQ(answer.text,
            "/c/store: restored up to batch 9\nprevious store kept as: /c/store.1\n"
            "job numbers below 12 will not be reused\n");
  EXPECT_EQ(
      answer.json,
      Json({{"store", "/c/store"}, {"newest_batch", 9}, {"next_job", 12}, {"kept", "/c/store.1"}}));
}

SalvagedStore salvaged() {
  return {.extent = {.oldest = 1, .newest = 5},
          .batches = 5,
          .archived = 2,
          .history_hash = 0xab,
          .mark = HighWater{.batch = 5, .term = 1, .next_job = 3}};
}

TEST(SalvagedAnswer, NothingLostIsSaid) {
  const VerbAnswer answer = salvaged_answer("/new", salvaged(), 3);
  EXPECT_EQ(answer.text,
            "/new: 5 batches up to batch 5 and 2 archived jobs are good, history "
            "00000000000000ab\nnothing is lost\n"
            "to use the salvaged store: orrery store restore /new --dir DIR\n");
  EXPECT_EQ(answer.json["lost_batches"], Json::array());
  EXPECT_EQ(answer.json["lost_jobs"], Json::array());
  EXPECT_EQ(answer.json["history_hash"], "00000000000000ab");
}

TEST(SalvagedAnswer, LostBatchesAndJobsAreRanges) {
  SalvagedStore of = salvaged();
  of.damage = "batch 6: checksum";
  of.lost_from = 6;
  of.lost_to = 8;
  of.mark->next_job = 10;
  const VerbAnswer answer = salvaged_answer("/new", of, 3);
  EXPECT_NE(answer.text.find("\ndamage: batch 6: checksum\nlost: batches 6 to 8\n"
                             "lost: jobs 3 to 9\nto use"),
            std::string::npos)
      << answer.text;
  EXPECT_EQ(answer.json["lost_batches"], Json::array({6, 8}));
  EXPECT_EQ(answer.json["lost_jobs"], Json::array({3, 9}));
}

TEST(SalvagedAnswer, WithoutAMarkWhatIsLostIsUnknown) {
  SalvagedStore of = salvaged();
  of.damage = "batch 6: checksum";
  of.mark = std::nullopt;
  const VerbAnswer answer = salvaged_answer("/new", of, 3);
  EXPECT_NE(
      answer.text.find("\nthe last acknowledged batch is unknown: the high_water file is lost\n"),
      std::string::npos)
      << answer.text;
  EXPECT_EQ(answer.json["lost_jobs"], Json::array());
}

TEST(SalvageDamaged, WhatComesBeforeTheDamageCanBeRestored) {
  const WrittenStore store;
  store.damage();
  const std::string to = store.files().path("salvaged");
  const Result<VerbAnswer> answer = salvage_damaged({}, {store.path(), to});
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer->json["batches"], 1);
  EXPECT_EQ(answer->json["newest_batch"], 1);
  EXPECT_EQ(answer->json["lost_batches"], Json::array({2, 3}));
  EXPECT_NE(answer->text.find("\nlost: batches 2 to 3\n"), std::string::npos) << answer->text;
  const Result<JudgedAnswer> good = verify_store(to);
  ASSERT_TRUE(good);
  EXPECT_TRUE(good->verdict);

  CommandOptions options;
  options.cluster_directory = store.files().path("cluster");
  std::filesystem::create_directory(options.cluster_directory);
  const Result<VerbAnswer> restored = restore_backup(options, {.from = to, .next_job = 4});
  ASSERT_TRUE(restored) << restored.error().text();
  EXPECT_EQ(restored->json["store"], options.cluster_directory + "/store");
  EXPECT_EQ(restored->json["newest_batch"], 1);
  EXPECT_EQ(restored->json["next_job"], 4);
  EXPECT_TRUE(verify_store(options.cluster_directory + "/store")->verdict);
}

TEST(SalvageDamaged, NeverWritesOverWhatIsThere) {
  const WrittenStore store;
  const std::string to = store.files().path("there");
  std::filesystem::create_directory(to);
  EXPECT_FALSE(salvage_damaged({}, {store.path(), to}));
  EXPECT_TRUE(std::filesystem::is_empty(to));
}

TEST(SalvageDamaged, AClosedStoreIsNeitherSalvagedNorRestored) {
  const WrittenStore store;
  const std::string backup = store.files().path("backup.db");
  ASSERT_TRUE(back_up_store(store.path(), backup));
  ASSERT_TRUE(close_moved(store.path(), "etcd://e:1/new"));
  const std::string place = "`orrery store copy` moved the log to etcd://e:1/new; ";
  const auto is_refused = [&](const Result<VerbAnswer>& answer) {
    return !answer && answer.error().message.find(place) != std::string::npos;
  };
  EXPECT_TRUE(is_refused(salvage_damaged({}, {store.path(), store.files().path("salvaged")})));
  EXPECT_FALSE(std::filesystem::exists(store.files().path("salvaged")));
  CommandOptions other;
  other.cluster_directory = store.files().path("cluster");
  std::filesystem::create_directory(other.cluster_directory);
  EXPECT_TRUE(is_refused(restore_backup(other, {.from = store.path()})));
  CommandOptions own;
  own.cluster_directory = std::filesystem::path(store.path()).parent_path().string();
  EXPECT_TRUE(is_refused(restore_backup(own, {.from = backup})));
  EXPECT_TRUE(is_refused(compact_store({}, store.path())));
  const Result<VerbAnswer> forced = restore_backup(own, {.from = backup, .force = true});
  ASSERT_TRUE(forced) << forced.error().text();
  EXPECT_TRUE(SqliteStore::open(store.path())) << "a new store is in its place";
}

TEST(WithCatalogOf, TheCatalogBesideTheStoreCountsUnlessOneIsNamed) {
  const ScratchFiles files;
  EXPECT_EQ(with_catalog_of({}, files.path("store")).catalog_directory, "");
  files.write("catalog/x.yaml", "");
  for (const char* name : {"store", "store/", "backup.db"}) {
    EXPECT_EQ(with_catalog_of({}, files.path(name)).catalog_directory, files.path("catalog"))
        << name;
  }
  CommandOptions named;
  named.catalog_directory = "mine";
  EXPECT_EQ(with_catalog_of(named, files.path("store")).catalog_directory, "mine");
}

TEST(StoredSetup, OfAStoreThatWasNeverBegunIsRefused) {
  const ScratchFiles files;
  auto store = SqliteStore::open(files.path("store"));
  ASSERT_TRUE(store);
  const auto none = StoredSetup::load({}, **store);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::kEnvironment);
  EXPECT_TRUE(none.error().text().starts_with((*store)->name() + ": ")) << none.error().text();
}

}  // namespace
}  // namespace orrery
