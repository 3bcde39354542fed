#include "runtime/ranks/shard_gradient.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/numbers/rng.hpp"
#include "runtime/elastic/group_of_threads_test.hpp"
#include "runtime/ranks/replica_peers.hpp"
#include "runtime/training/whole_model_test.hpp"

namespace orrery {
namespace {

struct PipelineCase {
  const char* name;
  TransformerFamily family;
  TrainingLayout layout;
  TrainingBatch batch;
  TestGang::Memory memory = TestGang::Memory::kShared;
  ActivationRecompute recompute = ActivationRecompute::kNone;
};

class PipelineThreads : public testing::TestWithParam<PipelineCase> {
 protected:
  PipelineThreads() {
    std::string name = std::filesystem::temp_directory_path() / "orrery-pipeline-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    std::ofstream text(directory_ / "text");
    Rng rng(3);
    for (int i = 0; i < 30'000; ++i) text << static_cast<char>(1 + rng.below(18));
    spec_.model = shared_config(GetParam().family);
    spec_.model.recompute = GetParam().recompute;
    spec_.layout = GetParam().layout;
    spec_.batch = GetParam().batch;
  }
  ~PipelineThreads() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path directory_;
  TrainingSpec spec_;
};

using enum TransformerFamily;
using enum TestGang::Memory;

INSTANTIATE_TEST_SUITE_P(
    Training, PipelineThreads,
    testing::Values(
        PipelineCase{"OneMicroBatch", kLlama, {.pp = 2}, {.sequences = 2, .shards = 1, .micro = 2}},
        PipelineCase{
            "FewerThanStages", kLlama, {.pp = 4}, {.sequences = 6, .shards = 2, .micro = 1}},
        PipelineCase{"ManyOfThem", kLlama, {.pp = 4}, {.sequences = 18, .shards = 2, .micro = 1}},
        PipelineCase{
            "OverSockets", kLlama, {.pp = 4}, {.sequences = 18, .shards = 2, .micro = 1}, kOwn},
        PipelineCase{"Recomputed",
                     kLlama,
                     {.pp = 2},
                     {.sequences = 10, .shards = 2, .micro = 1},
                     kShared,
                     ActivationRecompute::kFull},
        PipelineCase{
            "Interleaved", kLlama, {.pp = 2, .vpp = 2}, {.sequences = 16, .shards = 2, .micro = 2}},
        PipelineCase{"InterleavedInOneRound",
                     kLlama,
                     {.pp = 2, .vpp = 2},
                     {.sequences = 4, .shards = 1, .micro = 2}},
        PipelineCase{"InterleavedOverSockets",
                     kLlama,
                     {.pp = 2, .vpp = 2},
                     {.sequences = 12, .shards = 2, .micro = 1},
                     kOwn},
        PipelineCase{"InterleavedAndRecomputed",
                     kLlama,
                     {.pp = 2, .vpp = 2},
                     {.sequences = 8, .shards = 2, .micro = 1},
                     kShared,
                     ActivationRecompute::kFull},
        PipelineCase{"InterleavedOfTwoAndTwo",
                     kGpt,
                     {.tp = 2, .pp = 2, .vpp = 2},
                     {.sequences = 16, .shards = 2, .micro = 2}},
        PipelineCase{"OfTiedEnds", kGpt, {.pp = 4}, {.sequences = 12, .shards = 2, .micro = 1}},
        PipelineCase{
            "OfTwoAndTwo", kGpt, {.tp = 2, .pp = 2}, {.sequences = 12, .shards = 2, .micro = 2}}),
    [](const auto& pipeline) { return pipeline.param.name; });

TEST_P(PipelineThreads, HaveTheSumOfTheShardsOfOneRank) {
  auto corpus = TextCorpus::open({.paths = {directory_ / "text"}});
  ASSERT_TRUE(corpus);
  const auto stream = TextStream::create(std::move(*corpus), spec_.model.sequence, 5);
  ASSERT_TRUE(stream);
  ShardGradient alone(spec_, *stream);
  AlignedFloats parameters(alone.layout().size());
  initialise(alone.layout(), 7, parameters);
  AlignedFloats expected(parameters.size() + 1);
  alone.compute(parameters, 3, {0, spec_.batch.shards}, expected);
  const auto held_out = alone.evaluate(parameters, 4);
  ASSERT_TRUE(held_out);
  const TestGang gang(spec_.layout.ranks(), GetParam().memory);
  gang.run([&](std::uint32_t rank) {
    const auto group = gang.found(rank);
    ASSERT_NE(group, nullptr);
    RankGrid grid(spec_, *group);
    const ModelPart& part = grid.part();
    ShardGradient shards(spec_, *stream, part);
    const std::span<std::byte> room = group->workspace();
    ReplicaPeers peers(spec_, grid,
                       {reinterpret_cast<float*>(room.data()), room.size() / sizeof(float)});
    shards.model().share(peers);
    const std::size_t flowing = spec_.batch.per_shard() / spec_.batch.micro;
    const std::size_t kept = part.chunks == 1
                                 ? std::min<std::size_t>(flowing, part.stages - part.stage)
                                 : pipeline_slots(part, spec_.batch.micro_batches());
    EXPECT_EQ(shards.model().activation_bytes(),
              TrainableTransformer(spec_.model, spec_.batch.micro, part, kept).activation_bytes());
    const WholeModel parts(spec_.model, part);
    AlignedFloats found(parts.own().size() + 1);
    shards.compute(part_of(parts, parameters), 3, {0, spec_.batch.shards}, found);
    EXPECT_NEAR(found.back(), part.last() ? expected.back() : 0, 1e-5F * expected.back());
    found.pop_back();
    const AlignedFloats own = part_of(parts, expected);
    if (part.tensor_ranks == 1 && !spec_.model.tied_embedding) {
      EXPECT_EQ(found, own) << "the same products in the same order";
    }
    double error = 0;
    double square = 0;
    for (std::size_t i = 0; i < own.size(); ++i) {
      error += std::pow(static_cast<double>(found[i] - own[i]), 2);
      square += std::pow(static_cast<double>(own[i]), 2);
    }
    EXPECT_LT(std::sqrt(error / square), 2e-5);
    const auto loss = shards.evaluate(part_of(parts, parameters), 4);
    ASSERT_TRUE(loss);
    EXPECT_NEAR(*loss, part.last() ? *held_out : 0, 1e-5 * *held_out);
    EXPECT_FALSE(peers.broken());
    group->farewell();
  });
}

}  // namespace
}  // namespace orrery
