#include "runtime/training/training_state.hpp"

#include <gtest/gtest.h>

#include "base/numbers/rng.hpp"
#include "runtime/checkpoint/checkpoint_writer.hpp"
#include "runtime/checkpoint/saved_state_test.hpp"
#include "runtime/elastic/group_of_threads_test.hpp"
#include "runtime/training/gradient_length.hpp"
#include "runtime/training/whole_model_test.hpp"

namespace orrery {
namespace {

struct SharedOut {
  std::uint32_t tp = 1;
  std::uint32_t pp = 1;
  std::uint32_t replicas = 1;
  StateShare::Moments moments = StateShare::Moments::kOfPart;
  std::uint32_t ep = 1;
  std::uint32_t vpp = 1;

  [[nodiscard]] std::uint32_t of_a_replica() const { return tp * pp; }
  [[nodiscard]] std::uint32_t ranks() const { return of_a_replica() * replicas; }
  [[nodiscard]] StateShare of(std::uint32_t rank) const {
    const ModelPart cut{.tensor_ranks = tp, .stages = pp, .chunks = vpp, .expert_ranks = ep};
    return {cut.at(rank % of_a_replica()), rank / of_a_replica(), replicas, moments};
  }
  friend std::ostream& operator<<(std::ostream& to, const SharedOut& out) {
    return to << out.tp << " x " << out.pp << " x " << out.replicas << ", ep " << out.ep;
  }
};

constexpr auto kShares = StateShare::Moments::kOfHeldRange;
constexpr std::uint64_t kSeed = 5;
const AdamW kOptimizer;
constexpr OptimizerStep kHow{.number = 1, .rate = 0.01, .gradient_scale = 0.5F};
constexpr GradientClip kClip{.length = 3, .limit = 1};

struct StateCase {
  const char* name;
  std::int64_t experts;
  std::span<const SharedOut> layouts;  ///< the first is whole
};

class TrainingStateThreads : public CheckpointTest, public testing::WithParamInterface<StateCase> {
 protected:
  TrainingStateThreads() : gradient_(ParameterLayout(config_).size()) {
    Rng rng(9);
    const ParameterLayout layout(config_);
    for (const ParameterTensor& tensor : layout.tensors()) {
      for (std::size_t i = 0; i < tensor.size; ++i) {
        gradient_[tensor.begin + i] = static_cast<float>(rng.uniform() - 0.5);
      }
    }
  }

  /// Runs `body` with each rank's share of the state.
  using Body = std::function<void(MemberGroup&, TrainingState&, const WholeModel&)>;
  void share(const SharedOut& out, const Body& body) const {
    TestGang gang(out.ranks(), TestGang::Memory::kShared);
    gang.run([&](std::uint32_t rank) {
      const auto group = gang.found(rank);
      ASSERT_NE(group, nullptr);
      const StateShare share = out.of(rank);
      TrainingState state(config_, kSeed, share);
      body(*group, state, WholeModel(config_, share.part));
      group->farewell();
    });
  }

  /// One step by the gradient, as all ranks of a column do it.
  void step(const SharedOut& out, MemberGroup& group, TrainingState& state,
            const WholeModel& model) const {
    const AlignedFloats part = part_of(model, gradient_);
    const FloatRange own = state.stepped();
    ASSERT_TRUE(
        state.step(kOptimizer, std::span(part).subspan(own.begin, own.size()), kHow, kClip));
    std::vector<std::uint32_t> column;
    const std::uint32_t apart = out.of_a_replica();
    for (std::uint32_t i = group.rank() % apart; i < out.ranks(); i += apart) column.push_back(i);
    Communicator ranks = group.among(column);
    std::vector<float> room(part.size());
    ASSERT_TRUE(state.gather_weights(ranks, room));
  }

  static TransformerConfig config() {
    TransformerConfig config = shared_config(TransformerFamily::kLlama);
    config.experts = GetParam().experts;
    return config;
  }

  const TransformerConfig config_ = config();
  AlignedFloats gradient_;
};

constexpr std::array<SharedOut, 9> kLayouts{{{},
                                             {.replicas = 3, .moments = kShares},
                                             {.tp = 2},
                                             {.tp = 2, .replicas = 2, .moments = kShares},
                                             {.tp = 4},
                                             {.pp = 4},
                                             {.pp = 2, .replicas = 2, .vpp = 2},
                                             {.pp = 2, .replicas = 3, .moments = kShares},
                                             {.tp = 2, .pp = 2, .replicas = 2}}};
constexpr std::array<SharedOut, 5> kExpertLayouts{
    {{},
     {.tp = 2, .pp = 2},
     {.tp = 2, .replicas = 2, .moments = kShares, .ep = 2},
     {.tp = 4, .ep = 2},
     {.tp = 4, .ep = 4}}};

INSTANTIATE_TEST_SUITE_P(Training, TrainingStateThreads,
                         testing::Values(StateCase{"Dense", 0, kLayouts},
                                         StateCase{"OfExperts", 4, kExpertLayouts}),
                         [](const auto& state) { return state.param.name; });

TEST_P(TrainingStateThreads, HowItIsSharedOutChangesNoBitOfAStep) {
  std::string whole;
  for (const SharedOut& out : GetParam().layouts) {
    SCOPED_TRACE(testing::Message() << out);
    std::string found;
    share(out, [&](MemberGroup& group, TrainingState& state, const WholeModel& model) {
      step(out, group, state, model);
      const auto hash = state.hash(group.communicator());
      ASSERT_TRUE(hash);
      if (group.rank() == 0) found = *hash;
    });
    if (whole.empty()) whole = found;
    EXPECT_EQ(found.size(), 64u);
    EXPECT_EQ(found, whole);
  }
}

TEST_P(TrainingStateThreads, WhatOneLayoutSavesEveryOtherReads) {
  std::uint64_t number = 0;
  std::string whole;
  for (const SharedOut& saves : GetParam().layouts) {
    const std::string directory = directory_ + "/" + std::to_string(++number);
    std::vector<ShardRecord> records(saves.ranks());
    const CheckpointId id{"job", {1, 1}, 1};
    share(saves, [&](MemberGroup& group, TrainingState& state, const WholeModel& model) {
      step(saves, group, state, model);
      const auto part = state.saved_part(group.communicator());
      ASSERT_TRUE(part);
      CheckpointWriter writer(directory);
      must_do(writer.begin({id, group.rank(), group.size()}, part->pieces));
      records[group.rank()] = must_have(writer.wait()).record;
      const auto hash = state.hash(group.communicator());
      if (group.rank() == 0 && whole.empty()) whole = *hash;
    });
    must_do(commit_checkpoint(directory, {.id = id, .world = saves.ranks(), .shards = records}));
    for (const SharedOut& reads : GetParam().layouts) {
      SCOPED_TRACE(testing::Message() << saves << " read by " << reads);
      share(reads, [&](MemberGroup& group, TrainingState& state, const WholeModel&) {
        auto found = must_have(open_newest_good(directory));
        ASSERT_TRUE(found.reader);
        must_do(state.restore(*found.reader));
        EXPECT_EQ(state.steps(), 1u);
        const auto hash = state.hash(group.communicator());
        ASSERT_TRUE(hash);
        if (group.rank() == 0) EXPECT_EQ(*hash, whole);
      });
    }
  }
}

class TrainingStateTest : public CheckpointTest {};

TEST_F(TrainingStateTest, ReadsItsPartOfTheWeightsFromASafetensorsFile) {
  const TransformerConfig config = shared_config(TransformerFamily::kLlama);
  const ParameterLayout layout(config);
  const TrainingState whole(config, kSeed);
  std::vector<PieceView> pieces;
  for (const ParameterTensor& tensor : layout.tensors()) {
    const auto weights = whole.parameters().subspan(tensor.begin, tensor.size);
    pieces.push_back({{.tensor = tensor.name,
                       .shape = {tensor.shape.begin(), tensor.shape.end()},
                       .begin = 0,
                       .end = tensor.size},
                      std::as_bytes(weights)});
  }
  const CheckpointId id{"job", {1, 1}, 1};
  CheckpointWriter writer(directory_);
  must_do(writer.begin({id, 0, 1}, pieces));
  must_do(commit_checkpoint(directory_,
                            {.id = id, .world = 1, .shards = {must_have(writer.wait()).record}}));
  const std::string exported = directory_ + "/model.safetensors";
  FoundCheckpoint found = must_have(open_newest_good(directory_));
  must_do(export_safetensors(found.reader.value(), exported));

  const StateShare half{{1, 2}};
  const TrainingState expected(config, kSeed, half);
  TrainingState read(config, kSeed + 1, half);
  EXPECT_FALSE(std::ranges::equal(read.parameters(), expected.parameters()));
  SafetensorsFile file = must_have(SafetensorsFile::open(exported));
  must_do(read.restore_weights(file));
  EXPECT_TRUE(std::ranges::equal(read.parameters(), expected.parameters()));

  TransformerConfig wider = config;
  wider.width *= 2;
  const Status refused = TrainingState(wider, kSeed).restore_weights(file);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("the weights are of another model"), std::string::npos);
}

TEST(TrainingState, ARankKeepsItsShareAlone) {
  const TransformerConfig config = shared_config(TransformerFamily::kGpt);
  const TrainingState whole(config, kSeed);
  const TrainingState half(config, kSeed, {{1, 2}});
  const TrainingState third(config, kSeed, {{0, 1}, 1, 3, kShares});
  std::size_t everywhere = 0;
  const ParameterLayout part(config, {1, 2});
  for (const ParameterTensor& tensor : part.tensors()) {
    if (tensor.cut.whole()) everywhere += tensor.size;
  }
  EXPECT_EQ(2 * (half.parameters().size() - everywhere), whole.parameters().size() - everywhere);
  EXPECT_EQ(half.stepped().size(), half.parameters().size());
  EXPECT_EQ(third.parameters().size(), whole.parameters().size());
  EXPECT_NEAR(static_cast<double>(third.stepped().size()),
              static_cast<double>(whole.parameters().size()) / 3, 4096);
  TransformerConfig of_experts = config;
  of_experts.experts = 4;
  const ParameterLayout cut(of_experts, {.tensor_ranks = 2});
  const ParameterLayout shared(of_experts,
                               {.tensor_rank = 1, .tensor_ranks = 2, .expert_ranks = 2});
  EXPECT_EQ(shared.size(), cut.size()) << "half of the experts, or half of each";
  EXPECT_EQ(shared.find("transformer.h.0.moe.experts.1.c_fc.weight")->size, 0u);
  EXPECT_TRUE(shared.find("transformer.h.0.moe.experts.2.c_fc.weight")->cut.whole());
  EXPECT_TRUE(shared.find("transformer.h.0.moe.experts.2.c_fc.weight")->counts);
  EXPECT_FALSE(shared.find("transformer.h.0.moe.gate.weight")->counts);
}

}  // namespace
}  // namespace orrery
