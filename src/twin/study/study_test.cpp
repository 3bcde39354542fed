// twin/study/study_test.cpp - files of kind Study: their cells, how answers are summed up and
// shown, and their errors.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "base/xml_test.hpp"
#include "twin/study/study_pairs.hpp"
#include "twin/study/study_report.hpp"

namespace orrery {
namespace {

constexpr const char* kHead = "apiVersion: orrery/v1\nkind: Study\nname: s\n";

constexpr const char* kSpares = R"(run: simulate
base:
  accelerators: h100:64
  load: 0.5
  failures: {apiVersion: orrery/v1, kind: Failures, name: f, repairs: [{fault: host}, {fault: nic}]}
axes:
- name: spares
  label: spare nodes
  values: [0, 4]
- name: rate
  option: failures.failures_per_1000_node_days
  values: [3, {label: as new, value: 12}]
seeds: 2
show:
- {figure: ettr, x: spares, series: rate}
- {figure: ettr, x: rate, series: spares}
- makespan
)";

Result<std::unique_ptr<Study>> read(const std::string& text) {
  return Study::read(*Document::parse(text, "s.yaml"));
}

std::unique_ptr<Study> sound(const std::string& text) {
  Result<std::unique_ptr<Study>> study = read(text);
  EXPECT_TRUE(study) << (study ? "" : study.error().text());
  return study ? *std::move(study) : nullptr;
}

std::string refusal(const std::string& text) {
  const Result<std::unique_ptr<Study>> study = read(text);
  return study ? "accepted" : study.error().text();
}

/// A text with one piece of it changed.
std::string with(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, text.npos) << what;
  return text.replace(at, what.size(), by);
}

std::string spares() { return std::string(kHead) + kSpares; }

/// A scalar of a text, by its path.
std::string scalar_at(const PatchedText& text, std::string_view path) {
  const Result<Document> document = Document::parse(text.text, "t");
  EXPECT_TRUE(document) << (document ? "" : document.error().text()) << "\n" << text.text;
  if (!document) return "";
  DocumentNode node = document->root();
  for (const std::string& part : patch_path(path)) {
    const bool list = node.kind() == NodeKind::kSequence;
    const std::optional<DocumentNode> next =
        list ? node.items().at(static_cast<std::size_t>(part[0] - '0')) : entry_of(node, part);
    if (!next) return "none";
    node = *next;
  }
  return std::string(node.text());
}

/// Gives each figure a value that identifies the cell; the last point fails.
std::vector<CellOutcome> made_up(const StudySpec& spec) {
  std::vector<CellOutcome> outcomes;
  const std::vector<StudyCell> cells = study_cells(spec);
  outcomes.reserve(cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    CellOutcome& outcome = outcomes.emplace_back();
    outcome.figures.assign(spec.figures.size(), 0.5 + 0.01 * static_cast<double>(i));
  }
  outcomes.back() = {{}, "no \"room\", none"};
  return outcomes;
}

TEST(Study, ACellIsTheBaseWithOneValueOfEachAxis) {
  const auto study = sound(spares());
  ASSERT_NE(study, nullptr);
  const std::vector<StudyCell> cells = study_cells(study->spec());
  ASSERT_EQ(cells.size(), 8u);
  EXPECT_EQ(cells[3].values, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(cells[3].repeat, 1u);
  const Result<Study::CellFiles> cell = study->cell(cells[7].values);
  ASSERT_TRUE(cell) << cell.error().text();
  EXPECT_EQ(scalar_at(cell->options, "accelerators"), "h100:64");
  EXPECT_EQ(scalar_at(cell->options, "spares"), "4");
  ASSERT_EQ(cell->files.size(), 1u);
  EXPECT_EQ(scalar_at(cell->options, "failures"), cell->files[0].name);
  EXPECT_EQ(scalar_at(cell->files[0].text, "failures_per_1000_node_days"), "12");
  EXPECT_EQ(scalar_at(cell->files[0].text, "repairs.1.fault"), "nic");
}

TEST(Study, AnErrorInACellIsWhereTheUserWroteIt) {
  const auto study = sound(with(spares(), "values: [3,", "values: [\"3\","));
  ASSERT_NE(study, nullptr);
  const Result<Study::CellFiles> cell = study->cell({0, 0});
  ASSERT_TRUE(cell) << cell.error().text();
  const PatchedText& text = cell->files[0].text;
  const Result<Document> document = Document::parse(text.text, "t");
  ASSERT_TRUE(document);
  const auto rate = entry_of(document->root(), "failures_per_1000_node_days");
  const Result<double> number = read_number(*rate);
  ASSERT_FALSE(number) << "a quoted number is text";
  EXPECT_EQ(text.located(number.error()).text(), "s.yaml:15:12: expected a number, found \"3\"");
}

TEST(Study, PathsReachIntoListsAndAddWhatIsMissing) {
  const std::string text =
      with(spares(), "failures.failures_per_1000_node_days", "failures.repairs.*.repair.median");
  const auto study = sound(text);
  ASSERT_NE(study, nullptr);
  const Result<Study::CellFiles> cell = study->cell({0, 1});
  ASSERT_TRUE(cell) << cell.error().text();
  EXPECT_EQ(scalar_at(cell->files[0].text, "repairs.0.repair.median"), "12");
  EXPECT_EQ(scalar_at(cell->files[0].text, "repairs.1.repair.median"), "12");
  for (const auto& [path, message] :
       {std::pair{"failures.repairs.2.fault",
                  "\"failures.repairs\" is a list of 2: expected a position from 0, or *, found "
                  "\"2\""},
        std::pair{"failures.name.x", "\"failures.name\" is \"f\": expected a mapping or a list"},
        std::pair{"fleet.sites", "\"fleet\" is not given: expected it in the base options"}}) {
    const auto wrong = sound(with(spares(), "failures.failures_per_1000_node_days", path));
    const Result<Study::CellFiles> refused = wrong->cell({0, 0});
    ASSERT_FALSE(refused) << path;
    EXPECT_EQ(refused.error().text(), "s.yaml:14:11: " + std::string(message));
  }
}

TEST(Study, NamesTheLineAndTheNearestNameOfWhatIsWrong) {
  const std::string text = spares();
  EXPECT_TRUE(refusal(with(text, "makespan", "makspan"))
                  .starts_with("s.yaml:20:3: no figure \"makspan\", did you mean \"makespan\"?"));
  EXPECT_EQ(refusal(with(text, "x: spares, series", "x: spears, series")),
            "s.yaml:18:3: no axis \"spears\", did you mean \"spares\"?");
  EXPECT_EQ(refusal(with(text, "label: spare nodes", "lable: spare nodes")),
            "s.yaml:11:3: unknown key \"lable\", did you mean \"label\"?; known here: name, label, "
            "option, values");
  EXPECT_EQ(refusal(with(text, "values: [0, 4]", "values: [0, 0]")),
            "s.yaml:12:15: duplicate value \"0\"");
  EXPECT_EQ(refusal(with(text, "seeds: 2", "seeds: 0")), "s.yaml:16:8: expected 1 to 1000 seeds");
  EXPECT_TRUE(refusal(with(with(text, "values: [0, 4]", "values: [none, 4]"), "series: rate}",
                           "series: rate, kind: lines}"))
                  .starts_with("s.yaml:18:3: axis \"spares\" has no numbers"));
  EXPECT_EQ(refusal(with(text, "run: simulate", "run: plan")),
            "s.yaml:16:8: plans have no random part: expected no seeds");
}

TEST(Study, ValuesOfOneUnitLieOnALine) {
  const auto study = sound(std::string(kHead) + R"(run: plan
base: {model: llama-3.1-8b, accelerators: h100:64}
axes:
- {name: power_cap, values: [300 W, 0.5 kW]}
- {name: precision, values: [bf16, fp8]}
- name: ratio
  option: layout
  values: [{label: "1:1", at: 1, value: tp=1}, {label: "1:99", at: 99, set: {layout: tp=2}}]
show: [step]
)");
  ASSERT_NE(study, nullptr);
  const std::vector<StudyAxis>& axes = study->spec().axes;
  EXPECT_TRUE(axes[0].numeric);
  EXPECT_EQ(axes[0].values[1].at, 500);
  EXPECT_EQ(axes[0].axis.symbol, "W");
  EXPECT_FALSE(axes[1].numeric);
  EXPECT_TRUE(axes[2].numeric);
  EXPECT_EQ(axes[2].axis.scale, AxisScale::kLog);
}

TEST(Study, TheIntervalIsStudentsAndLeavesOutWhatIsUnknown) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const Estimate three = estimate_of({1, none, 2, 3});
  EXPECT_EQ(three.count, 3u);
  EXPECT_DOUBLE_EQ(three.mean, 2);
  EXPECT_NEAR(three.high - three.mean, 4.303 / std::sqrt(3.0), 1e-12);
  EXPECT_EQ(estimate_of({5}).low, 5);
  EXPECT_EQ(estimate_of({none}).count, 0u);
}

TEST(Study, CellsComeOutTheSameForEveryNumberOfWorkers) {
  CellRunner runner{.cells = 50, .run = [](std::size_t i) -> Result<std::vector<double>> {
                      if (i % 7 == 3) return infeasible(fmt::format("cell {}", i));
                      return std::vector<double>{static_cast<double>(i * i)};
                    }};
  const Result<std::vector<CellOutcome>> one = run_cells(runner);
  runner.threads = 4;
  const Result<std::vector<CellOutcome>> four = run_cells(runner);
  ASSERT_TRUE(one && four);
  for (std::size_t i = 0; i < one->size(); ++i) {
    EXPECT_EQ((*one)[i].figures, (*four)[i].figures);
    EXPECT_EQ((*one)[i].failure, (*four)[i].failure);
  }
  EXPECT_EQ((*one)[10].failure, "cell 10");
  runner.run = [](std::size_t i) -> Result<std::vector<double>> {
    if (i >= 5) return input_error({}, fmt::format("cell {}", i));
    return std::vector<double>{};
  };
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(run_cells(runner).error().message, "cell 5") << "the first that is wrong";
  }
}

TEST(Study, TheBestOfAColumnIsAmongRowsOfTheSameWork) {
  const auto study = sound(R"(apiVersion: orrery/v1
kind: Study
name: parts
run: plan
base:
  seq: 4096
axes:
- name: model
  values: [llama-3.1-8b, llama-3.1-70b]
- name: accelerators
  values: [{label: one, value: "h100:8"}, {label: two, value: "mi300x:8"}]
show:
- {figure: joules_per_token, x: model, series: accelerators}
)");
  ASSERT_NE(study, nullptr);
  std::vector<CellOutcome> outcomes = made_up(study->spec());
  outcomes.back() = outcomes.front();
  // Rows in order: 8b one, 8b two, 70b one, 70b two; the last has no figures.
  for (double& figure : outcomes[0].figures) figure = 2;
  for (double& figure : outcomes[1].figures) figure = 1;
  for (double& figure : outcomes[2].figures) figure = 9;
  for (double& figure : outcomes[3].figures) figure = std::numeric_limits<double>::quiet_NaN();
  const std::string page = study_html({*study, outcomes, "orrery study"});
  const auto count = [&](std::string_view what) {
    std::size_t found = 0;
    for (std::size_t at = page.find(what); at != page.npos; at = page.find(what, at + 1)) ++found;
    return found;
  };
  // The best of each model, although one model costs nine times as much a token.
  EXPECT_EQ(count("class=\"right best\""), 2u) << page.substr(page.find("All points"));
  EXPECT_NE(page.find("with equal model"), page.npos);
  EXPECT_EQ(count("<rect class=\"f"), 3u) << "one bar each that is known";
}

TEST(Study, AnIntervalIsInTheUnitOfItsValueAndNoTimeIsBelowZero) {
  const Axis time{.title = "wait", .unit = AxisUnit::kDuration};
  EXPECT_EQ(interval_text(time, 106 * 60, 127.44 * 60), "106 min ± 127.4 min");
  EXPECT_EQ(interval_text(time, 3.3 * 86400, 3600), "3.3 d ± 0.04167 d");
  EXPECT_EQ(interval_text(time, 0, 0), "0 s ± 0 s");
  const auto study = sound(spares());
  ASSERT_NE(study, nullptr);
  std::vector<CellOutcome> outcomes = made_up(study->spec());
  for (double& figure : outcomes[0].figures) figure = 0;
  for (double& figure : outcomes[1].figures) figure = 10;
  EXPECT_EQ(study_points(study->spec(), outcomes)[0].figures[0].low, 0);
}

// Seeds differ by 100, the second policy from the first by 2 on each of them.
TEST(Study, PointsAreComparedOnEqualSeedsWithTheFirstUnderTheirConditions) {
  const auto study = sound(std::string(kHead) + R"(run: simulate
base: {accelerators: h100:64, generate: philly, span: 1 d}
axes:
- {name: policy, values: [fifo, easy]}
- {name: load, values: [0.5, 1]}
seeds: 3
show: [avg_jct, makespan]
)");
  ASSERT_NE(study, nullptr);
  std::vector<CellOutcome> outcomes = made_up(study->spec());
  for (std::size_t cell = 0; cell < outcomes.size(); ++cell) {
    const double policy = cell < 6 ? 0.0 : 2.0;
    const double seed = 100.0 * static_cast<double>(cell % 3);
    const double noise = cell == 6 ? 0.1 : 0.0;
    outcomes[cell].failure.clear();
    outcomes[cell].figures.assign(study->spec().figures.size(), 1000 + policy + seed + noise);
  }
  const std::vector<StudyPair> pairs = study_pairs(study->spec(), outcomes);
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].point, 2u);
  EXPECT_EQ(pairs[0].base, 0u) << "of the same load";
  EXPECT_EQ(pairs[1].base, 1u);
  EXPECT_NEAR(pairs[0].differences[0].mean, 2 + 0.1 / 3, 1e-9);
  EXPECT_LT(pairs[0].differences[0].high, 2.3) << "seeds differ by 100";
  const StudyAnswers answers{*study, outcomes, "orrery study s.yaml"};
  EXPECT_NE(study_text(answers).find("2 s ± 0 s *"), std::string::npos) << study_text(answers);
  const Json json = study_json(answers);
  EXPECT_DOUBLE_EQ(json["points"][3]["against_first"]["avg_jct"]["mean"].get<double>(), 2);
  EXPECT_FALSE(json["points"][0].contains("against_first"));
  EXPECT_NE(study_html(answers).find("Differences on equal seeds"), std::string::npos);
}

TEST(Study, AnswersAreATableAPageJsonAndRows) {
  const auto study = sound(with(spares(), "name: s\n", "name: s\ntitle: a < b & \"c\"\n"));
  ASSERT_NE(study, nullptr);
  const StudyAnswers answers{*study, made_up(study->spec()), "orrery study s.yaml"};
  const std::string text = study_text(answers);
  EXPECT_NE(text.find("     0       3  50.5 % ± 6.353 %"), text.npos) << text;
  EXPECT_NE(text.find("spares 4, rate as new: 1 of 2 seeds: no \"room\""), text.npos) << text;
  const Json json = study_json(answers);
  EXPECT_EQ(json["points"].size(), 4u);
  EXPECT_EQ(json["points"][1]["at"]["rate"], "as new");
  EXPECT_NEAR(json["points"][1]["figures"]["ettr"]["mean"].get<double>(), 0.525, 1e-12);
  EXPECT_NE(study_csv(answers).find("4,as new,1,,,"), std::string::npos);
  EXPECT_TRUE(study_csv(answers).ends_with(",\"no \"\"room\"\", none\"\n"));
  const std::string page = study_html(answers);
  const std::size_t begin = page.find("<html");
  const std::size_t script = page.find("<script>") + 8;
  EXPECT_EQ(xml_fault(page.substr(begin, script - begin) + page.substr(page.find("</script>"))),
            "");
  EXPECT_EQ(page.find("a < b"), page.npos);
  EXPECT_EQ(page, study_html(answers));
}

}  // namespace
}  // namespace orrery
