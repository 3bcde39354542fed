#include "runtime/kernels/decode_kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

struct PagedShape {
  std::size_t visible;
  std::size_t width;  ///< of a head
  std::size_t heads = 4;
  std::size_t kv_heads = 2;
};

/// Whole vectors and parts of one, one block, some and many: what a kernel computes in several
/// ways.
const std::vector<PagedShape> kShapes = {{37, 20},       {1, 64},       {16, 48}, {64, 128},
                                         {77, 64, 2, 2}, {100, 36},     {17, 16}, {150, 80},
                                         {90, 64, 9, 3}, {40, 32, 7, 1}};

/// One query over blocks of keys and values.
class PagedCase {
 public:
  static constexpr std::size_t kBlock = PagedAttention::kBlock;

  explicit PagedCase(const PagedShape& shape)
      : shape_(shape),
        query_(shape.heads * shape.width),
        blocks_((shape.visible + kBlock - 1) / kBlock,
                std::vector<float>(2 * shape.kv_heads * head_floats())) {
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
    std::vector<float> out(query_.size());
    std::vector<float> scores(PagedAttention::kHeadsMax * blocks_.size() * kBlock);
    kernels.paged_attention({.query = query_.data(),
                             .blocks = pointers_.data(),
                             .visible = static_cast<std::int64_t>(shape_.visible),
                             .heads = static_cast<std::int64_t>(shape_.heads),
                             .kv_heads = static_cast<std::int64_t>(shape_.kv_heads),
                             .head_width = static_cast<std::int64_t>(shape_.width),
                             .scale = 0.25F,
                             .scores = scores.data(),
                             .out = out.data()});
    return out;
  }

  /// The result in doubles.
  [[nodiscard]] double plain(std::size_t head, std::size_t column) const {
    const std::size_t kv_head = head / (shape_.heads / shape_.kv_heads);
    double total = 0;
    double sum = 0;
    for (std::size_t token = 0; token < shape_.visible; ++token) {
      const std::vector<float>& block = blocks_[token / kBlock];
      double score = 0;
      for (std::size_t d = 0; d < shape_.width; ++d) {
        const float key = block[kv_head * head_floats() + d * kBlock + token % kBlock];
        score += static_cast<double>(query_[head * shape_.width + d]) * static_cast<double>(key);
      }
      const double weight = std::exp2(score * 0.25 * 1.4426950408889634);
      const std::size_t values = (shape_.kv_heads + kv_head) * head_floats();
      sum += weight * static_cast<double>(block[values + token % kBlock * shape_.width + column]);
      total += weight;
    }
    return sum / total;
  }

 private:
  [[nodiscard]] std::size_t head_floats() const { return kBlock * shape_.width; }

  PagedShape shape_;
  std::vector<float> query_;
  std::vector<std::vector<float>> blocks_;
  std::vector<const float*> pointers_;
};

TEST(PagedAttention, IsTheAttentionOverAllVisibleTokens) {
  for (const PagedShape& shape : kShapes) {
    const PagedCase paged(shape);
    const std::vector<float> out = paged.attend(decode_kernels());
    for (std::size_t i = 0; i < out.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(out[i]), paged.plain(i / shape.width, i % shape.width), 1e-4);
    }
  }
}

TEST(PagedAttention, EveryVectorUnitComputesTheSameBits) {
  for (const PagedShape& shape : kShapes) {
    const PagedCase paged(shape);
    const std::vector<float> expected = paged.attend(*decode_kernels_of("baseline"));
    for (const char* isa : {"avx2", "avx512", "avx512vnni", "avx512amx"}) {
      if (decode_kernels_of(isa) == nullptr) continue;
      EXPECT_EQ(paged.attend(*decode_kernels_of(isa)), expected) << isa << " " << shape.visible;
    }
  }
}

TEST(Peak, IsTheGreatestWhereverItStands) {
  for (const char* isa : {"baseline", "avx2", "avx512", "avx512vnni", "avx512amx"}) {
    if (decode_kernels_of(isa) == nullptr) continue;
    for (std::size_t count = 1; count < 70; ++count) {
      for (std::size_t place = 0; place < count; ++place) {
        std::vector<float> values(count, -7.0F);
        values[place] = -6.5F;
        EXPECT_EQ(decode_kernels_of(isa)->peak(values.data(), static_cast<std::int64_t>(count)),
                  -6.5F);
      }
    }
  }
}

}  // namespace
}  // namespace orrery
