#include "runtime/checkpoint/checkpoint_reader.hpp"

#include "runtime/checkpoint/checkpoint_audit.hpp"
#include "runtime/checkpoint/saved_state_test.hpp"

namespace orrery {
namespace {

constexpr std::uint32_t kWorldMax = 8;

using CheckpointReaderTest = CheckpointTest;

void flip_in(const std::string& path, std::uint64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const int before = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(before ^ 16));
}

std::string shard_of(const std::string& directory, const CheckpointId& id) {
  return step_directory(directory, id.step) + "/" + ShardName{id, 0, 1}.file();
}

TEST_F(CheckpointReaderTest, EveryLayoutIsReadFromEveryOther) {
  const SavedState state(5);
  Rng random(11);
  for (std::uint32_t saved = 1; saved <= kWorldMax; ++saved) {
    const Manifest manifest =
        SavedState::write(directory_, {"llama", {1, 0}, saved}, state.cut(saved, random));
    CheckpointReader reader = must_have(CheckpointReader::open(directory_, manifest));
    for (std::uint32_t wanted = 1; wanted <= kWorldMax; ++wanted) {
      for (const std::vector<PieceView>& rank : state.cut(wanted, random)) {
        for (const auto& [piece, bytes] : rank) {
          std::vector<std::byte> read(bytes.size());
          must_do(reader.read({piece.tensor, piece.type, piece.begin, piece.end}, read));
          ASSERT_TRUE(std::ranges::equal(read, bytes))
              << piece.tensor << " from " << saved << " to " << wanted;
        }
      }
    }
  }
}

TEST_F(CheckpointReaderTest, ABadCheckpointIsPassedOverForTheOneBeforeAndTheReasonGiven) {
  const SavedState state(5);
  for (const std::uint64_t step : {10u, 20u, 30u, 40u}) {
    state.commit(directory_, {"llama", {1, 0}, step});
  }
  EXPECT_EQ(must_have(open_newest_good(directory_)).reader->manifest().id.step, 40u);
  const std::string hurt = shard_of(directory_, {"llama", {1, 0}, 40});
  flip_in(hurt, 4096 + 700);
  const std::string lost = shard_of(directory_, {"llama", {1, 0}, 30});
  std::filesystem::remove(lost);
  const std::string manifest = step_directory(directory_, 20) + "/manifest.json";
  flip_in(manifest, 200);

  FoundCheckpoint found = must_have(open_newest_good(directory_));
  ASSERT_TRUE(found.reader);
  EXPECT_EQ(found.reader->manifest().id.step, 10u);
  ASSERT_EQ(found.passed_over.size(), 3u);
  EXPECT_TRUE(found.passed_over[0].starts_with(manifest)) << found.passed_over[0];
  EXPECT_TRUE(found.passed_over[1].starts_with(hurt + ": bytes 4096 to")) << found.passed_over[1];
  EXPECT_TRUE(found.passed_over[2].starts_with(lost)) << found.passed_over[2];

  const std::string audit = audit_text(must_have(audit_checkpoints(directory_)));
  EXPECT_NE(audit.find("step 40  damaged  attempt 1 epoch 0"), std::string::npos) << audit;
  EXPECT_NE(audit.find("  " + found.passed_over[1] + "\n"), std::string::npos) << audit;
  EXPECT_NE(audit.find("step 20  damaged\n"), std::string::npos) << audit;
  EXPECT_NE(audit.find("step 10  good"), std::string::npos) << audit;

  flip_in(shard_of(directory_, {"llama", {1, 0}, 10}), 20);
  EXPECT_FALSE(must_have(open_newest_good(directory_)).reader);
}

TEST_F(CheckpointReaderTest, NoCheckpointsAreNoError) {
  const FoundCheckpoint found = must_have(open_newest_good(directory_ + "/none"));
  EXPECT_FALSE(found.reader);
  EXPECT_TRUE(found.passed_over.empty());
  EXPECT_EQ(audit_text(must_have(audit_checkpoints(directory_))), "no checkpoints\n");
}

TEST_F(CheckpointReaderTest, AShardOfAnotherWritingIsNotTakenForTheOneTheManifestNames) {
  const SavedState state(5);
  const CheckpointId id{"llama", {1, 0}, 10};
  state.commit(directory_, id);
  static_cast<void>(SavedState::write(directory_, id, {SavedState(6).whole()}));
  const FoundCheckpoint found = must_have(open_newest_good(directory_));
  EXPECT_FALSE(found.reader);
  EXPECT_EQ(found.passed_over.at(0),
            shard_of(directory_, id) + ": a shard, but not the one its manifest names");
}

TEST_F(CheckpointReaderTest, WhatIsNotThereIsNamed) {
  const SavedState state(5);
  const Manifest manifest = SavedState::write(directory_, {"llama", {1, 0}, 10}, {state.whole()});
  CheckpointReader reader = must_have(CheckpointReader::open(directory_, manifest));
  const auto refusal = [&](const TensorRange& range) {
    std::vector<std::byte> out((range.end - range.begin) * bytes_of(range.type));
    const Status read = reader.read(range, out);
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(refusal({"tokens.sen", ElementType::kI32, 0, 1}),
            "no tensor \"tokens.sen\", did you mean \"tokens.seen\"?");
  EXPECT_EQ(refusal({"tokens.seen", ElementType::kF32, 0, 1}),
            "tensor \"tokens.seen\" is I32, not F32 as asked for");
  EXPECT_EQ(refusal({"tokens.seen", ElementType::kI32, 3, 18}),
            "tensor \"tokens.seen\" has 17 elements; asked for [3, 18)");
}

}  // namespace
}  // namespace orrery
