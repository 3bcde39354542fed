#include "verbs/study/study_verb.hpp"

#include <gtest/gtest.h>

#include "verbs/scratch_files_test.hpp"
#include "verbs/study/study_cell.hpp"

namespace orrery {
namespace {

constexpr const char* kStudy = R"(apiVersion: orrery/v1
kind: Study
name: s
run: simulate
base:
  accelerators: h100:8
  generate: philly
  jobs: 5
axes:
- name: policy
  values: [fifo, easy]
seeds: 2
show:
- makespan
)";

std::string with(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, text.npos) << what;
  return text.replace(at, what.size(), by);
}

Result<VerbAnswer> answer_of(const StudyCall& call) { return study({}, call, {}); }

TEST(Study, RunsEachCellOnceWhateverTheNumberOfThreads) {
  const ScratchFiles files;
  StudyCall call{.file = files.write("s.yaml", kStudy), .out = files.path("out"), .jobs = 1};
  std::vector<std::size_t> done;
  const Result<VerbAnswer> one = study({}, call, [&](std::size_t cell, std::size_t cells) {
    EXPECT_EQ(cells, 4U);
    done.push_back(cell);
  });
  ASSERT_TRUE(one) << one.error().text();
  EXPECT_EQ(done, (std::vector<std::size_t>{1, 2, 3, 4}));
  EXPECT_TRUE(
      one->text.ends_with("\nresults are in " + call.out + ": open " + call.out + "/study.html\n"));
  EXPECT_EQ(files.read("out/study.json"), one->json.dump(2) + "\n");
  EXPECT_NE(files.read("out/cells.csv"), "");
  EXPECT_NE(files.read("out/study.html"), "");
  call.jobs = 3;
  call.out = "";
  const Result<VerbAnswer> three = answer_of(call);
  ASSERT_TRUE(three);
  EXPECT_EQ(three->json, one->json) << "threads change nothing";
}

TEST(Study, CellsThatAreLeftOutAreToldAsNotRun) {
  const ScratchFiles files;
  const Result<VerbAnswer> answer =
      answer_of({.file = files.write("s.yaml", kStudy), .jobs = 1, .cells = 1});
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_NE(answer->json.dump().find("not run"), std::string::npos) << answer->json.dump(2);
}

TEST(Study, AnErrorOfACellIsAtTheLineThatAsksForIt) {
  const ScratchFiles files;
  const auto refusal = [&](const std::string& text) {
    const Result<VerbAnswer> answer = answer_of({.file = files.write("s.yaml", text), .jobs = 1});
    return answer ? "accepted" : answer.error().text();
  };
  const std::string file = files.path("s.yaml");
  EXPECT_TRUE(refusal(with(kStudy, "h100:8", "h100")).starts_with(file + ":6:"))
      << refusal(with(kStudy, "h100:8", "h100"));
  EXPECT_TRUE(refusal(with(kStudy, "philly", "phily")).starts_with(file + ":7:"))
      << refusal(with(kStudy, "philly", "phily"));
  EXPECT_TRUE(refusal(with(kStudy, "easy]", "esay]")).starts_with(file + ":11:"))
      << refusal(with(kStudy, "easy]", "esay]"));
  const std::string two = refusal(with(kStudy, "[fifo, easy]", "[fifo, \"fifo,easy\"]"));
  EXPECT_TRUE(two.starts_with(file + ":11:")) << two;
  EXPECT_TRUE(two.ends_with("expected one policy: use an axis of the study for several policies"))
      << two;
  EXPECT_TRUE(refusal(with(kStudy, "seeds: 2", "seed: 2")).starts_with(file + ":12:1: "));
}

TEST(Study, RepeatsHaveSeedsOfTheirOwn) {
  const ScratchFiles files;
  const std::string file = files.write("s.yaml", kStudy);
  const Result<std::unique_ptr<Study>> study = Study::load(file);
  ASSERT_TRUE(study) << study.error().text();
  const Result<Study::CellFiles> asked = (*study)->cell({0});
  ASSERT_TRUE(asked);
  const auto figures = [&](std::uint32_t repeat) {
    Result<std::vector<double>> of = run_cell(
        {}, {.run = StudyRun::kSimulate, .file = file, .asked = &*asked, .repeat = repeat});
    EXPECT_TRUE(of) << (of ? "" : of.error().text());
    return of ? *of : std::vector<double>();
  };
  const std::vector<StudyFigure> names = study_figures(StudyRun::kSimulate);
  EXPECT_EQ(figures(0).size(), names.size());
  const auto makespan = static_cast<std::size_t>(
      std::find_if(names.begin(), names.end(),
                   [](const StudyFigure& each) { return each.name == "makespan"; }) -
      names.begin());
  ASSERT_LT(makespan, names.size());
  EXPECT_EQ(figures(0)[makespan], figures(0)[makespan]);
  EXPECT_NE(figures(0)[makespan], figures(1)[makespan]);
}

TEST(Study, AMissingFileIsNamed) {
  const Result<VerbAnswer> none = answer_of({.file = "/nonexistent/s.yaml"});
  ASSERT_FALSE(none);
  EXPECT_TRUE(none.error().text().starts_with("/nonexistent/s.yaml")) << none.error().text();
}

TEST(Study, OfAServicePlaysItsRequestsInEachCell) {
  const ScratchFiles files;
  files.write("chat.yaml",
              "apiVersion: orrery/v1\nkind: Serve\nname: chat\n"
              "roles: [{name: replica, replicas: 1, accelerators: 1}]\n"
              "slo: {ttft_p99: 500 ms}\n"
              "revisions: [{model: chat, artifact: /m, engine: vllm}]\n");
  files.write("pace.json", R"({"step_s": 0.01, "prompt_token_s": 1e-4})");
  files.write("requests.yaml", "apiVersion: orrery/v1\nkind: Requests\nspan: 2 min\nrate: 6\n");
  const std::string text = R"(apiVersion: orrery/v1
kind: Study
name: s
run: serve
base: {serve: chat.yaml, requests: requests.yaml, pace: pace.json}
axes:
- {name: replicas, values: [1, 4]}
seeds: 2
show:
- {figure: ttft_p99, x: replicas}
- slo_attained
)";
  const Result<VerbAnswer> answer = answer_of({.file = files.write("s.yaml", text), .jobs = 1});
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer->json["points"].size(), 2U) << answer->json.dump(1);
  const auto mean = [&](std::size_t point, const char* figure) {
    return answer->json["points"][point]["figures"][figure]["mean"].get<double>();
  };
  EXPECT_GT(mean(0, "ttft_p99"), mean(1, "ttft_p99"));
  EXPECT_LT(mean(0, "slo_attained"), mean(1, "slo_attained"));
  const Result<VerbAnswer> wrong = answer_of(
      {.file = files.write("w.yaml", with(text, "pace: pace.json", "pace: none.json")), .jobs = 1});
  ASSERT_FALSE(wrong);
}

}  // namespace
}  // namespace orrery
