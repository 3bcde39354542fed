#include "runtime/training/gradient_length.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/numbers/rng.hpp"
#include "runtime/elastic/group_of_threads_test.hpp"
#include "runtime/kernels/aligned_floats.hpp"
#include "runtime/trainer/gradient_norm.hpp"
#include "runtime/training/whole_model_test.hpp"

namespace orrery {
namespace {

TEST(GradientLength, HeldRangesAreWholeBlocksAndTogetherAll) {
  for (const std::size_t size : {std::size_t{16}, 3 * kNormBlock, 7 * kNormBlock + 32}) {
    for (std::uint32_t replicas = 1; replicas <= 5; ++replicas) {
      std::size_t end = 0;
      for (std::uint32_t replica = 0; replica < replicas; ++replica) {
        const FloatRange held = held_range(size, replica, replicas);
        EXPECT_EQ(held.begin, end);
        EXPECT_TRUE(held.begin % kNormBlock == 0 || held.begin == size);
        end = held.end;
      }
      EXPECT_EQ(end, size);
    }
  }
}

TEST(GradientLength, ThreadsHaveTheBitsOfTheirPartsWhoeverHoldsWhat) {
  TrainingSpec spec;
  spec.model = shared_config(TransformerFamily::kGpt);
  spec.batch.shards = 4;
  const ParameterLayout layout(spec.model);
  AlignedFloats gradient(layout.size());
  Rng rng(3);
  for (const ParameterTensor& tensor : layout.tensors()) {
    for (std::size_t i = 0; i < tensor.size; ++i) {
      gradient[tensor.begin + i] = static_cast<float>(rng.uniform() - 0.5);
    }
  }
  const double length = gradient_norm(gradient);
  for (const TrainingLayout& layout_of :
       {TrainingLayout{}, TrainingLayout{.tp = 2}, TrainingLayout{.pp = 2},
        TrainingLayout{.tp = 2, .pp = 2}}) {
    spec.layout = layout_of;
    const TestGang gang(4, TestGang::Memory::kOwn);
    std::vector<double> whole(4);
    std::vector<double> shared(4);
    gang.run([&](std::uint32_t rank) {
      const auto group = gang.found(rank);
      ASSERT_NE(group, nullptr);
      RankGrid grid(spec, *group);
      const WholeModel model(spec.model, grid.part());
      const AlignedFloats part = part_of(model, gradient);
      const FloatRange held = held_range(part.size(), grid.replica_number(), grid.column().size());
      const auto own = std::span(part).subspan(held.begin, held.size());
      whole[rank] = squared_length(grid, model.own(), {{0, part.size()}, part}).value_or(-1);
      shared[rank] = squared_length(grid, model.own(), {held, own}).value_or(-1);
      group->farewell();
    });
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(shared[rank], whole[0]);
      EXPECT_EQ(whole[rank], whole[0]);
    }
    if (spec.layout.ranks() == 1) EXPECT_EQ(std::sqrt(whole[0]), length);
    EXPECT_NEAR(std::sqrt(whole[0]), length, 1e-9 * length);
  }
}

}  // namespace
}  // namespace orrery
