#include "verbs/store/store_transfer_answer.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "api/access/shared_files.hpp"
#include "store/etcd/etcd_server_test.hpp"
#include "store/etcd/store_url.hpp"
#include "store/sqlite/high_water.hpp"
#include "verbs/cluster/live_cluster_test.hpp"
#include "verbs/store/store_answer.hpp"
#include "verbs/store/store_setup.hpp"
#include "verbs/store/written_store_test.hpp"

namespace orrery {
namespace {

class StoreTransfer : public testing::Test {
 protected:
  void SetUp() override {
    if (!etcd_installed()) GTEST_SKIP() << "SKIPPED: " << kEtcdProgram << " is not installed";
    server_ = std::make_unique<EtcdServer>();
    store_ = std::make_unique<WrittenStore>();
  }
  [[nodiscard]] std::string url(const std::string& cluster = "copy") const {
    return server_->location(cluster).text();
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return store_->files().path(name);
  }
  [[nodiscard]] std::string source() const { return store_->path(); }
  /// Writes a file beside the source, which its owner alone can read.
  void write_beside(const std::string& name, const std::string& text) const {
    using std::filesystem::perms;
    std::filesystem::permissions(store_->files().write(name, text),
                                 perms::owner_read | perms::owner_write);
  }
  [[nodiscard]] Result<VerbAnswer> copy(const std::string& from, const std::string& to) const {
    return copy_store({}, {from, to, path("state"), Duration()});
  }
  [[nodiscard]] Result<VerbAnswer> adopt(const std::string& log) const {
    return adopt_store({}, {log, path("state"), Duration()});
  }

 private:
  std::unique_ptr<EtcdServer> server_;
  std::unique_ptr<WrittenStore> store_;
};

TEST_F(StoreTransfer, CopiesThereAndBackAndSaysWhatToDoNext) {
  const Result<VerbAnswer> there = copy(source(), url());
  ASSERT_TRUE(there) << there.error().text();
  EXPECT_EQ(there->json["from_history_hash"], there->json["history_hash"]);
  EXPECT_EQ(there->json["newest_batch"], 3);
  EXPECT_NE(there->text.find(": history hash " + there->json["history_hash"].get<std::string>() +
                             ", batches 1 to 3 and 0 archived jobs\n"),
            std::string::npos)
      << there->text;
  EXPECT_NE(there->text.find("next: orreryd --dir DIR --state " + path("state") + " --store '" +
                             url() + "' ..\n"),
            std::string::npos)
      << there->text;
  const Result<VerbAnswer> back = copy(url(), path("back"));
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back->json["history_hash"], there->json["history_hash"]);
  EXPECT_NE(back->text.find("next: orreryd --dir DIR, where DIR/store is " + path("back")),
            std::string::npos)
      << back->text;
  const Result<VerbAnswer> again = copy(source(), path("back"));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, ErrorKind::kEnvironment);
}

TEST_F(StoreTransfer, SealedFilesAreCopiedFromEtcdToEtcdAlone) {
  {
    auto store = *SqliteStore::open(source());
    ASSERT_TRUE(store->put_texts(*store->claim(), {{"secret.tokens", "stale"}}));
  }
  ASSERT_TRUE(copy(source(), url()));
  EXPECT_FALSE((*open_store_to_read(url()))->texts()->contains("secret.tokens"));
  {
    auto store = *open_store(url(), path("state/store"));
    ASSERT_TRUE(store->put_texts(*store->claim(), {{"secret.tokens", "sealed"}}));
  }
  ASSERT_TRUE(copy_store({}, {url(), url("second"), path("second"), Duration()}));
  EXPECT_EQ((*open_store_to_read(url("second")))->texts()->at("secret.tokens"), "sealed");
  ASSERT_TRUE(copy(url("second"), path("back")));
  EXPECT_FALSE((*open_store_to_read(path("back")))->texts()->contains("secret.tokens"));
}

TEST_F(StoreTransfer, ACopyIntoEtcdHasTheFilesOfTheClusterSealed) {
  write_beside("tls/ca.key", "the authority");
  write_beside("tokens", "of users");
  write_beside("cluster.key", "no key");
  const Result<VerbAnswer> refused = copy(source(), url());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kInput) << refused.error().text();
  write_beside("cluster.key", std::string(64, 'a') + "\n");
  const Result<VerbAnswer> copied = copy(source(), url());
  ASSERT_TRUE(copied) << copied.error().text();
  EXPECT_NE(
      copied->text.find(" are in the log, sealed: each controller needs the same cluster.key"),
      std::string::npos)
      << copied->text;
  const StoreTexts texts = *(*open_store_to_read(url()))->texts();
  const std::string key(32, '\xaa');
  for (const auto& [name, bytes] :
       {std::pair("secret.tls/ca.key", "the authority"), std::pair("secret.tokens", "of users")}) {
    ASSERT_TRUE(texts.contains(name)) << name;
    EXPECT_EQ(*unseal(key, name, texts.at(name)), bytes);
  }
  EXPECT_FALSE(texts.contains("secret.joins")) << "there is no such file";
}

TEST_F(StoreTransfer, WithoutAKeyTheFilesOfTheClusterStayFiles) {
  write_beside("tls/ca.key", "the authority");
  const Result<VerbAnswer> copied = copy(source(), url());
  ASSERT_TRUE(copied) << copied.error().text();
  EXPECT_NE(copied->text.find("A first controller without them makes new ones"), std::string::npos)
      << copied->text;
  EXPECT_FALSE((*open_store_to_read(url()))->texts()->contains("secret.tls/ca.key"));
}

TEST_F(StoreTransfer, ALogIsNotCopiedOntoItself) {
  ASSERT_TRUE(copy(source(), url()));
  const std::string scheme = "etcd://";
  const std::string by_another = scheme + "127.0.0.1:1," + url().substr(scheme.size());
  for (const auto& [from, to] :
       {std::pair(source(), "sqlite:" + source()), std::pair(source(), source() + "/."),
        std::pair(url(), url()), std::pair(url(), by_another), std::pair(by_another, url())}) {
    const Result<VerbAnswer> same = copy(from, to);
    ASSERT_FALSE(same) << to;
    EXPECT_EQ(same.error().kind, ErrorKind::kInput);
    EXPECT_EQ(same.error().message,
              fmt::format("{} and {}: FROM and TO are the same log", from, to));
  }
  EXPECT_TRUE(verify_store(url())->verdict);
}

TEST_F(StoreTransfer, ADirectoryThatWasCopiedAwayIsClosedAndNamesThePlace) {
  // With the state in the same directory, the mark beside the source is then that of the copy.
  const std::string state = std::filesystem::path(source()).parent_path().string();
  const Result<VerbAnswer> moved = copy_store({}, {source(), url(), state, Duration()});
  ASSERT_TRUE(moved) << moved.error().text();
  EXPECT_NE(moved->text.find(source() + " is closed: a controller starts on it no more\n"),
            std::string::npos)
      << moved->text;
  const std::string place = "`orrery store copy` moved the log to " + url();
  const auto started = SqliteStore::open(source());
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message.find(place), std::string::npos) << started.error().message;
  EXPECT_EQ(started.error().message.find("salvage"), std::string::npos);
  const Result<VerbAnswer> again = copy(source(), path("again"));
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find(place), std::string::npos) << again.error().message;
  const Result<JudgedAnswer> read = verify_store(source());
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_TRUE(read->verdict) << "it can still be read";
  EXPECT_TRUE(open_store(url(), state + "/store")) << "a controller starts on the copy";
}

TEST_F(StoreTransfer, AControllerThatWasOffDuringTheCopyFindsTheLogClosed) {
  ASSERT_TRUE(copy(source(), url()));
  const auto off = *open_store(url(), path("off/store"));
  EXPECT_FALSE(copy(url(), source())) << "something is there";
  ASSERT_TRUE(off->claim()) << "a failed copy leaves the log open";
  const Result<VerbAnswer> moved = copy_store({}, {url(), url("new"), path("new"), Duration()});
  ASSERT_TRUE(moved) << moved.error().text();
  EXPECT_NE(moved->text.find(url() + " is closed: a controller starts on it no more\n"),
            std::string::npos)
      << moved->text;
  EXPECT_FALSE(off->claim());
  const auto started = open_store(url(), path("third/store"));
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message.find("`orrery store copy` moved the log to " + url("new")),
            std::string::npos)
      << started.error().message;
  EXPECT_FALSE(copy(url(), path("again"))) << "one copy goes on";
  ASSERT_TRUE(copy_store({}, {url("new"), path("back"), path("new"), Duration()}));
  const auto refused = open_store(url("new"), path("new/store"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("moved the log to " + path("back")), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(verify_store(url("new"))->verdict) << "it can still be read";
}

TEST_F(StoreTransfer, ALogInEtcdIsVerifiedAndExported) {
  ASSERT_TRUE(copy(source(), url()));
  const Result<JudgedAnswer> good = verify_store(url());
  ASSERT_TRUE(good) << good.error().text();
  EXPECT_TRUE(good->verdict);
  EXPECT_TRUE(good->shown.text.starts_with(url() + ": good: batches 1 to 3 with 4 events"))
      << good->shown.text;
  int events = 0;
  ASSERT_TRUE(export_store(url(), [&](const Json&) { ++events; }));
  EXPECT_EQ(events, 4);
  for (const std::string& wrong : {url("none"), std::string("etcd://host/x")}) {
    const Result<JudgedAnswer> none = verify_store(wrong);
    ASSERT_FALSE(none) << wrong;
    EXPECT_EQ(none.error().kind, ErrorKind::kInput) << none.error().text();
    EXPECT_EQ(export_store(wrong, {}).error().kind, ErrorKind::kInput);
  }
}

TEST_F(StoreTransfer, DamageInEtcdIsShownWithItsPlace) {
  ASSERT_TRUE(copy(source(), url()));
  {
    auto store = *open_store(url(), path("state/store"));
    ASSERT_TRUE(store->append(*store->claim(), {4, "no record"}));
  }
  const Result<JudgedAnswer> damaged = verify_store(url());
  ASSERT_TRUE(damaged) << damaged.error().text();
  EXPECT_EQ(damaged->shown.json["batch"], 4);
  ASSERT_FALSE(damaged->verdict);
  EXPECT_NE(damaged->verdict.error().message.find("etcdctl snapshot restore"), std::string::npos)
      << damaged->verdict.error().message;
}

TEST_F(StoreTransfer, AdoptingSaysWhatIsLostAndKeepsItsJobNumbersFromUse) {
  ASSERT_TRUE(copy(source(), url()));
  ASSERT_TRUE(HighWaterFile::put(path("state/store"), {9, 99, 5}));
  const Result<VerbAnswer> adopted = adopt(url());
  ASSERT_TRUE(adopted) << adopted.error().text();
  EXPECT_EQ(adopted->json["lost_batches"], Json({4, 9}));
  EXPECT_EQ(adopted->json["lost_jobs"], Json({0, 4}));
  EXPECT_EQ(adopted->json["term"], 100);
  EXPECT_TRUE(adopted->text.starts_with(url() +
                                        ": adopted up to batch 3, in term 100\nlost: batches 4 to "
                                        "9\nlost: jobs 0 to 4; these numbers are not given out "
                                        "again\nnext: the same command on the machine of each"))
      << adopted->text;
  // Also a controller of another machine, which has no such mark, passes the numbers over.
  const auto log = *open_store_to_read(url());
  const auto setup = StoredSetup::load({}, *log);
  ASSERT_TRUE(setup) << setup.error().text();
  EXPECT_EQ(*(*setup)->next_job(*log), 5u);
  const Result<VerbAnswer> again = adopt(url());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind, ErrorKind::kInfeasible);
}

TEST(StoreOfAnotherKind, BackupOfALogInEtcdSaysWhatToUse) {
  const std::string url = "etcd://127.0.0.1:1/none";
  const Result<VerbAnswer> backup = back_up_store(url, "file.db");
  ASSERT_FALSE(backup);
  EXPECT_EQ(backup.error().kind, ErrorKind::kInput);
  EXPECT_NE(backup.error().message.find("etcdctl snapshot save file.db"), std::string::npos);
}

/// A cluster whose leader has written two batches of a log in etcd, in term 1.
class CompactSharedLogTest : public LiveClusterTest {
 protected:
  void SetUp() override {
    if (!etcd_installed()) GTEST_SKIP() << "SKIPPED: " << kEtcdProgram << " is not installed";
    LiveClusterTest::SetUp();
    server_ = std::make_unique<EtcdServer>();
    v1::CompactStoreResponse done;
    done.set_snapshot(7);
    done.set_snapshot_bytes(100);
    done.set_dropped_batches(3);
    answers<v1::CompactStoreRequest>("CompactStore", done);
    leads(1, 2);
    write_cluster_directory();
    write_log("own", controller_.address());
  }
  void leads(std::uint64_t term, std::uint64_t batch) {
    v1::ControllerState state;
    state.set_leads(true);
    state.set_term(term);
    state.set_batch(batch);
    answers<v1::GetControllerRequest>("GetController", state);
  }
  /// Two batches, in term 1.
  void write_log(const std::string& cluster, const std::string& address) const {
    auto store = *EtcdStore::open(server_->location(cluster), files_.path(cluster));
    const StoreTerm term = *store->claim_after({}, address + " 127.0.0.1:80");
    ASSERT_TRUE(store->append(term, {1, "one"}));
    ASSERT_TRUE(store->append(term, {2, "two"}));
  }
  [[nodiscard]] std::string url(const std::string& cluster) const {
    return server_->location(cluster).text();
  }

 private:
  std::unique_ptr<EtcdServer> server_;
};

TEST_F(CompactSharedLogTest, TheLogOfAnotherClusterIsNotCompacted) {
  write_log("other", "127.0.0.1:1");
  const Result<VerbAnswer> other = compact_store(options_, url("other"));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, ErrorKind::kInput);
  for (const std::string& name : {url("other"), files_.path("cluster"), controller_.address()}) {
    EXPECT_NE(other.error().message.find(name), std::string::npos) << other.error().message;
  }
  EXPECT_EQ(compact_store(options_, url("none")).error().kind, ErrorKind::kInput);
  leads(2, 2);
  EXPECT_FALSE(compact_store(options_, url("own"))) << "it is in another term";
  leads(1, 9);
  EXPECT_FALSE(compact_store(options_, url("own"))) << "it has batches that the log has not";
  EXPECT_TRUE(heard<v1::CompactStoreRequest>("CompactStore").empty());
}

TEST_F(CompactSharedLogTest, TheLeaderOfTheClusterDoesIt) {
  const std::string url = this->url("own");
  const Result<VerbAnswer> compact = compact_store(options_, url);
  ASSERT_TRUE(compact) << compact.error().text();
  EXPECT_EQ(compact->text, url +
                               ", by the running controller: wrote a snapshot of 100 bytes up to "
                               "batch 7, dropped 3 batches\n");
  EXPECT_EQ(heard<v1::CompactStoreRequest>("CompactStore").size(), 1u);
}

}  // namespace
}  // namespace orrery
