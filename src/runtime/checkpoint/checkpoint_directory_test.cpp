#include "runtime/checkpoint/checkpoint_directory.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "runtime/checkpoint/checkpoint_audit.hpp"
#include "runtime/checkpoint/saved_state_test.hpp"

namespace orrery {
namespace {

using State = ListedCheckpoint::State;

CheckpointId id_of(std::uint64_t step, Incarnation by = {1, 0}) { return {"llama", by, step}; }

/// Lists a directory: "30 a2e0" for each committed checkpoint, newest first; "30 none", "30 bad"
/// for the others.
std::vector<std::string> listed_in(const std::string& directory) {
  std::vector<std::string> shown;
  for (const ListedCheckpoint& listed : must_have(list_checkpoints(directory))) {
    const Incarnation by = listed.manifest.id.by;
    const std::string what = listed.state == State::kCommitted
                                 ? fmt::format("a{}e{}", by.attempt, by.epoch)
                                 : (listed.state == State::kUncommitted ? "none" : "bad");
    shown.push_back(fmt::format("{} {}", listed.step, what));
  }
  return shown;
}

using Names = std::vector<std::string>;
using CheckpointDirectoryTest = CheckpointTest;

TEST_F(CheckpointDirectoryTest, AManifestIsReadAsItWasWrittenAndEveryFlippedBitIsFound) {
  const SavedState state(1);
  Rng random(1);
  Manifest manifest = SavedState::write(directory_, id_of(10), state.cut(2, random));
  manifest.extra = R"({"rng":[18446744073709551615,1],"note":"a \"word\"","lr":0.1,"none":null})";
  const std::string text = must_have(manifest_text(manifest));
  EXPECT_EQ(must_have(parse_manifest(text, "m")), manifest);
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string hurt = text;
    hurt[at] = static_cast<char>(hurt[at] ^ (1 << (at % 8)));
    EXPECT_FALSE(parse_manifest(hurt, "m")) << at;
  }
  EXPECT_FALSE(parse_manifest(text.substr(0, text.size() / 2), "m"));
  EXPECT_EQ(must_have(parse_shard_record(shard_record_text(manifest.shards[0]), "rank 0")),
            manifest.shards[0]);
}

TEST_F(CheckpointDirectoryTest, AManifestWithoutAllElementsOfEveryTensorIsRefused) {
  const SavedState state(1);
  const SavedState::Tensor& tensor = state.tensors()[0];
  const auto refusal = [&](std::uint64_t end, std::uint64_t begin) {
    const Manifest manifest = SavedState::write(
        directory_, id_of(10),
        {{SavedState::piece(tensor, 0, end)}, {SavedState::piece(tensor, begin, 2145)}});
    const Status committed = commit_checkpoint(directory_, manifest);
    return committed ? "" : committed.error().message;
  };
  const std::string name = "tensor \"block.0.attention.weight\": ";
  EXPECT_EQ(refusal(100, 101), name + "no shard has one of elements [100, 101)");
  EXPECT_EQ(refusal(100, 90), name + "two shards have one of elements [90, 100)");
  EXPECT_EQ(listed_in(directory_), Names{"10 none"});
  EXPECT_EQ(refusal(100, 100), "");
  EXPECT_EQ(listed_in(directory_), Names{"10 a1e0"});
}

TEST_F(CheckpointDirectoryTest, WhatCannotBeAManifestIsRefused) {
  const SavedState state(1);
  const Manifest good = SavedState::write(directory_, id_of(10), {state.whole()});
  const auto refused = [&](const auto& change) {
    Manifest manifest = good;
    change(manifest);
    return !commit_checkpoint(directory_, manifest);
  };
  EXPECT_TRUE(refused([](Manifest& m) { m.extra = "{lax: yaml}"; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.extra = "{\"a\":"; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.id.job.clear(); }));
  EXPECT_TRUE(refused([](Manifest& m) { m.shards[0].file = "../" + m.shards[0].file; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.shards.push_back(m.shards[0]); }));
  EXPECT_TRUE(refused([](Manifest& m) { m.shards[0].bytes -= 1; }));
  EXPECT_TRUE(refused([](Manifest& m) { m.shards[0].file = "rank-9-of-9.a1.e0.shard"; }));
  EXPECT_FALSE(refused([](Manifest&) {}));
}

TEST_F(CheckpointDirectoryTest, OnlyTheNewestIncarnationOfOneJobCommits) {
  const SavedState state(1);
  EXPECT_EQ(must_have(newest_incarnation(directory_ + "/none")), Incarnation{});
  state.commit(directory_, id_of(20, {1, 0}));
  const Manifest late = SavedState::write(directory_, id_of(30, {1, 0}), {state.whole()});
  must_do(claim_checkpoints(directory_, id_of(0, {1, 1})));
  EXPECT_FALSE(commit_checkpoint(directory_, late));
  EXPECT_FALSE(claim_checkpoints(directory_, id_of(0, {1, 0})));
  state.commit(directory_, id_of(30, {1, 1}));
  EXPECT_EQ(listed_in(directory_), (Names{"30 a1e1", "20 a1e0"}));

  // A later attempt that restarted at an earlier step is still the newest, and may rewrite a step.
  state.commit(directory_, id_of(20, {2, 0}));
  EXPECT_EQ(listed_in(directory_), (Names{"20 a2e0", "30 a1e1"}));
  EXPECT_EQ(must_have(newest_incarnation(directory_)), (Incarnation{2, 0}));

  const Manifest again = SavedState::write(directory_, id_of(40, {2, 0}), {state.whole()});
  must_do(commit_checkpoint(directory_, again));
  const Status twice = commit_checkpoint(directory_, again);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().message,
            directory_ + ": step 40 is committed already, by attempt 2 epoch 0");
  Manifest other = again;
  other.id.job = "other";
  EXPECT_FALSE(commit_checkpoint(directory_, other));

  // Without a fence file, the manifests give the newest incarnation.
  std::filesystem::remove(directory_ + "/fence.json");
  EXPECT_FALSE(commit_checkpoint(directory_, late));
}

TEST_F(CheckpointDirectoryTest, OfTwoThatRaceForTheManifestTheOlderNeverWinsAfterTheNewer) {
  const SavedState state(1);
  constexpr std::uint64_t kSteps = 6;
  const auto shards_of = [&](Incarnation by) {
    std::vector<Manifest> manifests;
    for (std::uint64_t step = 1; step <= kSteps; ++step) {
      manifests.push_back(SavedState::write(directory_, id_of(step, by), {state.whole()}));
    }
    return manifests;
  };
  const std::vector<Manifest> older = shards_of({1, 0});
  const std::vector<Manifest> newer = shards_of({2, 0});
  std::atomic<bool> newer_committed = false;
  std::atomic<int> older_after_newer = 0;
  std::atomic<int> newer_refused = 0;
  std::thread old_life([&] {
    for (const Manifest& manifest : older) {
      const bool over = newer_committed;
      if (commit_checkpoint(directory_, manifest) && over) ++older_after_newer;
    }
  });
  std::thread new_life([&] {
    for (const Manifest& manifest : newer) {
      if (!commit_checkpoint(directory_, manifest)) ++newer_refused;
      newer_committed = true;
    }
  });
  old_life.join();
  new_life.join();
  EXPECT_EQ(older_after_newer, 0);
  EXPECT_EQ(newer_refused, 0);
  for (const ListedCheckpoint& listed : must_have(list_checkpoints(directory_))) {
    EXPECT_EQ(listed.manifest.id.by, (Incarnation{2, 0})) << listed.step;
  }
}

TEST_F(CheckpointDirectoryTest, AKillBetweenShardsAndManifestLeavesTheCheckpointBefore) {
  const SavedState state(1);
  state.commit(directory_, id_of(10));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    SavedState::write(directory_, id_of(20), {state.whole()});
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(listed_in(directory_), (Names{"10 a1e0", "20 none"}));
  EXPECT_EQ(must_have(open_newest_good(directory_)).reader->manifest().id.step, 10u);

  // Its shards stay while their writer may still be running, and are removed when it cannot be.
  must_do(prune_checkpoints(directory_, {}));
  EXPECT_EQ(listed_in(directory_), (Names{"10 a1e0", "20 none"}));
  must_do(claim_checkpoints(directory_, id_of(0, {2, 0})));
  must_do(prune_checkpoints(directory_, {}));
  EXPECT_EQ(listed_in(directory_), Names{"10 a1e0"});
}

TEST_F(CheckpointDirectoryTest, AKillAtAnyMomentLeavesNoManifestWithoutItsShards) {
  const SavedState state(1);
  for (std::uint32_t attempt = 1; attempt <= 4; ++attempt) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (std::uint64_t step = 1;; ++step) {
        const Manifest manifest =
            SavedState::write(directory_, id_of(step, {attempt, 0}), {state.whole()});
        must_do(commit_checkpoint(directory_, manifest));
        if (::write(ends[1], "", 1) != 1) std::abort();
        must_do(prune_checkpoints(directory_, {.newest = 1}));
      }
    }
    char told = 0;
    for (std::uint32_t i = 0; i < attempt + 1; ++i) ASSERT_EQ(::read(ends[0], &told, 1), 1);
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    ::close(ends[0]);
    ::close(ends[1]);
    const FoundCheckpoint found = must_have(open_newest_good(directory_));
    ASSERT_TRUE(found.reader);
    EXPECT_EQ(found.reader->manifest().id.by.attempt, attempt);
    for (const AuditedCheckpoint& audited : must_have(audit_checkpoints(directory_))) {
      EXPECT_TRUE(audited.faults.empty()) << audited.faults[0];
    }
  }
}

TEST_F(CheckpointDirectoryTest, TheNewestAndEveryKthAreKeptAndNothingElse) {
  const SavedState state(1);
  must_do(claim_checkpoints(directory_, id_of(0)));
  must_do(prune_checkpoints(directory_, {}));
  for (std::uint64_t step = 10; step <= 80; step += 10) state.commit(directory_, id_of(step));
  SavedState::write(directory_, id_of(35), {state.whole()});  // abandoned long ago
  SavedState::write(directory_, id_of(90), {state.whole()});  // still being written
  std::filesystem::create_directory(directory_ + "/step-000000091");
  std::filesystem::create_directory(directory_ + "/notes");
  must_do(prune_checkpoints(directory_, {.newest = 2, .every = 30}));
  EXPECT_EQ(listed_in(directory_),
            (Names{"80 a1e0", "70 a1e0", "60 a1e0", "30 a1e0", "91 none", "90 none"}));
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/notes"));
  EXPECT_EQ(must_have(open_newest_good(directory_)).reader->manifest().id.step, 80u);

  // Shards that a newer incarnation replaced are removed, too.
  state.commit(directory_, id_of(80, {3, 0}));
  must_do(prune_checkpoints(directory_, {.newest = 1}));
  EXPECT_EQ(listed_in(directory_), (Names{"80 a3e0", "91 none"}));
  EXPECT_FALSE(
      std::filesystem::exists(step_directory(directory_, 80) + "/rank-0-of-1.a1.e0.shard"));
  EXPECT_TRUE(must_have(open_newest_good(directory_)).passed_over.empty());
}

}  // namespace
}  // namespace orrery
