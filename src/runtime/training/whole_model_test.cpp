#include "runtime/training/whole_model.hpp"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "runtime/elastic/group_of_threads_test.hpp"
#include "runtime/kernels/aligned_floats.hpp"
#include "runtime/training/gradient_length.hpp"
#include "runtime/training/whole_model_test.hpp"

namespace orrery {
namespace {

class WholeModelFamilies : public testing::TestWithParam<TransformerFamily> {
 protected:
  const TransformerConfig config_ = shared_config(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Training, WholeModelFamilies,
                         testing::Values(TransformerFamily::kGpt, TransformerFamily::kLlama),
                         [](const auto& family) {
                           return family.param == TransformerFamily::kGpt ? "Gpt" : "Llama";
                         });

/// Cuts into one, two and four parts, along the layers, across them, and both.
constexpr std::array<ModelPart, 6> kCuts{{{},
                                          {.tensor_ranks = 2},
                                          {.tensor_ranks = 4},
                                          {.stages = 2},
                                          {.stages = 4},
                                          {.tensor_ranks = 2, .stages = 2}}};

TEST_P(WholeModelFamilies, WhatCountsOfThePartsIsTheWholeOnce) {
  const ParameterLayout whole(config_);
  for (const ModelPart& cut : kCuts) {
    SCOPED_TRACE(testing::Message() << cut.tensor_ranks << " ranks, " << cut.stages << " stages");
    std::vector<std::uint32_t> found(whole.size());
    for (std::uint32_t number = 0; number < cut.ranks(); ++number) {
      const WholeModel model(config_, cut.at(number));
      EXPECT_EQ(model.own().part().number(), number);
      std::size_t here = 0;
      model.visit({0, model.own().size()}, [&](const FloatRun& run) {
        EXPECT_GE(run.here, here) << "ascending";
        here = run.here + run.size;
        if (!model.own().tensors()[run.tensor].counts) return;
        for (std::size_t i = 0; i < run.size; ++i) ++found[run.whole + i];
      });
      EXPECT_LE(here, model.own().size());
      if (cut.ranks() > 1) EXPECT_LT(model.own().size(), whole.size());
    }
    for (const ParameterTensor& tensor : whole.tensors()) {
      for (std::size_t at = tensor.begin; at < tensor.begin + tensor.size; ++at) {
        ASSERT_EQ(found[at], 1u) << tensor.name;
      }
    }
  }
}

TEST_P(WholeModelFamilies, AStageHasItsLayersAndItsEndsAlone) {
  const std::size_t of_a_layer = ParameterLayout(config_).blocks()[1].attention_norm.weight -
                                 ParameterLayout(config_).blocks()[0].attention_norm.weight;
  const auto stage = [&](std::uint32_t number) {
    return ParameterLayout(config_, {.stage = number, .stages = 4});
  };
  for (const std::uint32_t middle : {1u, 2u}) {
    EXPECT_EQ(stage(middle).blocks().size(), 1u);
    EXPECT_EQ(stage(middle).size(), of_a_layer);
  }
  const auto has = [](const ParameterLayout& layout, std::string_view name) {
    const ParameterTensor* tensor = layout.find(name);
    return tensor != nullptr && tensor->size > 0;
  };
  const bool tied = config_.tied_embedding;
  const char* embedding = tied ? "transformer.wte.weight" : "model.embed_tokens.weight";
  EXPECT_TRUE(has(stage(0), embedding));
  EXPECT_FALSE(has(stage(1), embedding));
  EXPECT_EQ(has(stage(3), embedding), tied);
  EXPECT_EQ(has(stage(3), "lm_head.weight"), !tied);
}

TEST_P(WholeModelFamilies, PartsAreDrawnAsPartsOfTheWhole) {
  const ParameterLayout layout(config_);
  AlignedFloats whole(layout.size());
  initialise(layout, 5, whole);
  for (const ModelPart& cut : kCuts) {
    for (std::uint32_t number = 0; number < cut.ranks(); ++number) {
      const WholeModel model(config_, cut.at(number));
      AlignedFloats drawn(model.own().size());
      initialise(model.own(), 5, drawn);
      ASSERT_EQ(drawn, part_of(model, whole));
    }
  }
}

TEST_P(WholeModelFamilies, ThreadsPutTheWholeTogetherAgain) {
  const ParameterLayout layout(config_);
  AlignedFloats whole(layout.size());
  for (const ParameterTensor& tensor : layout.tensors()) {
    std::iota(whole.begin() + static_cast<std::ptrdiff_t>(tensor.begin),
              whole.begin() + static_cast<std::ptrdiff_t>(tensor.begin + tensor.size),
              static_cast<float>(tensor.begin + 1));
  }
  for (const ModelPart& cut : {kCuts[1], kCuts[3], kCuts[5]}) {
    const std::uint32_t replicas = cut.ranks() == 2 ? 3 : 2;
    const std::uint32_t ranks = replicas * cut.ranks();
    const TestGang gang(ranks, TestGang::Memory::kShared);
    gang.run([&](std::uint32_t rank) {
      const auto group = gang.found(rank);
      ASSERT_NE(group, nullptr);
      const WholeModel model(config_, cut.at(rank % cut.ranks()));
      const AlignedFloats part = part_of(model, whole);
      // Each replica contributes its share.
      const FloatRange held = held_range(part.size(), rank / cut.ranks(), replicas);
      const FloatRange mine = even_range(whole.size(), rank, ranks);
      AlignedFloats out(mine.size(), -1);
      const HeldFloats own{held, std::span(part).subspan(held.begin, held.size())};
      ASSERT_TRUE(model.assemble(group->communicator(), own, out));
      EXPECT_TRUE(std::equal(out.begin(), out.end(), whole.data() + mine.begin));
      group->farewell();
    });
  }
}

}  // namespace
}  // namespace orrery
