// verbs/plan/plan_html_test.cpp - the page of plans: bars to one scale, and no text that is markup.
#include "verbs/plan/plan_html.hpp"

#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "verbs/plan/plan_answers_test.hpp"

namespace orrery {
namespace {

/// Returns the sum of the widths of each bar, in percent.
std::vector<double> bar_widths(const std::string& html) {
  std::vector<double> sums;
  std::istringstream lines(html);
  const std::regex width("width:([0-9.]+)%");
  for (std::string line; std::getline(lines, line);) {
    if (line.find("class=\"bar\" role") == std::string::npos) continue;
    double sum = 0;
    for (std::sregex_iterator at(line.begin(), line.end(), width), end; at != end; ++at) {
      sum += std::stod((*at)[1]);
    }
    sums.push_back(sum);
  }
  return sums;
}

TEST(PlanHtml, BarsAreDrawnToTheScaleOfTheLongestStep) {
  const PlanRequest request = request_on({"lab:64"});
  PlanAnswer answer;
  answer.plans = {offer_with({{Term::kMatmul, 1}, {Term::kOptimizer, 1}}),
                  offer_with({{Term::kMatmul, 3}, {Term::kOptimizer, 5}})};
  const std::vector<double> widths = bar_widths(answer_html(answer, request));
  ASSERT_EQ(widths.size(), 2u);
  EXPECT_NEAR(widths[0], 25, 0.01);
  EXPECT_NEAR(widths[1], 100, 0.01);
}

TEST(PlanHtml, TextOfUsersIsNoMarkup) {
  PlanRequest request = request_on({"<i>&lab"});
  request.assumptions = {"a < b"};
  PlanAnswer answer;
  answer.plans = {offer_with({{Term::kMatmul, 1}})};
  answer.refused = {{.machine = 0, .why = {.message = "<script>"}}};
  const std::string html = answer_html(answer, request);
  EXPECT_EQ(html.find("<i>&lab"), std::string::npos);
  EXPECT_NE(html.find("<td>&lt;i&gt;&amp;lab</td>"), std::string::npos);
  EXPECT_NE(html.find("<li>a &lt; b</li>"), std::string::npos);
  EXPECT_NE(html.find("<li>no plan: &lt;script&gt;</li>"), std::string::npos);
}

TEST(PlanHtml, ARowHasWhatTheTableOfTheTerminalHas) {
  const PlanRequest request = request_on({"lab:64"});
  PlanAnswer answer;
  answer.plans = {offer_with({{Term::kMatmul, 2}})};
  EXPECT_NE(answer_html(answer, request)
                .find("<tr><td>1</td><td>lab:64</td><td><code>tp=1,<wbr/>pp=1,<wbr/>dp=64,<wbr/"
                      ">micro_batch=1</code>"
                      "</td><td>2 s</td><td>1 s to 4 s</td><td>40.0 %</td><td>12.0 "
                      "GiB</td><td>?</td><td>?</td></tr>"),
            std::string::npos);
  price(answer.plans[0]);
  EXPECT_NE(answer_html(answer, request).find("<td>$3.00</td><td>2 Wh</td>"), std::string::npos);
}

TEST(PlanHtml, TheKeyHasTheTermsOfAnyPlanAndNoOthers) {
  const PlanRequest request = request_on({"lab:64"});
  PlanAnswer answer;
  answer.plans = {offer_with({{Term::kMatmul, 2}}),
                  offer_with({{Term::kMatmul, 2}, {Term::kOffload, 1}})};
  const std::string html = answer_html(answer, request);
  EXPECT_NE(html.find("<b>matmul</b> 2 s"), std::string::npos);
  EXPECT_NE(html.find("<b>offload</b> 0 us"), std::string::npos);
  EXPECT_EQ(html.find("<b>attention</b>"), std::string::npos);
}

TEST(PlanHtml, ASecondPlanIsComparedWithTheFirst) {
  const PlanRequest request = request_on({"lab:64"});
  PlanAnswer answer;
  answer.plans = {offer_with({{Term::kMatmul, 2}})};
  EXPECT_EQ(answer_html(answer, request).find("plan 2"), std::string::npos);
  answer.plans.push_back(offer_with({{Term::kMatmul, 2}, {Term::kLaunch, 1}}));
  EXPECT_NE(answer_html(answer, request)
                .find("<p>Step of plan 2 against plan 1: 1 s longer: launch +1 s.</p>"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery
