// Damage of a store's files after a crash: acknowledged batches are there, or the store is refused
// with the file and the place.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/numbers/rng.hpp"
#include "store/backend_test.hpp"
#include "store/sqlite/sqlite_database.hpp"
#include "store/sqlite/wal_scan.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kAcknowledged = 106;

std::string file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void put_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// A store whose writer was killed: copies of its files, in a directory of their own.
class StoreDamage : public testing::Test {
 protected:
  void SetUp() override {
    store_ = backend_.open();
    term_ = *store_->claim();
    append_up_to(20);
    ASSERT_TRUE(SqliteStore::backup(backend_.directory(), backend_.path("older.db")));
    append_up_to(kAcknowledged);
    copy_files();
  }
  void append_up_to(std::uint64_t newest) {
    for (std::uint64_t number = store_->extent()->newest + 1; number <= newest; ++number) {
      ASSERT_TRUE(store_->append(term_, {number, std::string(700, 'b'), number / 3}));
    }
  }
  void copy_files() {
    fs::remove_all(directory());
    fs::create_directories(directory());
    for (const char* name : {"store.db", "store.db-wal", "high_water"}) {
      fs::copy_file(backend_.directory() + "/" + name, file(name));
    }
  }
  [[nodiscard]] std::string directory() const { return backend_.path("cluster/store"); }
  [[nodiscard]] std::string file(const std::string& name) const { return directory() + "/" + name; }

  void flip(const std::string& name, std::size_t at, std::size_t count) {
    std::string bytes = file_bytes(file(name));
    for (std::size_t i = at; i < at + count && i < bytes.size(); ++i) {
      bytes[i] = static_cast<char>(bytes[i] ^ 0x5a);
    }
    put_bytes(file(name), bytes);
  }
  /// Returns the error of opening to write, which is also that of opening to read; empty: it opens.
  [[nodiscard]] std::string refusal() const {
    const auto reader = SqliteStore::open_to_read(directory());
    const std::string read = reader ? "" : reader.error().message;
    const auto store = SqliteStore::open(directory());
    EXPECT_EQ(store ? "" : store.error().message, read);
    return read;
  }
  void expect_refused(const std::vector<std::string>& said) {
    const std::string wal = file_bytes(file("store.db-wal"));
    const std::string why = refusal();
    for (const std::string& part : said) {
      EXPECT_NE(why.find(part), std::string::npos) << part << " is not in: " << why;
    }
    EXPECT_NE(why.find("orrery store restore BACKUP --dir " + backend_.path("cluster") + "\n"),
              std::string::npos)
        << why;
    EXPECT_NE(why.find("orrery store salvage " + directory() + " --out NEW"), std::string::npos)
        << why;
    EXPECT_EQ(file_bytes(file("store.db-wal")), wal) << "what could be salvaged was changed";
  }

  SqliteBackend backend_;
  std::unique_ptr<Store> store_;
  StoreTerm term_ = StoreTerm::kNone;
};

TEST_F(StoreDamage, WithoutDamageEveryAcknowledgedBatchIsThere) {
  EXPECT_EQ(refusal(), "");
  const auto store = SqliteStore::open(directory());
  EXPECT_EQ((*store)->extent()->newest, kAcknowledged);
  EXPECT_EQ(*read_high_water(directory()),
            (HighWater{.batch = kAcknowledged, .term = 1, .next_job = kAcknowledged / 3}));
}

TEST_F(StoreDamage, FlippedBytesInTheMiddleOfTheLogAreRefusedWithTheirPlace) {
  const std::size_t middle = fs::file_size(file("store.db-wal")) / 2;
  flip("store.db-wal", middle, 8);
  const auto found = scan_wal(file("store.db-wal"));
  ASSERT_TRUE(found && *found);
  EXPECT_LE((*found)->offset, middle);
  EXPECT_GT((*found)->offset + 4096 + 24, middle);
  expect_refused({file("store.db-wal") + ": byte " + std::to_string((*found)->offset) + ":"});
}

TEST_F(StoreDamage, ALogThatIsCutShortIsRefusedWithTheBatchesThatAreMissing) {
  for (const std::size_t cut : {std::size_t{5000}, std::size_t{4096 + 24}, std::size_t{200'000}}) {
    copy_files();
    fs::resize_file(file("store.db-wal"), fs::file_size(file("store.db-wal")) - cut);
    expect_refused({"to 106", "store.db", "high_water"});
  }
  fs::resize_file(file("store.db-wal"), 0);
  expect_refused({"batches 1 to 106 are missing"});
}

TEST_F(StoreDamage, AMissingLogIsRefused) {
  fs::remove(file("store.db-wal"));
  expect_refused({"up to 106 were acknowledged"});
}

TEST_F(StoreDamage, AnOlderDatabaseIsRefused) {
  fs::copy_file(backend_.path("older.db"), file("store.db"), fs::copy_options::overwrite_existing);
  fs::remove(file("store.db-wal"));
  expect_refused({"batches 21 to 106 are missing"});
}

TEST_F(StoreDamage, ADatabaseThatIsCutShortIsRefusedWithItsLastByte) {
  store_.reset();  // closed properly: everything is in the database
  for (const std::size_t cut : {std::size_t{4096}, std::size_t{5000}, std::size_t{40'000}}) {
    fs::copy_file(backend_.directory() + "/store.db", file("store.db"),
                  fs::copy_options::overwrite_existing);
    fs::remove(file("store.db-wal"));
    const std::size_t size = fs::file_size(file("store.db")) - cut;
    fs::resize_file(file("store.db"), size);
    expect_refused({file("store.db") + ": ", "byte " + std::to_string(size)});
  }
}

TEST_F(StoreDamage, AnEmptyOrMissingDatabaseIsRefused) {
  fs::remove(file("store.db-wal"));
  fs::resize_file(file("store.db"), 0);
  expect_refused({"is empty or missing", "up to 106"});
  fs::remove(file("store.db"));
  expect_refused({"is empty or missing", "up to 106"});
  EXPECT_FALSE(fs::exists(file("store.db")));
}

TEST_F(StoreDamage, AMarkThatIsMissingOrDamagedIsRefusedAndOneRecordIsEnough) {
  flip("high_water", 40, 1);
  EXPECT_EQ(refusal(), "");
  flip("high_water", 4096 + 40, 1);
  expect_refused({file("high_water") + ": byte 0: "});
  fs::remove(file("high_water"));
  expect_refused({file("high_water") + ": is missing"});
}

TEST_F(StoreDamage, ATailThatWasNeverAcknowledgedIsCutOff) {
  const std::string mark = file_bytes(file("high_water"));
  append_up_to(kAcknowledged + 1);
  copy_files();
  put_bytes(file("high_water"), mark);
  fs::resize_file(file("store.db-wal"), fs::file_size(file("store.db-wal")) - 1000);
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ((*SqliteStore::open(directory()))->extent()->newest, kAcknowledged);
}

TEST_F(StoreDamage, AStoreOfAnEarlierVersionGetsItsMark) {
  {
    auto database = SqliteDatabase::open(file("store.db"), SqliteDatabase::Access::kWrite);
    ASSERT_TRUE((*database)->execute("DROP TABLE marked"));
  }
  fs::remove(file("high_water"));
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(*read_high_water(directory()), (HighWater{.batch = kAcknowledged, .term = 1}));
  fs::remove(file("high_water"));
  EXPECT_NE(refusal().find("is missing"), std::string::npos);
}

/// Flips or cuts every file anywhere: no acknowledged batch is missing without a report.
TEST_F(StoreDamage, OfAnyDamageNothingAcknowledgedIsLostSilently) {
  Rng rng(17);
  std::size_t refused = 0;
  constexpr std::size_t kCases = 60;
  for (std::size_t i = 0; i < kCases; ++i) {
    copy_files();
    const std::string name = rng.below(4) == 0 ? "high_water" : "store.db-wal";
    const std::size_t size = fs::file_size(file(name));
    const std::size_t at = rng.below(size);
    if (rng.below(3) == 0) {
      fs::resize_file(file(name), at);
    } else {
      flip(name, at, 1 + rng.below(64));
    }
    const auto store = SqliteStore::open(directory());
    refused += store ? 0 : 1;
    if (!store) continue;
    EXPECT_EQ((*store)->extent()->newest, kAcknowledged) << name << " at " << at << ", case " << i;
    const auto batches = (*store)->read(0, std::size_t{1} << 24);
    ASSERT_TRUE(batches);
    EXPECT_EQ(batches->size(), kAcknowledged) << name << " at " << at << ", case " << i;
  }
  EXPECT_GT(refused, kCases / 2);
  EXPECT_LT(refused, kCases) << "damage of one record of the mark loses nothing";
}

}  // namespace
}  // namespace orrery
