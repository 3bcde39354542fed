// verbs/plan/plan_html_test.cpp - the page of plans: its tables, its bars, and no text that is
// markup.
#include "verbs/plan/plan_html.hpp"

#include <gtest/gtest.h>

#include "verbs/plan/plan_answers_test.hpp"

namespace orrery {
namespace {

bool has(const std::string& html, const std::string& text) {
  return html.find(text) != std::string::npos;
}

TEST(PlanHtml, EachPlanIsABarOfItsTerms) {
  const PlanRequest request = request_on({"lab:64"});
  PlanAnswer answer;
  answer.plans = {offer_with({{Term::kMatmul, 1}, {Term::kOptimizer, 2}}),
                  offer_with({{Term::kMatmul, 3}, {Term::kOptimizer, 5}})};
  const std::string html = answer_html(answer, request);
  for (const char* bar : {"plan 1, matmul: 1 s", "plan 1, optimizer: 2 s", "plan 2, matmul: 3 s",
                          "plan 2, optimizer: 5 s"}) {
    EXPECT_TRUE(has(html, bar)) << bar;
  }
  EXPECT_LT(html.find("plan 1, optimizer"), html.find("plan 1, matmul")) << "the longest first";
  EXPECT_FALSE(has(html, "other terms"));
}

TEST(PlanHtml, ShortTermsAreDrawnTogetherAndListedAlone) {
  const PlanRequest request = request_on({"lab:64"});
  PlanAnswer answer;
  answer.plans = {offer_with({{Term::kMatmul, 8},
                              {Term::kAttention, 7},
                              {Term::kElementwise, 6},
                              {Term::kRecompute, 5},
                              {Term::kTensorParallel, 4},
                              {Term::kPipelineBubble, 3},
                              {Term::kOptimizer, 2},
                              {Term::kLaunch, 1}})};
  const std::string html = answer_html(answer, request);
  EXPECT_TRUE(has(html, "plan 1, pipeline_bubble: 3 s"));
  EXPECT_TRUE(has(html, "plan 1, other terms: 3 s"));
  EXPECT_FALSE(has(html, "plan 1, optimizer:"));
  EXPECT_TRUE(has(html, "<td>optimizer</td><td class=\"right\">2 s</td>"));
  EXPECT_TRUE(has(html, "<td>launch</td><td class=\"right\">1 s</td>"));
}

TEST(PlanHtml, TheTableHasTheTermsOfAnyPlanAndNoOthers) {
  const PlanRequest request = request_on({"lab:64"});
  PlanAnswer answer;
  answer.plans = {offer_with({{Term::kMatmul, 2}}),
                  offer_with({{Term::kMatmul, 2}, {Term::kOffload, 1}})};
  const std::string html = answer_html(answer, request);
  EXPECT_TRUE(
      has(html, "<td>offload</td><td class=\"right\">0 us</td><td class=\"right\">1 s</td>"));
  EXPECT_FALSE(has(html, "<td>attention</td>"));
}

TEST(PlanHtml, TextOfUsersIsNoMarkup) {
  PlanRequest request = request_on({"<i>&lab"});
  request.assumptions = {"a < b"};
  PlanAnswer answer;
  answer.plans = {offer_with({{Term::kMatmul, 1}})};
  answer.refused = {{.machine = 0, .why = {.message = "<script>"}}};
  const std::string html = answer_html(answer, request);
  EXPECT_FALSE(has(html, "<i>&lab"));
  EXPECT_TRUE(has(html, "<td>&lt;i&gt;&amp;lab</td>"));
  EXPECT_TRUE(has(html, "<li>a &lt; b</li>"));
  EXPECT_TRUE(has(html, "<li>no plan: &lt;script&gt;</li>"));
}

TEST(PlanHtml, ARowHasWhatTheTableOfTheTerminalHas) {
  const PlanRequest request = request_on({"lab:64"});
  PlanAnswer answer;
  answer.plans = {offer_with({{Term::kMatmul, 2}})};
  EXPECT_TRUE(has(answer_html(answer, request),
                  "<td class=\"right\">1</td><td>lab:64</td><td><code>tp=1,pp=1,dp=64,micro_batch=1"
                  "</code></td><td class=\"right\">2 s</td><td class=\"right\">1 s to 4 s</td>"
                  "<td class=\"right\">40.0 %</td><td class=\"right\">12.0 GiB</td>"
                  "<td class=\"right\">?</td><td class=\"right\">?</td>"));
  price(answer.plans[0]);
  EXPECT_TRUE(has(answer_html(answer, request),
                  "<td class=\"right\">$3.00</td><td class=\"right\">2 Wh</td>"));
}

TEST(PlanHtml, ASecondPlanIsComparedWithTheFirst) {
  const PlanRequest request = request_on({"lab:64"});
  PlanAnswer answer;
  answer.plans = {offer_with({{Term::kMatmul, 2}})};
  EXPECT_FALSE(has(answer_html(answer, request), "plan 2"));
  answer.plans.push_back(offer_with({{Term::kMatmul, 2}, {Term::kLaunch, 1}}));
  EXPECT_TRUE(has(answer_html(answer, request),
                  "<p>Step of plan 2 against plan 1: 1 s longer: launch +1 s.</p>"));
}

}  // namespace
}  // namespace orrery
