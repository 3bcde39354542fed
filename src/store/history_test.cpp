#include "store/history.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "base/numbers/rng.hpp"
#include "control/codec/any_record_test.hpp"
#include "control/scripted_cluster_test.hpp"
#include "control/state/snapshot.hpp"
#include "store/backend_test.hpp"
#include "store/event_json.hpp"
#include "store/setup_texts.hpp"

namespace orrery {
namespace {

// --- A run that is written while it goes on -----------------------------------------------------

/// Random events of a fleet during a day, one step at a time.
class RandomDay {
 public:
  RandomDay(ScriptedCluster& cluster, std::uint64_t seed) : cluster_(cluster), rng_(seed) {}

  void step() {
    switch (rng_.below(8)) {
      case 0:
      case 1:
        cluster_.submit(cluster_.job(1 + static_cast<std::uint32_t>(rng_.below(16))),
                        std::to_string(rng_.below(40)));
        return;
      case 2:
      case 3:
        return cluster_.wait(Duration::seconds(static_cast<std::int64_t>(rng_.below(900))));
      case 4:
        return change_node();
      default:
        return observe_job();
    }
  }

 private:
  void change_node() {
    const NodeId node(static_cast<std::uint32_t>(rng_.below(4)));
    if (rng_.below(3) == 0) {
      cluster_.send(NodeFault{node, FaultLayer::kHost, "fan", rng_.below(2) == 0, true});
    } else {
      cluster_.send(NodeRepaired{node});
      cluster_.send(ResumeNode{node});
    }
  }
  void observe_job() {
    const auto running = cluster_.state().running();
    if (running.empty()) return;
    const JobId id = running[rng_.below(running.size())].id;
    if (cluster_.phase(id) == JobPhase::kStarting) return cluster_.up(id);
    if (cluster_.phase(id) == JobPhase::kStopping || rng_.below(3) == 0) return cluster_.gone(id);
    cluster_.end(id, rng_.below(3) == 0 ? ExitKind::kProgram : ExitKind::kDone);
  }

  ScriptedCluster& cluster_;
  Rng rng_;
};

/// Writes the events of a cluster into a store.
class WrittenRun {
 public:
  WrittenRun(const ScriptedCluster& cluster, TestBackend& backend)
      : cluster_(cluster), backend_(backend) {
    reopen();
    follower_ = FollowedCore::recover(*store_, cluster_.setup()).value();
  }

  /// Takes in new events, some of which wait to be written.
  void take_in() {
    for (; seen_ < cluster_.log().size(); ++seen_) {
      const TimedEvent& event = cluster_.log()[seen_];
      writer_->append(event.at, {&event.what, 1});
      unbroken_.append(event.at, event.what);
    }
  }
  void write() {
    const std::string bytes = writer_->take();
    if (bytes.empty()) return;
    const Batch batch{++newest_, bytes};
    const StorageStatus status = store_->append(term_, batch);
    ASSERT_TRUE(status) << status.error().text();
    const HistoryResult<void> taken = follower_->take(batch);
    ASSERT_TRUE(taken) << taken.error().text();
  }
  /// Another process, which has followed from the beginning, takes over.
  RecoveredCore take_over() { return follower_->lead(); }
  void compact() {
    write();
    ASSERT_TRUE(store_->put_snapshot(term_, {newest_, writer_->snapshot(cluster_.state())}));
    ASSERT_TRUE(drop_before_previous(*store_, term_));
    writer_->begin_segment();
  }
  /// Ends the process and lets another one take over.
  void restart() {
    write();
    reopen();
  }
  [[nodiscard]] Store& store() { return *store_; }
  [[nodiscard]] std::uint64_t unbroken_hash() const { return unbroken_.history_hash(); }
  [[nodiscard]] std::uint64_t events() const { return unbroken_.records(); }

 private:
  void reopen() {
    store_.reset();
    store_ = backend_.open();
    term_ = *store_->claim();
    const auto recovered = recover_core(*store_, cluster_.setup());
    ASSERT_TRUE(recovered) << recovered.error().text();
    EXPECT_EQ(digest_of(recovered->core->state()), digest_of(cluster_.state()));
    EXPECT_EQ(recovered->history.history_hash, unbroken_.history_hash());
    EXPECT_EQ(recovered->history.newest, newest_);
    EXPECT_TRUE(recovered->history.passed_over.empty());
    writer_.emplace(HistoryWriterOptions{
        .writer = "test", .setup = "", .before = recovered->history.history_hash});
  }

  const ScriptedCluster& cluster_;
  TestBackend& backend_;
  std::unique_ptr<Store> store_;
  StoreTerm term_ = StoreTerm::kNone;
  std::unique_ptr<FollowedCore> follower_;  ///< gets every batch as it is written
  std::optional<HistoryWriter> writer_;
  Journal unbroken_;
  std::uint64_t newest_ = 0;
  std::size_t seen_ = 0;
};

void run_random(std::uint64_t seed, BackendKind kind) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  ScriptedCluster cluster;
  RandomDay day(cluster, seed);
  const std::unique_ptr<TestBackend> backend = make_backend(kind);
  WrittenRun run(cluster, *backend);
  Rng rng = Rng::stream(seed, "writer");
  constexpr int kSteps = 120;
  for (int i = 0; i < kSteps && !testing::Test::HasFailure(); ++i) {
    day.step();
    run.take_in();
    if (rng.below(2) == 0) run.write();
    if (rng.below(20) == 0) run.compact();
    if (rng.below(15) == 0) run.restart();
  }
  run.restart();
  const auto verified = verify_history(run.store());
  ASSERT_TRUE(verified) << verified.error().text();
  EXPECT_EQ(verified->history_hash, run.unbroken_hash());
  EXPECT_LE(verified->read.events, run.events());
  EXPECT_LE(verified->snapshots.size(), 2u);
  const RecoveredCore followed = run.take_over();
  EXPECT_EQ(digest_of(followed.core->state()), digest_of(cluster.state()));
  EXPECT_EQ(followed.history.history_hash, run.unbroken_hash());
}

TEST(History, AFollowerRefusesABatchThatIsNotTheNext) {
  ScriptedCluster cluster;
  MemoryBackend backend;
  const std::unique_ptr<Store> store = backend.open();
  const auto core = FollowedCore::recover(*store, cluster.setup()).value();
  HistoryWriter writer({.writer = "test"});
  const Event event = SpareSet{NodeId(0), true};
  writer.append(cluster.now(), {&event, 1});
  const std::string bytes = writer.take();
  const HistoryResult<void> gap = core->take({2, bytes});
  ASSERT_FALSE(gap);
  EXPECT_NE(gap.error().text().find("the next one is batch 2"), std::string::npos)
      << gap.error().text();
  ASSERT_TRUE(core->take({1, bytes}));
  const HistoryResult<void> again = core->take({2, bytes});
  ASSERT_FALSE(again) << "a segment that continues another history";
  EXPECT_NE(again.error().text().find("continues history"), std::string::npos)
      << again.error().text();
}

TEST(History, AChangedFleetIsRecoveredFromItsEventAndFromASnapshot) {
  ScriptedCluster cluster;
  MemoryBackend backend;
  WrittenRun run(cluster, backend);
  (void)cluster.run(cluster.job(8));
  std::string grown = four_nodes();
  grown.replace(grown.find("count: 2}]"), 8, "count: 3");
  ASSERT_TRUE(cluster.send(SetFleet{grown}).answer.status);
  (void)cluster.run(cluster.job(8));
  run.take_in();
  run.restart();
  ControlSetup poorer = cluster.setup();
  poorer.fleets.source = [](const std::string&) -> Result<const ControlSetup*> {
    return input_error({"fleet.yaml", 3, 7}, "no node type \"x\"");
  };
  for (const bool compacted : {false, true}) {
    if (compacted) run.compact();
    const auto recovered = recover_core(run.store(), poorer);
    ASSERT_FALSE(recovered) << compacted;
    EXPECT_NE(recovered.error().text().find("no node type \"x\""), std::string::npos)
        << recovered.error().text();
  }
  run.restart();
}

TEST(HistoryProperty, AfterRestartsAndSnapshotsAtRandomMomentsTheEndIsThatOfTheUnbrokenRun) {
  for (std::uint64_t seed = 1; seed <= 3 && !HasFailure(); ++seed) {
    run_random(seed, BackendKind::kMemory);
  }
  run_random(4, BackendKind::kSqlite);
}

// --- Damage -------------------------------------------------------------------------------------

/// Three segments of four batches, each of two events, with snapshots after the first two.
class DamagedHistory : public testing::Test {
 protected:
  DamagedHistory() {
    State state(cluster_.setup());
    HistoryWriter writer({.writer = "test"});
    for (std::uint64_t number = 1; number <= 12; ++number) {
      for (const bool spare : {true, false}) {
        const Event event = SpareSet{NodeId(static_cast<std::uint32_t>(number % 4)), spare};
        writer.append(cluster_.now(), {&event, 1});
        state.apply(cluster_.now(), event);
      }
      append(store_, {number, writer.take()});
      if (number % 4 != 0 || number == 12) continue;
      EXPECT_TRUE(store_.put_snapshot(term_, {number, writer.snapshot(state)}));
      writer.begin_segment();
    }
    digest_ = digest_of(state);
  }
  void append(Store& store, const Batch& batch) const { EXPECT_TRUE(store.append(term_, batch)); }
  /// Returns the damage that verification finds.
  HistoryDamage damage() {
    const auto verified = verify_history(store_);
    EXPECT_FALSE(verified);
    return verified ? HistoryDamage{} : verified.error();
  }
  /// Returns the error of a recovery; "" if there is none.
  std::string recovery() {
    const auto recovered = recover_core(store_, cluster_.setup());
    if (!recovered) return recovered.error().text();
    EXPECT_EQ(digest_of(recovered->core->state()), digest_);
    used_ = recovered->history.snapshot.value_or(0);
    passed_over_ = recovered->history.passed_over.size();
    return "";
  }

  ScriptedCluster cluster_;
  MemoryDisk disk_;
  MemoryStore store_{disk_};
  StoreTerm term_ = *store_.claim();
  std::uint64_t digest_ = 0;
  std::uint64_t used_ = 0;
  std::size_t passed_over_ = 0;
};

TEST_F(DamagedHistory, WithoutAnyIsReadFromTheNewestSnapshotOn) {
  EXPECT_EQ(recovery(), "");
  EXPECT_EQ(used_, 8u);
  const auto verified = verify_history(store_);
  ASSERT_TRUE(verified) << verified.error().text();
  EXPECT_EQ(verified->read.batches, 12u);
  EXPECT_EQ(verified->read.segments, 3u);
  EXPECT_EQ(verified->read.events, 24u);
}

TEST_F(DamagedHistory, AFlippedBitIsReportedWithItsPlaceAndNothingAfterItIsRead) {
  std::string& bytes = disk_.batches[6];
  bytes[bytes.size() / 2 + 3] ^= 4;
  HistoryReader reader = *HistoryReader::open(store_, {}, nullptr);
  std::uint64_t events = 0;
  HistoryResult<bool> more = true;
  while (more && *more) more = reader.next_batch([&](const TimedEvent&) { ++events; });
  ASSERT_FALSE(more);
  EXPECT_EQ(events, 11u);
  const HistoryDamage found = damage();
  EXPECT_EQ(found.place.segment, 5u);
  EXPECT_EQ(found.place.batch, 6u);
  EXPECT_EQ(found.place.offset, bytes.size() / 2);
  EXPECT_NE(found.message.find("memory: segment 5, batch 6, byte"), std::string::npos)
      << found.message;
  EXPECT_EQ(recovery(), "") << "the newest snapshot covers it";
}

TEST_F(DamagedHistory, AfterTheNewestSnapshotEndsTheRecovery) {
  disk_.batches[10].back() ^= 1;
  EXPECT_NE(recovery().find("segment 9, batch 10"), std::string::npos) << recovery();
}

TEST_F(DamagedHistory, OfTheNewestSnapshotMakesTheOneBeforeServe) {
  disk_.snapshots[8][100] ^= 1;
  EXPECT_EQ(damage().place.batch, 8u);
  EXPECT_EQ(recovery(), "");
  EXPECT_EQ(used_, 4u);
  EXPECT_EQ(passed_over_, 1u);
  disk_.snapshots[4][100] ^= 1;
  EXPECT_EQ(recovery(), "") << "all batches are there";
  ASSERT_TRUE(store_.drop_covered(term_, 4));
  EXPECT_NE(recovery().find("no snapshot of them is good"), std::string::npos) << recovery();
  EXPECT_NE(damage().message.find("the snapshot up to batch 4"), std::string::npos);
}

TEST_F(DamagedHistory, IsAlsoABatchThatIsMissingOrCutOrOfAnotherHistory) {
  const MemoryDisk good = disk_;
  disk_.batches.erase(10);
  EXPECT_NE(damage().message.find("the next one is batch 11"), std::string::npos);
  disk_ = good;
  disk_.batches.erase(12);
  EXPECT_NE(damage().message.find("is not there"), std::string::npos);
  disk_ = good;
  disk_.batches[11].resize(disk_.batches[11].size() - 3);
  EXPECT_NE(damage().message.find("ends inside a record"), std::string::npos);
  disk_ = good;
  std::swap(disk_.batches[5], disk_.batches[9]);
  EXPECT_NE(damage().message.find("continues history"), std::string::npos);
  disk_ = good;
  std::swap(disk_.snapshots[4], disk_.snapshots[8]);
  EXPECT_NE(damage().message.find("of another history"), std::string::npos);
}

TEST_F(DamagedHistory, AreAlsoTextsThatTheLogDoesNotRestOn) {
  ASSERT_TRUE(store_.put_texts(term_, store_texts({.fleet = "another"})));
  EXPECT_NE(damage().message.find("rests on the facts \"\""), std::string::npos);
}

TEST_F(DamagedHistory, InADatabaseFileIsFoundWhereverTheFlippedByteLies) {
  const SqliteBackend backend;
  const std::string marker = "a-reason-that-is-looked-for";
  {
    auto store = SqliteStore::open(backend.directory());
    ASSERT_TRUE(store);
    const StoreTerm term = *(*store)->claim();
    HistoryWriter writer({.writer = "test"});
    for (std::uint64_t number = 1; number <= 3; ++number) {
      const Event event = DecisionDropped{JobId(0), number == 2 ? marker : "another"};
      writer.append(cluster_.now(), {&event, 1});
      ASSERT_TRUE((*store)->append(term, {number, writer.take()}));
    }
  }
  const std::string path = backend.directory() + "/store.db";
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const std::size_t at = bytes.find(marker);
  ASSERT_NE(at, std::string::npos);
  file.seekp(static_cast<std::streamoff>(at)).put('A').flush();
  const auto store = SqliteStore::open_to_read(backend.directory());
  ASSERT_TRUE(store) << store.error().text();
  const auto verified = verify_history(**store);
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().place.batch, 2u);
  EXPECT_NE(verified.error().message.find("store.db: segment 1, batch 2, byte 0: "),
            std::string::npos)
      << verified.error().message;
}

// --- Texts and fields ---------------------------------------------------------------------------

TEST(SetupTexts, ComeBackAndTheirDigestIsThatOfTheFacts) {
  SetupTexts setup{.fleet = "f", .tenants = "", .policy = "p", .begin = Instant::from_ns(-5)};
  const Result<SetupTexts> again = setup_texts(store_texts(setup));
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->begin, setup.begin);
  EXPECT_EQ(setup_digest(*again), setup_digest(setup));
  setup.writer = "orreryd 9";
  EXPECT_EQ(setup_digest(*again), setup_digest(setup)) << "a newer program may go on";
  setup.tenants = "t";
  EXPECT_NE(setup_digest(*again), setup_digest(setup));
  EXPECT_FALSE(setup_texts({{"fleet.yaml", "f"}}));
}

TEST(EventJson, HasANameForEveryFieldOfEveryEvent) {
  Rng rng(7);
  for (std::size_t type = 0; type < std::variant_size_v<Event>; ++type) {
    for (int i = 0; i < 20; ++i) {
      const TimedEvent event{Instant(), any_event(type, rng)};
      EXPECT_TRUE(event_json(event).contains("event"));
    }
  }
  const Event stops = JobStopping{.job = JobId(7), .reason = StopReason::kPreempted};
  const Json json = event_json({Instant(), stops});
  EXPECT_EQ(json["event"], "JobStopping");
  EXPECT_EQ(json["job"], 7);
  EXPECT_EQ(json["in_favour_of"], nullptr);
  EXPECT_EQ(json["blame"]["node"], nullptr);
}

}  // namespace
}  // namespace orrery
