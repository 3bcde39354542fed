#include "verbs/design/design_verb.hpp"

#include <gtest/gtest.h>

#include "verbs/design/design_text.hpp"
#include "verbs/scratch_files_test.hpp"

namespace orrery {
namespace {

constexpr const char* kLab =
    "apiVersion: orrery/v1\nkind: Design\nname: lab\nsite:\n  power: 100 kW\n  budget: $3M\n"
    "workload:\n- name: train\n  kind: Train\n  model: gpt2-xl\n  accelerators: 8\n"
    "  sequence: 1024\n  global_batch: 64\ncandidates: [h100]\n";

DesignOptions untested(const std::string& file) {
  DesignOptions asked;
  asked.file = file;
  asked.twin = DesignOptions::Twin::kSkipped;
  return asked;
}

std::string refusal(const DesignOptions& asked) {
  const Result<JudgedAnswer> answer = design({}, asked, [](const std::string&) {});
  return answer ? "accepted" : answer.error().text();
}

TEST(DesignVerb, StaysWithinItsPowerAndSumsItsBill) {
  const ScratchFiles files;
  DesignOptions asked = untested(files.write("lab.yaml", kLab));
  asked.out = files.path("out");
  std::vector<std::string> said;
  const Result<JudgedAnswer> answer =
      design({}, asked, [&](const std::string& what) { said.push_back(what); });
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_TRUE(answer->verdict);
  EXPECT_EQ(said, (std::vector<std::string>{"planning for nvidia-h100-sxm5-80g", ""}));
  const Json& json = answer->shown.json;
  EXPECT_EQ(json["name"], "lab");
  EXPECT_LE(json["power_max_watts"].get<double>(), 1e5);
  EXPECT_LE(json["capex_usd"].get<double>(), 3e6);
  EXPECT_GE(json["pue"].get<double>(), 1);
  EXPECT_FALSE(json.contains("simulated")) << "the twin was skipped";
  double used = 0;
  for (const auto& [part, share] : json["predicted"].items()) used += share.get<double>();
  EXPECT_NEAR(used, 1, 1e-9) << "parts of the accelerators' time";
  EXPECT_EQ(json["works"][0]["name"], "train");
  EXPECT_EQ(json["works"][0]["accelerators"], 8);
  EXPECT_TRUE(answer->shown.text.starts_with("lab: nvidia-h100-sxm5-80g\n  nodes  "))
      << answer->shown.text;
  EXPECT_NE(answer->shown.text.find(" of 100 kW at the meter"), std::string::npos);
  EXPECT_EQ(files.read("out/design.json"), json.dump(2) + "\n");
  EXPECT_NE(files.read("out/fleet.yaml").find("kind: Fleet"), std::string::npos);
  EXPECT_NE(files.read("out/design.html"), "");
}

TEST(DesignVerb, TheTwinConfirmsAQuietDesign) {
  const ScratchFiles files;
  DesignOptions asked = untested(files.write("lab.yaml", kLab));
  asked.twin = DesignOptions::Twin::kPlays;
  asked.span = "1 day";
  const Result<JudgedAnswer> answer = design({}, asked, [](const std::string&) {});
  ASSERT_TRUE(answer) << answer.error().text();
  const Json& json = answer->shown.json;
  EXPECT_EQ(json["simulated_days"], 1.0);
  EXPECT_TRUE(json["confirmed"].get<bool>()) << answer->shown.text;
  EXPECT_TRUE(answer->verdict) << answer->verdict.error().text();
  EXPECT_NE(answer->shown.text.find("goodput "), std::string::npos);
  EXPECT_NE(answer->shown.text.find("SIMULATED"), std::string::npos);
}

TEST(DesignVerb, CandidatesOfTheOptionReplaceThoseOfTheSpec) {
  const ScratchFiles files;
  DesignOptions asked = untested(files.write("lab.yaml", kLab));
  asked.candidates = "h100,a100-80g";
  const Result<JudgedAnswer> answer = design({}, asked, [](const std::string&) {});
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_NE(answer->shown.json["not_chosen"].dump().find("a100"), std::string::npos)
      << answer->shown.json["not_chosen"].dump();
  asked.candidates = "h100,h1000";
  EXPECT_TRUE(refusal(asked).starts_with("--candidates")) << refusal(asked);
  asked.candidates = "h100,";
  EXPECT_NE(refusal(asked), "accepted");
}

TEST(DesignVerb, WrongOptionsAndSpecsAreNamed) {
  const ScratchFiles files;
  DesignOptions asked = untested(files.write("lab.yaml", kLab));
  asked.precision = "fp7";
  EXPECT_TRUE(refusal(asked).starts_with("--precision: ")) << refusal(asked);
  asked.precision = "";
  asked.span = "7";
  EXPECT_TRUE(refusal(asked).starts_with("--span: ")) << refusal(asked);
  asked.span = "7 days";
  std::string small(kLab);
  small.replace(small.find("100 kW"), 6, "1 kW");
  asked.file = files.write("small.yaml", small);
  const Result<JudgedAnswer> none = design({}, asked, [](const std::string&) {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::kInfeasible) << none.error().text();
  asked.file = files.path("missing.yaml");
  EXPECT_TRUE(refusal(asked).starts_with(asked.file)) << refusal(asked);
}

}  // namespace
}  // namespace orrery
