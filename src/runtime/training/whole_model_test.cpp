#include "runtime/training/whole_model.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "runtime/elastic/group_of_threads_test.hpp"
#include "runtime/trainer/aligned_floats.hpp"
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

TEST_P(WholeModelFamilies, TensorsThatAreCutAreInOnePartEachAndTheOthersInAll) {
  const ParameterLayout whole(config_);
  for (const std::uint32_t ranks : {1u, 2u, 4u}) {
    std::vector<std::uint32_t> found(whole.size());
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const WholeModel model(config_, {rank, ranks});
      std::size_t here = 0;
      model.visit({0, model.own().size()}, [&](const FloatRun& run) {
        EXPECT_GE(run.here, here) << "ascending";
        here = run.here + run.size;
        for (std::size_t i = 0; i < run.size; ++i) ++found[run.whole + i];
      });
      EXPECT_LE(here, model.own().size());
      if (ranks > 1) EXPECT_LT(model.own().size(), whole.size());
    }
    const ParameterLayout part(config_, {0, ranks});
    for (std::size_t i = 0; i < whole.tensors().size(); ++i) {
      const ParameterTensor& tensor = whole.tensors()[i];
      const std::uint32_t times = part.tensors()[i].cut.whole() ? ranks : 1;
      for (std::size_t at = tensor.begin; at < tensor.begin + tensor.size; ++at) {
        ASSERT_EQ(found[at], times) << tensor.name;
      }
    }
  }
}

TEST_P(WholeModelFamilies, PartsAreDrawnAsPartsOfTheWhole) {
  const ParameterLayout layout(config_);
  AlignedFloats whole(layout.size());
  initialise(layout, 5, whole);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const WholeModel model(config_, {rank, 4});
    AlignedFloats drawn(model.own().size());
    initialise(model.own(), 5, drawn);
    ASSERT_EQ(drawn, part_of(model, whole));
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
  const TestGang gang(6, TestGang::Memory::kShared);
  gang.run([&](std::uint32_t rank) {
    const auto group = gang.found(rank);
    ASSERT_NE(group, nullptr);
    const WholeModel model(config_, {rank % 2, 2});
    const AlignedFloats part = part_of(model, whole);
    // Three replicas, of which each gives a third.
    const FloatRange held = held_range(part.size(), rank / 2, 3);
    const FloatRange mine = even_range(whole.size(), rank, 6);
    AlignedFloats out(mine.size(), -1);
    const HeldFloats own{held, std::span(part).subspan(held.begin, held.size())};
    ASSERT_TRUE(model.assemble(group->communicator(), own, out));
    EXPECT_TRUE(std::equal(out.begin(), out.end(), whole.data() + mine.begin));
    group->farewell();
  });
}

}  // namespace
}  // namespace orrery
