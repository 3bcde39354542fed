#include "twin/figures/html_report.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/xml_test.hpp"
#include "twin/figures/report_test.hpp"

namespace orrery {
namespace {

MadeUpSize small() { return {.policies = 3, .samples = 300, .jobs = 400}; }

// The page without its doctype and script, which are not XML.
std::string markup_of(const std::string& page) {
  const std::size_t begin = page.find("<html");
  const std::size_t script = page.find("<script>") + 8;
  return page.substr(begin, script - begin) + page.substr(page.find("</script>"));
}

void expect_sound(const std::string& page) {
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  const std::string markup = markup_of(page);
  EXPECT_EQ(xml_fault(markup), "");
  for (const char* word : {"nan ", "nan,", "nan\"", "nan<", "-nan", "inf ", "inf\"", "inf<"}) {
    EXPECT_EQ(markup.find(word), markup.npos) << word;
  }
}

// The row of a policy in the table of outcomes.
std::string row_of(const std::string& page, const std::string& policy) {
  const std::size_t begin = page.find("<tr><td>" + policy);
  return page.substr(begin, page.find("</tr>", begin) - begin);
}

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(HtmlReport, IsWellFormedAndTheSameForTheSameData) {
  const ReportData data = made_up_report(small());
  const std::string page = html_report(data);
  expect_sound(page);
  EXPECT_EQ(page, html_report(data));
}

TEST(HtmlReport, NeedsNothingFromTheNetwork) {
  const std::string page = html_report(made_up_report(small()));
  for (const char* link : {" src=", "url(", "@import", "fetch("}) {
    EXPECT_EQ(page.find(link), page.npos) << link;
  }
  EXPECT_EQ(count_of(page, " href="), count_of(page, " href=\"#course-"));
}

TEST(HtmlReport, LeadsFromASlowJobToHowItWent) {
  const ReportData data = made_up_report(small());
  const std::string page = html_report(data);
  for (std::size_t p = 0; p < data.policies.size(); ++p) {
    for (std::size_t i = 0; i < data.policies[p].slowest.size(); ++i) {
      const std::string id = fmt::format("course-{}-{}", p, i);
      EXPECT_EQ(count_of(page, "href=\"#" + id + "\""), 1u) << id;
      EXPECT_EQ(count_of(page, "id=\"" + id + "\""), 1u) << id;
    }
  }
  EXPECT_NE(page.find("<li>2017-10-05T18:00:00Z  starts: 512 x h100-sxm</li>"), page.npos);
}

TEST(HtmlReport, DrawsWhoRanWhereAndTheCap) {
  const std::string page = html_report(made_up_report(small()));
  EXPECT_NE(page.find("data-j=\"job-0, "), page.npos);
  EXPECT_NE(page.find("The 17 attempts with the least work are omitted"), page.npos);
  EXPECT_NE(page.find("data-n=\"cap\""), page.npos);
  EXPECT_NE(page.find("Power by place"), page.npos);
  EXPECT_NE(page.find("Use by place"), page.npos);
}

TEST(HtmlReport, EscapesEveryTextOfTheUser) {
  const std::string rude = "</script><i>\"x\" & 'y'";
  ReportData data = made_up_report({.policies = 1, .samples = 10, .jobs = 8});
  for (auto* text : {&data.title, &data.fleet, &data.trace, &data.failures, &data.command,
                     &data.notes[0], &data.types[0]}) {
    *text = rude;
  }
  PolicyReport& policy = data.policies[0];
  for (auto* text :
       {&policy.name, &policy.summary.history_hash, &policy.classes[0].name,
        &policy.failures[0].component, &policy.fragmentation.rows[0], &policy.tenants[0].name,
        &policy.slowest[0].id, &policy.slowest[0].tenant, &policy.slowest[0].kind,
        &policy.slowest[0].reason, &policy.slowest[0].course[0], &policy.gantt.bars[0].job,
        &policy.gantt.rows[0].name, &policy.gantt.groups[0]}) {
    *text = rude;
  }
  const std::string page = html_report(data);
  expect_sound(page);
  EXPECT_EQ(page.find("<i>"), page.npos);
  EXPECT_EQ(count_of(page, "</script>"), 1u);
}

TEST(HtmlReport, OfNothingIsStillAPage) {
  expect_sound(html_report({}));
  ReportData data{.title = "nothing ran", .policies = {{.name = "fifo"}}};
  const std::string page = html_report(data);
  expect_sound(page);
  EXPECT_NE(page.find("fifo"), page.npos);
}

TEST(HtmlReport, OfOneJobAtOneInstantIsAPage) {
  ReportData data = made_up_report({.policies = 1, .samples = 1, .jobs = 4});
  data.to = data.from;
  for (JobClass& jobs : data.policies[0].classes) jobs = {.name = jobs.name};
  data.policies[0].classes[0] = {.name = "only", .queueing_s = {0}, .jct_s = {60}};
  data.policies[0].failures.resize(1);
  expect_sound(html_report(data));
}

TEST(HtmlReport, LeavesOutWhatIsNotFinite) {
  ReportData data = made_up_report({.policies = 2, .samples = 50, .jobs = 40});
  constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (PolicyReport& policy : data.policies) {
    policy.summary.avg_jct_s = kNoNumber;
    policy.summary.cost_usd = kInfinity;
    policy.summary.co2_kg = std::nullopt;
    for (auto* series : {&policy.samples.busy[0], &policy.samples.free, &policy.samples.power_w,
                         &policy.samples.queue}) {
      (*series)[7] = kNoNumber;
      (*series)[8] = kInfinity;
    }
    policy.use[0][3] = kNoNumber;
    policy.tenants[0].used_hours = kNoNumber;
  }
  const std::string page = html_report(data);
  expect_sound(page);
  EXPECT_EQ(page.find(">CO2<"), page.npos) << "a column without a figure is left out";
}

TEST(HtmlReport, MarksTheBestAndTheBestThatDoesNotKnowTheFuture) {
  const std::string page = html_report(made_up_report(small()));
  EXPECT_EQ(count_of(row_of(page, "srtf-oracle"), "class=\"right best\""), 12u);
  EXPECT_EQ(count_of(row_of(page, "orrery"), "class=\"right kin\""), 12u);
  EXPECT_EQ(count_of(row_of(page, "fifo"), "class=\"right\""), 12u);
}

TEST(HtmlReport, MarksNobodyWhereAllAreEqual) {
  ReportData data = made_up_report(small());
  for (PolicyReport& policy : data.policies) policy.summary = data.policies[0].summary;
  const std::string page = html_report(data);
  EXPECT_EQ(page.find("right best"), page.npos);
  EXPECT_EQ(page.find("right kin"), page.npos);
}

TEST(HtmlReport, TellsElapsedFromCalendarTime) {
  ReportData data = made_up_report({.policies = 1, .samples = 100, .jobs = 40});
  EXPECT_NE(html_report(data).find("time (UTC), 1 Oct 2017 to 1 Oct 2018"), std::string::npos);
  data.time = TimeAxis::kElapsed;
  const std::string page = html_report(data);
  EXPECT_EQ(page.find("UTC"), page.npos);
  EXPECT_NE(page.find(">90 d<"), page.npos);
}

// Repeats each of the sorted values this many times.
std::vector<double> repeated(const std::vector<double>& values, std::size_t times) {
  std::vector<double> many;
  many.reserve(values.size() * times);
  for (const double value : values) many.insert(many.end(), times, value);
  return many;
}

TEST(HtmlReport, OfAYearAndTwoHundredThousandJobsStaysBelowThreeMegabytes) {
  ReportData data = made_up_report({.policies = 1, .samples = 8760, .jobs = 8000});
  for (JobClass& jobs : data.policies.front().classes) {
    jobs.queueing_s = repeated(jobs.queueing_s, 25);
    jobs.jct_s = repeated(jobs.jct_s, 25);
  }
  const PolicyReport policy = data.policies.front();
  data.policies.resize(4, policy);
  const std::string page = html_report(data);
  EXPECT_LT(page.size(), 3'000'000u);
  EXPECT_GT(page.size(), 500'000u);
}

}  // namespace
}  // namespace orrery
