// verbs/catalog/fleet_answer_test.cpp - fleets generated, checked and shown.
#include "verbs/catalog/fleet_answer.hpp"

#include <gtest/gtest.h>

#include "fleet/fleet_test.hpp"
#include "verbs/catalog/fleet_text.hpp"
#include "verbs/scratch_files_test.hpp"

namespace orrery {
namespace {

TEST(FleetAnswer, AValidSpecIsCounted) {
  const ScratchFiles files;
  const std::string path = files.write("fleet.yaml", small_h100());
  const Result<VerbAnswer> answer = validated_fleet({}, path);
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_TRUE(answer->text.starts_with(path + ": valid; nodes: 16, accelerators: 128\n"))
      << answer->text;
  EXPECT_EQ(answer->json, Json::parse(R"({"valid": true, "name": "test", "nodes": 16,
                                          "accelerators": 128})"));
}

TEST(FleetAnswer, ASpecThatIsWrongIsToldWithItsPlace) {
  const ScratchFiles files;
  const std::string path = files.write(
      "fleet.yaml", one_hall("    - name: su\n      racks:\n      - nodes: [{type: dgx-h1000}]\n"));
  const Result<VerbAnswer> answer = validated_fleet({}, path);
  ASSERT_FALSE(answer);
  EXPECT_TRUE(answer.error().text().starts_with(path + ":11:")) << answer.error().text();
  EXPECT_NE(answer.error().message.find("dgx-h1000"), std::string::npos);
  EXPECT_EQ(answer.error().message.find("--catalog"), std::string::npos);
  files.write("catalog/nodes.yaml", "");
  const std::string hinted = validated_fleet({}, path).error().message;
  EXPECT_TRUE(hinted.ends_with("is read with --catalog " + files.path("catalog"))) << hinted;
}

TEST(FleetAnswer, AGeneratedSpecValidatesWithItsNumberOfNodes) {
  const Result<VerbAnswer> spec = generated_fleet({}, "dgx-superpod-h100", 32);
  ASSERT_TRUE(spec) << spec.error().text();
  const ScratchFiles files;
  const Result<VerbAnswer> valid = validated_fleet({}, files.write("fleet.yaml", spec->text));
  ASSERT_TRUE(valid) << valid.error().text();
  EXPECT_EQ(valid->json["nodes"], 32);
  EXPECT_EQ(valid->json["accelerators"], 256);
  EXPECT_EQ(spec->json["name"], valid->json["name"]);
  EXPECT_FALSE(generated_fleet({}, "no-such-system", std::nullopt));
}

Result<FleetSpec> small_import(const Catalog& catalog, const std::string& path) {
  static_cast<void>(catalog);
  return spec_of(path);
}

TEST(FleetAnswer, WhatAnImportMadeMustValidate) {
  const Result<ImportedFleet> good = imported_fleet({}, small_import, small_h100());
  ASSERT_TRUE(good) << good.error().text();
  EXPECT_TRUE(good->spec.text.starts_with("apiVersion: orrery/v1\nkind: Fleet\nname: test\n"))
      << good->spec.text;
  EXPECT_EQ(good->warning, "");
  const Result<ImportedFleet> bad = imported_fleet(
      {}, small_import,
      one_hall("    - name: su\n      racks:\n      - nodes: [{type: dgx-h1000}]\n"));
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("dgx-h1000"), std::string::npos);
}

TEST(FleetAnswer, AnImportSaysWhichNodesItCouldOnlyGuess) {
  const Result<ImportedFleet> fleet = imported_fleet(
      {}, small_import,
      one_hall("    - name: su\n      racks:\n"
               "      - nodes: [{type: dgx-h100, count: 2}, {type: cpu-epyc-2s, count: 3}]\n"));
  ASSERT_TRUE(fleet) << fleet.error().text();
  EXPECT_TRUE(fleet->warning.starts_with("nodes without GPUs: 3, taken for 2 x amd-epyc-9654. "))
      << fleet->warning;
}

TEST(FleetAnswer, ADrawingIsWrittenButNotOverTheSpec) {
  const ScratchFiles files;
  const std::string path = files.write("fleet.yaml", small_h100());
  const auto refusal = [&](const std::string& svg) {
    const Result<VerbAnswer> answer = shown_fleet({}, {.file = path, .svg = svg});
    return answer ? "it was accepted" : answer.error().text();
  };
  EXPECT_EQ(refusal(""), "--svg: expected the name of a file");
  EXPECT_EQ(refusal("-"), "--svg: expected the name of a file");
  const std::string same = files.path("./fleet.yaml");
  EXPECT_EQ(refusal(same), "--svg " + same + " would overwrite the spec");
  EXPECT_EQ(files.read("fleet.yaml"), small_h100());
  ASSERT_TRUE(shown_fleet({}, {.file = path, .svg = files.path("fleet.svg")}));
  EXPECT_TRUE(files.read("fleet.svg").starts_with("<svg")) << files.read("fleet.svg").substr(0, 80);
}

TEST(FleetAnswer, EqualSiblingsAreOneLineOfTheTree) {
  const std::string tree = tree_text(built(small_h100()));
  EXPECT_TRUE(tree.starts_with("test: 16 nodes, 128 x nvidia-h100-sxm5-80g\n└─ site east: PUE "))
      << tree;
  EXPECT_NE(tree.find("   └─ hall hall: 16 nodes, 128 x nvidia-h100-sxm5-80g\n"
                      "      └─ pod su x 2: 8 nodes, 64 x nvidia-h100-sxm5-80g each\n"
                      "         └─ rack rack x 2: 4 x dgx-h100 (32 x nvidia-h100-sxm5-80g), "),
            std::string::npos)
      << tree;
}

TEST(FleetAnswer, OnlyTheFirstDomainsOverTheirLimitAreListed) {
  PowerTotal power;
  EXPECT_TRUE(oversubscribed_texts(power).empty());
  for (int i = 1; i <= 4; ++i) {
    power.oversubscribed_in_training.push_back(
        {.domain = "row" + std::to_string(i), .load = Watts(1500), .limit = Watts(1000)});
  }
  ASSERT_EQ(oversubscribed_texts(power).size(), 4u);
  EXPECT_EQ(oversubscribed_texts(power)[0],
            "row1 would draw 1.5 kW in training, 50.0 % above its limit of 1 kW");
  power.oversubscribed_in_training.resize(7, power.oversubscribed_in_training.front());
  const std::vector<std::string> texts = oversubscribed_texts(power);
  ASSERT_EQ(texts.size(), 5u);
  EXPECT_EQ(texts[4], "and 3 more");
}

TEST(FleetAnswer, MoneyThatIsNotKnownIsNamedAndNotZero) {
  FleetSummary summary;
  summary.money.capex_missing = {"laptop"};
  summary.money.rent.quantity = DollarsPerSecond(7.2 / 3600);
  summary.money.rent_missing = {"cpu-a", "cpu-b"};
  const std::string text = summary_text(summary);
  EXPECT_NE(text.find("\nto buy    no price for laptop\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nto rent   $7.20/h on demand; no price for cpu-a, cpu-b\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("electricity"), std::string::npos);
}

}  // namespace
}  // namespace orrery
