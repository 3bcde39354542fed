// verbs/catalog/catalog_answer_test.cpp - facts and models of the catalog: lists, rows, and names
// that are none.
#include "verbs/catalog/catalog_answer.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "perf/repository_facts_test.hpp"
#include "verbs/catalog/model_answer.hpp"
#include "verbs/scratch_files_test.hpp"
#include "workload/builtin_models.hpp"

namespace orrery {
namespace {

CatalogFacts facts() {
  static const Result<ModelCatalog> kModels = ModelCatalog::load(builtin_models(), {});
  return {builtin_facts(), [] { return kModels; }};
}

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

TEST(CatalogAnswer, EveryKindOfTheOverviewHasItsRows) {
  const Result<VerbAnswer> overview = list_catalog(facts(), "");
  ASSERT_TRUE(overview);
  ASSERT_GT(overview->json.size(), 10u);
  for (const Json& kind : overview->json) {
    const std::string name = kind["kind"].get<std::string>();
    const Result<VerbAnswer> rows = list_catalog(facts(), name);
    ASSERT_TRUE(rows) << name;
    EXPECT_EQ(rows->json.size(), kind["rows"]) << name;
    EXPECT_EQ(lines_of(rows->text), kind["rows"].get<std::size_t>() + 1) << name;
  }
}

TEST(CatalogAnswer, ModelsThatCannotBeReadDoNotHideOtherFacts) {
  const CatalogFacts broken{builtin_facts(), []() -> Result<ModelCatalog> {
                              return input_error({}, "models.yaml:3: no number");
                            }};
  EXPECT_TRUE(list_catalog(broken, "nodes"));
  EXPECT_TRUE(show_catalog(broken, {.kind = "", .name = "h100"}));
  EXPECT_NE(list_catalog(broken, "nodez").error().message.find("no kind"), std::string::npos);
  for (const Result<VerbAnswer>& refused :
       {list_catalog(broken, ""), list_catalog(broken, "models"),
        show_catalog(broken, {.kind = "", .name = "llama-3.1-8b"})}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "models.yaml:3: no number");
  }
}

TEST(CatalogAnswer, AKindMayBeTypedInTheSingularAndInCapitals) {
  const Result<VerbAnswer> plural = list_catalog(facts(), "accelerators");
  const Result<VerbAnswer> singular = list_catalog(facts(), "Accelerator");
  ASSERT_TRUE(plural);
  ASSERT_TRUE(singular);
  EXPECT_EQ(singular->text, plural->text);
}

TEST(CatalogAnswer, AnUnknownKindIsAnsweredWithTheKinds) {
  const Result<VerbAnswer> answer = list_catalog(facts(), "Nodez");
  ASSERT_FALSE(answer);
  EXPECT_TRUE(answer.error().message.starts_with(
      "no kind \"Nodez\", did you mean \"nodes\"?; kinds: models, evidence, accelerators, "))
      << answer.error().message;
}

TEST(CatalogAnswer, ARowIsFoundByItsAlias) {
  const Result<VerbAnswer> by_alias = show_catalog(facts(), {.kind = "", .name = "h100"});
  const Result<VerbAnswer> by_id =
      show_catalog(facts(), {.kind = "accelerators", .name = "nvidia-h100-sxm5-80g"});
  ASSERT_TRUE(by_alias) << by_alias.error().text();
  ASSERT_TRUE(by_id) << by_id.error().text();
  EXPECT_EQ(by_alias->json, by_id->json);
  EXPECT_EQ(by_id->json["catalog"], "accelerators");
  EXPECT_EQ(by_id->json["id"], "nvidia-h100-sxm5-80g");
  const Json& nodes = by_id->json["nodes"];
  EXPECT_NE(std::find(nodes.begin(), nodes.end(), "dgx-h100"), nodes.end());
  EXPECT_EQ(by_id->json["stacks"].size(), builtin_facts().all<Framework>().size());
}

TEST(CatalogAnswer, ARowOfAnotherKindIsNoAnswer) {
  const Result<VerbAnswer> answer = show_catalog(facts(), {.kind = "nodes", .name = "h100"});
  ASSERT_FALSE(answer);
  EXPECT_TRUE(answer.error().message.starts_with("\"h100\" is not in the catalog"));
}

TEST(CatalogAnswer, AnUnknownNameIsAnsweredWithANearOneAndCannotSteerATerminal) {
  const Result<VerbAnswer> near = show_catalog(facts(), {.kind = "", .name = "h200x"});
  ASSERT_FALSE(near);
  EXPECT_EQ(near.error().message,
            "\"h200x\" is not in the catalog, did you mean \"h200\"?; `orrery catalog list` lists "
            "its kinds");
  const Result<VerbAnswer> wild = show_catalog(facts(), {.kind = "", .name = "\x1b[2J"});
  ASSERT_FALSE(wild);
  EXPECT_EQ(wild.error().message.find('\x1b'), std::string::npos);
}

TEST(CatalogAnswer, AStackIsAskedForInEitherOrder) {
  const Result<VerbAnswer> one = show_stacks(builtin_facts(), "pytorch", "h100");
  const Result<VerbAnswer> other = show_stacks(builtin_facts(), "h100", "pytorch");
  ASSERT_TRUE(one) << one.error().text();
  ASSERT_TRUE(other) << other.error().text();
  EXPECT_EQ(one->text, other->text);
  EXPECT_EQ(one->json, other->json);
  EXPECT_TRUE(one->text.starts_with("PyTorch on H100 SXM5 80 GB (nvidia-h100-sxm5-80g): "));
}

TEST(CatalogAnswer, TwoNamesOfOneKindAreRefused) {
  const auto refusal = [](const std::string& first, const std::string& second) {
    const Result<VerbAnswer> answer = show_stacks(builtin_facts(), first, second);
    return answer ? "it was accepted" : answer.error().message;
  };
  EXPECT_EQ(refusal("pytorch", "jax"),
            "\"pytorch\" and \"jax\" are both frameworks; expected one framework and one "
            "accelerator");
  EXPECT_EQ(refusal("h100", "a100"),
            "\"h100\" and \"a100\" are both accelerators; expected one framework and one "
            "accelerator");
  EXPECT_NE(refusal("foo", "").find("; frameworks: pytorch, "), std::string::npos);
}

TEST(ModelAnswer, AModelHasItsCountsInBothForms) {
  const std::optional<VerbAnswer> answer = show_model(*facts().models(), "llama-3.1-8b");
  ASSERT_TRUE(answer);
  // Embeddings and head of 128,256 x 4,096, 32 layers, and norms.
  EXPECT_EQ(answer->json["parameters"]["total"], 8'030'261'248);
  EXPECT_EQ(answer->json["parameters"]["embedding"], 2LL * 128'256 * 4096);
  EXPECT_EQ(answer->json["layers"][0]["layers"], 32);
  // Keys and values of eight heads of 128 in each of 32 layers.
  EXPECT_EQ(answer->json["kv_elements_per_token"], 2 * 8 * 128 * 32);
  EXPECT_NE(answer->text.find("\nparameters  8.03 B (8,030,261,248)\n"), std::string::npos);
  EXPECT_NE(answer->text.find("\nKV cache    65,536 elements per token\n"), std::string::npos);
  EXPECT_FALSE(show_model(*facts().models(), "no such model"));
}

TEST(ModelAnswer, AModelOfAFileIsShownWithoutProvenance) {
  const ScratchFiles files;
  const std::string path =
      files.write("config.json",
                  R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100,
          "intermediate_size": 128, "max_position_embeddings": 512})");
  const Result<VerbAnswer> answer = show_catalog(facts(), {.kind = "", .name = path});
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer->json["sequence"], 512) << "no longer than the model's own";
  EXPECT_EQ(answer->json["kv_elements_per_token"], 2 * 2 * 16 * 2);
  EXPECT_FALSE(answer->json.contains("source"));
  const Result<VerbAnswer> none = show_model_file(*facts().models(), files.path("none.json"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().text(),
            "\"" + files.path("none.json") + "\" is neither a model of the catalog nor a file");
}

TEST(ModelAnswer, TheListHasEveryModelOnce) {
  const VerbAnswer answer = list_models(*facts().models());
  EXPECT_EQ(answer.json.size(), facts().models()->all().size());
  for (const Json& model : answer.json) {
    EXPECT_GE(model["parameters"]["total"], model["parameters"]["active"]) << model["name"];
  }
}

}  // namespace
}  // namespace orrery
