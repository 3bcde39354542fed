#include "runtime/kernels/decode_kernels.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

/// One query over three blocks, whose heads are no whole number of vectors.
class PagedCase {
 public:
  static constexpr std::size_t kHeads = 4;
  static constexpr std::size_t kKvHeads = 2;
  static constexpr std::size_t kWidth = 20;
  static constexpr std::size_t kVisible = 37;
  static constexpr std::size_t kBlock = PagedAttention::kBlock;
  static constexpr std::size_t kHeadFloats = kBlock * kWidth;

  PagedCase() {
    Rng rng(4);
    const auto fill = [&](std::vector<float>& floats) {
      for (float& each : floats) each = static_cast<float>(rng.uniform() * 4 - 2);
    };
    fill(query_);
    for (std::vector<float>& block : blocks_) {
      fill(block);
      pointers_.push_back(block.data());
    }
  }

  [[nodiscard]] std::vector<float> attend(const DecodeKernels& kernels) const {
    std::vector<float> out(kHeads * kWidth);
    std::vector<float> scores(3 * kBlock);
    kernels.paged_attention({.query = query_.data(),
                             .blocks = pointers_.data(),
                             .visible = kVisible,
                             .heads = kHeads,
                             .kv_heads = kKvHeads,
                             .head_width = kWidth,
                             .scale = 0.25F,
                             .scores = scores.data(),
                             .out = out.data()});
    return out;
  }

  /// The result in doubles.
  [[nodiscard]] double plain(std::size_t head, std::size_t column) const {
    const std::size_t kv_head = head / (kHeads / kKvHeads);
    double total = 0;
    double sum = 0;
    for (std::size_t token = 0; token < kVisible; ++token) {
      const std::vector<float>& block = blocks_[token / kBlock];
      double score = 0;
      for (std::size_t d = 0; d < kWidth; ++d) {
        const float key = block[kv_head * kHeadFloats + d * kBlock + token % kBlock];
        score += static_cast<double>(query_[head * kWidth + d]) * static_cast<double>(key);
      }
      const double weight = std::exp2(score * 0.25 * 1.4426950408889634);
      const std::size_t values = (kKvHeads + kv_head) * kHeadFloats;
      sum += weight * static_cast<double>(block[values + token % kBlock * kWidth + column]);
      total += weight;
    }
    return sum / total;
  }

 private:
  std::vector<float> query_ = std::vector<float>(kHeads * kWidth);
  std::vector<std::vector<float>> blocks_ =
      std::vector<std::vector<float>>(3, std::vector<float>(2 * kKvHeads * kHeadFloats));
  std::vector<const float*> pointers_;
};

TEST(PagedAttention, IsTheAttentionOverAllVisibleTokens) {
  const PagedCase paged;
  const std::vector<float> out = paged.attend(decode_kernels());
  for (std::size_t i = 0; i < out.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(out[i]),
                paged.plain(i / PagedCase::kWidth, i % PagedCase::kWidth), 1e-5);
  }
}

TEST(PagedAttention, EveryVectorUnitComputesTheSameBits) {
  const PagedCase paged;
  const std::vector<float> expected = paged.attend(*decode_kernels_of("baseline"));
  for (const char* isa : {"avx2", "avx512"}) {
    if (decode_kernels_of(isa) == nullptr) continue;
    EXPECT_EQ(paged.attend(*decode_kernels_of(isa)), expected) << isa;
  }
}

}  // namespace
}  // namespace orrery
