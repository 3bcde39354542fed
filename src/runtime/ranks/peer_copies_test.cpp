// runtime/ranks/peer_copies_test.cpp - the remaining ranks read a state back from memory, in
// whatever layout they have.
#include "runtime/ranks/peer_copies.hpp"

#include <gtest/gtest.h>

#include "base/numbers/rng.hpp"
#include "runtime/elastic/group_of_threads_test.hpp"
#include "runtime/training/whole_model_test.hpp"

namespace orrery {
namespace {

constexpr std::uint64_t kSeed = 5;

struct Cut {
  std::uint32_t tp = 1;
  std::uint32_t pp = 1;
  std::uint32_t replicas = 1;
  StateShare::Moments moments = StateShare::Moments::kOfPart;

  [[nodiscard]] std::uint32_t ranks() const { return tp * pp * replicas; }
  [[nodiscard]] StateShare of(std::uint32_t rank) const {
    const ModelPart cut{.tensor_ranks = tp, .stages = pp};
    return {cut.at(rank % cut.ranks()), rank / cut.ranks(), replicas, moments};
  }
};

class PeerCopiesThreads : public testing::Test {
 protected:
  using Body = std::function<void(std::uint32_t, Communicator&, TrainingState&)>;
  void share(const Cut& cut, const Body& body) const {
    const TestGang gang(cut.ranks(), TestGang::Memory::kShared);
    gang.run([&](std::uint32_t rank) {
      const auto group = gang.found(rank);
      ASSERT_NE(group, nullptr);
      TrainingState state(config_, kSeed, cut.of(rank));
      body(rank, group->communicator(), state);
      group->farewell();
    });
  }

  /// Changes the state: all ranks do an equal step.
  void step(TrainingState& state, const Cut& cut, std::uint32_t rank, std::uint64_t number) const {
    Rng rng(number);
    AlignedFloats whole(ParameterLayout(config_).size());
    for (float& each : whole) each = static_cast<float>(rng.uniform() - 0.5);
    const AlignedFloats part = part_of(WholeModel(config_, cut.of(rank).part), whole);
    const FloatRange own = state.stepped();
    const OptimizerStep how{.number = static_cast<std::int64_t>(number), .rate = 0.01};
    ASSERT_TRUE(state.step(AdamW{}, std::span(part).subspan(own.begin, own.size()), how, {1, 0}));
  }

  TransformerConfig config_ = shared_config(TransformerFamily::kGpt);
};

/// Four ranks keep step 1 and step 2, and do a third.
struct Kept {
  std::vector<PeerCopies> copies = std::vector<PeerCopies>(4);
  std::string hash;  ///< hash of step 2
};

class PeerCopiesOfFour : public PeerCopiesThreads {
 protected:
  void SetUp() override {
    const Cut cut{.tp = 2, .replicas = 2};
    share(cut, [&](std::uint32_t rank, Communicator& all, TrainingState& state) {
      for (std::uint64_t number = 1; number <= 2; ++number) {
        step(state, cut, rank, number);
        ASSERT_TRUE(kept_.copies[rank].keep(all, state));
      }
      const auto hash = state.hash(all);
      ASSERT_TRUE(hash);
      if (rank == 0) kept_.hash = *hash;
      step(state, cut, rank, 3);
    });
  }

  /// Returns the step that ranks with these copies and this layout find, and the hash of what they
  /// read.
  std::pair<std::optional<std::uint64_t>, std::string> read(const Cut& cut,
                                                            std::vector<PeerCopies> copies) const {
    std::pair<std::optional<std::uint64_t>, std::string> read;
    share(cut, [&](std::uint32_t rank, Communicator& all, TrainingState& state) {
      const auto newest = copies[rank].newest(all);
      ASSERT_TRUE(newest);
      if (rank == 0) read.first = *newest;
      if (!*newest) return;
      ASSERT_TRUE(copies[rank].restore(all, state));
      EXPECT_EQ(state.steps(), **newest);
      const auto hash = state.hash(all);
      ASSERT_TRUE(hash);
      if (rank == 0) read.second = *hash;
    });
    return read;
  }

  Kept kept_;
};

TEST_F(PeerCopiesOfFour, WhoeverIsLeftReadsItInAnyLayout) {
  const auto& of = kept_.copies;
  const PeerCopies nothing;
  for (const auto& [cut, copies] :
       {std::pair{Cut{.tp = 2}, std::vector{of[0], of[1]}},
        {Cut{.pp = 2}, std::vector{of[3], of[2]}},
        {Cut{.replicas = 3, .moments = StateShare::Moments::kOfHeldRange},
         std::vector{of[1], of[2], of[3]}},
        {Cut{.tp = 2, .replicas = 2}, std::vector{nothing, of[1], nothing, of[2]}},
        {Cut{.tp = 4}, of},
        {Cut{}, std::vector{of[0]}}}) {
    const auto [step, hash] = read(cut, copies);
    if (copies.size() == 1) {
      EXPECT_FALSE(step);
      continue;
    }
    EXPECT_EQ(step, 2u);
    EXPECT_EQ(hash, kept_.hash);
  }
}

TEST_F(PeerCopiesOfFour, ARangeThatIsNowhereIsNoCopy) {
  // Ranks 0 and 2 have each other's ranges only.
  EXPECT_FALSE(read({.tp = 2}, {kept_.copies[0], kept_.copies[2]}).first);
}

TEST_F(PeerCopiesOfFour, TheTimeBeforeIsThereUntilANewOneIsWhole) {
  const Cut cut{.tp = 2, .replicas = 2};
  std::vector<PeerCopies> later = kept_.copies;
  share(cut, [&](std::uint32_t rank, Communicator& all, TrainingState& state) {
    for (std::uint64_t number = 1; number <= 3; ++number) step(state, cut, rank, number);
    ASSERT_TRUE(later[rank].keep(all, state));
  });
  EXPECT_EQ(read({.tp = 2}, {later[0], later[1]}).first, 3u);
  // This is as if ranks 2 and 3 had died while keeping step 3, and rank 1 had noticed it.
  EXPECT_EQ(read({.tp = 2}, {later[0], kept_.copies[1]}).first, 2u);
}

TEST_F(PeerCopiesThreads, OneRankKeepsNothing) {
  share({}, [&](std::uint32_t rank, Communicator& all, TrainingState& state) {
    PeerCopies copies;
    step(state, {}, rank, 1);
    ASSERT_TRUE(copies.keep(all, state));
    const auto newest = copies.newest(all);
    ASSERT_TRUE(newest);
    EXPECT_FALSE(*newest);
  });
}

}  // namespace
}  // namespace orrery
