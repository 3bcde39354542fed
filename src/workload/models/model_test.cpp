#include "workload/models/model.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string_view>

#include "workload/models/model_catalog_test.hpp"

namespace orrery {
namespace {

const Model& model(std::string_view name) {
  static const Model kNone;
  if (!repository_models()) {
    ADD_FAILURE() << repository_models().error().text();
    return kNone;
  }
  const CatalogModel* known = repository_models()->find(name);
  if (known == nullptr) ADD_FAILURE() << "no model " << name;
  return known != nullptr ? known->model : kNone;
}

// Results for the catalog from an independent implementation of the same formulas, in another
// language and with unbounded integers. Operations are of a sequence of 4,096 tokens.
struct Expected {
  std::string_view name;
  std::int64_t total;
  std::int64_t active;
  std::int64_t kv_elements;
  double forward_flops;
};

constexpr Expected kExpected[] = {
    // clang-format off
    {"bert-large", 336226108, 336226108, 49152, 1069142016.0},
    {"bloom-176b", 176247271424, 176247271424, 2007040, 360689172480.0},
    {"codellama-13b", 13016028160, 13016028160, 409600, 27381104640.0},
    {"deepseek-v2", 235741434880, 21375800320, 34560, 51767869440.0},
    {"deepseek-v3", 671026419200, 37552297472, 35136, 83483295744.0},
    {"dit-xl-2", 674834720, 674834720, 0, 237242843136.0},
    {"dlrm-criteo", 24036595969, 2372225, 0, 4920320.0},
    {"dlrm-dcnv2", 26151671809, 16071937, 0, 32088320.0},
    {"falcon-180b", 179522565120, 179522565120, 81920, 366835400704.0},
    {"gemma-3-12b", 12187325040, 11766034176, 196608, 24386174976.0},
    {"gemma-4-26b-a4b", 25233141790, 3822530590, 107520, 8346206208.0},
    {"gemma-4-31b", 30697345340, 30697345340, 430080, 64202211328.0},
    {"glm-130b", 128697794560, 128697794560, 1720320, 264417312768.0},
    {"glm-5", 743911218432, 41784728832, 44928, 90824245248.0},
    {"gpt-3-175b", 174604259328, 174604259328, 2359296, 358791143424.0},
    {"gpt-j-6b", 6050882784, 6050882784, 229376, 12626690048.0},
    {"gpt-oss-120b", 116829156672, 5711982912, 36864, 10903339008.0},
    {"gpt-oss-20b", 20914757184, 4187440704, 24576, 7641710592.0},
    {"gpt2", 124439808, 124439808, 18432, 322561536.0},
    {"gpt2-large", 774030080, 774030080, 92160, 1921722880.0},
    {"gpt2-medium", 354823168, 354823168, 49152, 908232704.0},
    {"gpt2-xl", 1557611200, 1557611200, 153600, 3739088000.0},
    {"kimi-k2", 1026408232448, 32861500928, 35136, 68489183232.0},
    {"llama-2-13b", 13015864320, 13015864320, 409600, 27380940800.0},
    {"llama-2-70b", 68976648192, 68976648192, 163840, 142795079680.0},
    {"llama-2-7b", 6738415616, 6738415616, 262144, 14287896576.0},
    {"llama-3-70b", 70553706496, 70553706496, 163840, 144372137984.0},
    {"llama-3-8b", 8030261248, 8030261248, 65536, 16083058688.0},
    {"llama-3.1-405b", 405853388800, 405853388800, 258048, 824407228416.0},
    {"llama-3.1-70b", 70553706496, 70553706496, 163840, 144372137984.0},
    {"llama-3.1-8b", 8030261248, 8030261248, 65536, 16083058688.0},
    {"llama-3.3-70b", 70553706496, 70553706496, 163840, 144372137984.0},
    {"llama-4-maverick", 401583781376, 17184691200, 98304, 34312683520.0},
    {"llama-4-scout", 108641793536, 17172894720, 98304, 34289090560.0},
    {"llava-1.5-7b", 7063427072, 6738939904, 262144, 14288420864.0},
    {"megatron-gpt-1.7b", 1652230656, 1652230656, 110592, 3746562048.0},
    {"megatron-gpt-145.6b", 145622261760, 145622261760, 1966080, 299221647360.0},
    {"megatron-gpt-175b", 174615846912, 174615846912, 2359296, 358814318592.0},
    {"megatron-gpt-18.4b", 18449756160, 18449756160, 491520, 38881198080.0},
    {"megatron-gpt-1t", 1008038758400, 1008038758400, 6553600, 2042730905600.0},
    {"megatron-gpt-22b", 22074273792, 22074273792, 589824, 46531608576.0},
    {"megatron-gpt-3.6b", 3562168320, 3562168320, 184320, 7864320000.0},
    {"megatron-gpt-310.1b", 310130540544, 310130540544, 3145728, 633037914112.0},
    {"megatron-gpt-39.1b", 39096041472, 39096041472, 786432, 81369497600.0},
    {"megatron-gpt-530b", 529600819200, 529600819200, 4300800, 1076677836800.0},
    {"megatron-gpt-76.1b", 76050739200, 76050739200, 1228800, 157076684800.0},
    {"minimax-m2.5", 228689764864, 11030553088, 126976, 23950786560.0},
    {"mistral-7b", 7241732096, 7241732096, 65536, 15294529536.0},
    {"mixtral-8x22b", 140620634112, 39152031744, 114688, 80728031232.0},
    {"mixtral-8x7b", 46702792704, 12879925248, 65536, 26570915840.0},
    {"mpt-30b", 29957200896, 29957200896, 688128, 62731583488.0},
    {"mpt-7b", 6649286656, 6649286656, 262144, 14371782656.0},
    {"nemotron-3-nano-30b", 31577940288, 3580076352, 3072, 6740475904.0},
    {"nemotron-3-super-120b", 120668707840, 12770237440, 4096, 25026494464.0},
    {"opt-175b", 174604468224, 174604468224, 2359296, 358791512064.0},
    {"palm-540b", 540356474880, 540356474880, 60416, 1092586831872.0},
    {"qwen2-7b", 7615616512, 7615616512, 28672, 14962655232.0},
    {"qwen2.5-72b", 72706203648, 72706203648, 163840, 148285423616.0},
    {"qwen3-235b-a22b", 235093634560, 22190763520, 96256, 49443504128.0},
    {"qwen3-30b-a3b", 30532122624, 3353032704, 49152, 7693926400.0},
    {"qwen3-32b", 32762123264, 32762123264, 131072, 68262035456.0},
    {"qwen3-8b", 8190735360, 8190735360, 73728, 16344154112.0},
    {"qwen3.5-397b-a17b", 396346350336, 17349040896, 15360, 33952563200.0},
    {"vit-h-14", 632045800, 632045800, 0, 334590218240.0},
    {"vit-l-16", 304326632, 304326632, 0, 123109425152.0},
    {"wan2.1-14b", 14288491584, 14288491584, 0, 6523436592005120.0},
    // clang-format on
};

TEST(Model, CountsEveryCatalogModelToTheLastParameter) {
  ASSERT_TRUE(repository_models()) << repository_models().error().text();
  for (const Expected& expected : kExpected) {
    const ParameterCount count = count_parameters(model(expected.name));
    EXPECT_EQ(count.total, static_cast<double>(expected.total)) << expected.name;
    EXPECT_EQ(count.active, static_cast<double>(expected.active)) << expected.name;
  }
}

TEST(Model, TheTableOfExpectedCountsCoversTheCatalog) {
  ASSERT_TRUE(repository_models()) << repository_models().error().text();
  EXPECT_EQ(repository_models()->all().size(), std::size(kExpected));
}

TEST(Model, CountsOperationsAndCacheOfEveryCatalogModel) {
  for (const Expected& expected : kExpected) {
    const Model& known = model(expected.name);
    EXPECT_NEAR(forward_flops(known, Tokens(4096)).value() / expected.forward_flops, 1, 1e-12)
        << expected.name;
    if (family_of(known) == ModelFamily::kTransformer) {
      EXPECT_EQ(kv_elements_per_token(known), static_cast<double>(expected.kv_elements))
          << expected.name;
    }
  }
}

TEST(Model, TheNamedModelsHaveTheirPublishedParameters) {
  EXPECT_NEAR(count_parameters(model("Llama-3.1-405B")).total / 1e9, 405.85, 0.005);
  EXPECT_NEAR(count_parameters(model("DeepSeek-V3")).total / 1e9, 671.03, 0.005);
  EXPECT_NEAR(count_parameters(model("GPT-3")).total / 1e9, 174.6, 0.05);
  const ParameterCount mixtral = count_parameters(model("mixtral-8x7b"));
  EXPECT_NEAR(mixtral.total / 1e9, 46.70, 0.005);
  EXPECT_NEAR(mixtral.active / 1e9, 12.88, 0.005);
}

TEST(Model, GroupsEmbeddingAndLooseWeightsAddUpToTheTotal) {
  for (const Expected& expected : kExpected) {
    const Model& known = model(expected.name);
    const ParameterCount count = count_parameters(known);
    double body = 0;
    for (const LayerGroup& group : count.groups) {
      body += static_cast<double>(group.layers) * group.parameters;
      EXPECT_LE(group.active, group.parameters) << expected.name;
      EXPECT_LE(group.routed, group.parameters) << expected.name;
      EXPECT_GT(group.layers, 0) << expected.name;
    }
    const double loose = count.total - count.vision - count.embedding - body;
    EXPECT_GE(loose, 0) << expected.name;
    EXPECT_LT(loose, 0.02 * count.total) << expected.name;
    EXPECT_LE(count.active_without_embedding, count.active) << expected.name;
  }
}

TEST(Model, GroupsNameTheirLayersInOrderOfAppearance) {
  const std::vector<LayerGroup> groups = count_parameters(model("deepseek-v3")).groups;
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].name, "latent attention + dense");
  EXPECT_EQ(groups[0].layers, 3);
  EXPECT_EQ(groups[1].name, "latent attention + experts");
  EXPECT_EQ(groups[1].layers, 58);
  // 256 experts of three matrices 7168 x 2048.
  EXPECT_EQ(groups[1].routed, 256.0 * 3 * 7168 * 2048);
}

TEST(Model, PredictionModulesStayOutOfTheTotal) {
  // The DeepSeek-V3 README prints 11.5 B for the module beside the 671 B main model.
  const ParameterCount count = count_parameters(model("deepseek-v3"));
  EXPECT_NEAR(count.prediction / 1e9, 11.5, 0.2);
  EXPECT_LT(count.total, 671.1e9);
}

// Narayanan et al. SC21, formula (3): forward, recomputed forward and backward of twice the forward
// for the layers, no recomputation for the head.
TEST(Model, FourPassesMatchTheFormulaOfSc21) {
  int checked = 0;
  for (const Expected& expected : kExpected) {
    if (!expected.name.starts_with("megatron-gpt")) continue;
    const Model& known = model(expected.name);
    const auto* shape = std::get_if<Transformer>(&known.architecture);
    ASSERT_NE(shape, nullptr);
    const double h = static_cast<double>(shape->hidden);
    const double l = static_cast<double>(shape->layers.size());
    const double v = static_cast<double>(shape->vocab);
    const double s = 2048;
    const double formula = 96 * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
    const ForwardFlops pass = forward_flops_parts(known, Tokens(s), MaskedScores::kCounted);
    EXPECT_NEAR((4 * pass.layers + 3 * pass.ends).value() / formula, 1, 1e-12) << expected.name;
    ++checked;
  }
  EXPECT_EQ(checked, 11);
}

TEST(Model, SkippingMaskedScoresHalvesFullCausalAttention) {
  const Model& known = model("llama-3-8b");
  const Tokens sequence(8192);
  const double counted = forward_flops(known, sequence, MaskedScores::kCounted).value();
  const double skipped = forward_flops(known, sequence).value();
  const double none = forward_flops(known, Tokens(0)).value();
  EXPECT_NEAR((counted - none) / (skipped - none), 2, 1e-9);
}

TEST(Model, BidirectionalAttentionHasNothingMasked) {
  const Model& bert = model("bert-large");
  EXPECT_EQ(forward_flops(bert, Tokens(512)),
            forward_flops(bert, Tokens(512), MaskedScores::kCounted));
}

// Llama 3 (2024) prints 3.8e25 operations for 15.6 T tokens of the 405 B model, by 6 N D, which
// leaves attention out; three passes with it come to a few per cent more.
TEST(Model, TrainingLlama405BCostsWhatItsPaperSays) {
  const double pass = forward_flops(model("llama-3.1-405b"), Tokens(8192)).value();
  EXPECT_NEAR(3 * pass * 15.6e12 / 3.8e25, 1, 0.05);
}

TEST(Model, ImageModelsCostWhatTheirPapersSay) {
  // Multiply-adds are two operations: 61.6 G for ViT-L/16 (timm), 118.6 G for DiT-XL/2 (paper).
  EXPECT_NEAR(forward_flops(model("vit-l-16"), Tokens(0)).value() / 2e9, 61.6, 0.1);
  EXPECT_NEAR(forward_flops(model("dit-xl-2"), Tokens(0)).value() / 2e9, 118.6, 0.1);
}

// "Insights into DeepSeek-V3" (2025), Table 1: bytes of BF16 cache a token.
TEST(Model, CachesTakeThePublishedBytesAToken) {
  EXPECT_EQ(2 * kv_elements_per_token(model("deepseek-v3")), 70'272);
  EXPECT_EQ(2 * kv_elements_per_token(model("qwen2.5-72b")), 327'680);
  EXPECT_EQ(2 * kv_elements_per_token(model("llama-3.1-405b")), 516'096);
}

TEST(Model, AWindowBoundsTheAttention) {
  const Model& windowed = model("mistral-7b");
  const double none = forward_flops(windowed, Tokens(0)).value();
  const double within = forward_flops(windowed, Tokens(4096)).value() - none;
  const double beyond = forward_flops(windowed, Tokens(1 << 20)).value() - none;
  EXPECT_GT(beyond, within);
  EXPECT_NEAR(beyond / within, 2, 0.01);  // half a window on average, then nearly a whole one
}

TEST(Model, RecurrentLayersCacheNothingAToken) {
  // Six attention layers of 2 key-value heads of 128 among 52.
  EXPECT_EQ(kv_elements_per_token(model("nemotron-3-nano-30b")), 6 * 2 * 2 * 128);
  EXPECT_EQ(kv_elements_per_token(model("dlrm-dcnv2")), 0);
}

TEST(Model, OperationsOfASequenceNeverFallWithItsLength) {
  for (const Expected& expected : kExpected) {
    const Model& known = model(expected.name);
    double last = 0;
    for (double s = 0; s < 1e6; s = 2 * s + 1) {
      const double now = forward_flops(known, Tokens(s)).value();
      EXPECT_TRUE(std::isfinite(now) && now >= last) << expected.name << " at " << s;
      last = now;
    }
  }
}

TEST(Model, LayersAreNamedByMixerAndFeedForwardPart) {
  EXPECT_EQ(name_of(Layer{Mixer::kMamba, FeedForward::kNone}), "mamba");
  EXPECT_EQ(name_of(Layer{Mixer::kNone, FeedForward::kExperts}), "experts");
  EXPECT_EQ(name_of(Layer{Mixer::kSlidingAttention, FeedForward::kDenseAndExperts}),
            "sliding attention + dense + experts");
}

}  // namespace
}  // namespace orrery
