#include "verbs/schedule/schedule_answer.hpp"

#include <gtest/gtest.h>

#include "base/text/quantity_text.hpp"
#include "perf/repository_facts_test.hpp"
#include "verbs/schedule/queue_files_test.hpp"

namespace orrery {
namespace {

JudgedAnswer answer_of(QueueFiles& queue, OutputFormat output = OutputFormat::kText) {
  CommandOptions options;
  options.output = output;
  Result<JudgedAnswer> answer = schedule(options, queue.asked());
  EXPECT_TRUE(answer) << (answer ? "" : answer.error().text());
  return answer ? *std::move(answer) : JudgedAnswer{};
}

/// The lines of a text that begin with a word.
std::string line_of(const std::string& text, const std::string& word) {
  const std::size_t at = text.find("\n" + word);
  if (at == text.npos) return "";
  return text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

TEST(ScheduleAnswer, HasARowForEachJobFirstThoseThatStart) {
  QueueFiles queue;
  queue.add("wide", 16, "estimate: 1 h\n");
  queue.add("a", 8, "estimate: 20 min\n");
  queue.asked().jobs = {queue.asked().jobs[1], queue.asked().jobs[0]};
  queue.add("next", 8, "after: [{job: prep}, {job: sort}, {job: cut}]\n");
  const JudgedAnswer answer = answer_of(queue);
  EXPECT_TRUE(answer.verdict);
  EXPECT_EQ(answer.shown.text.substr(0, answer.shown.text.find("\n\n")),
            "job   decision  accelerators                        where                plan    "
            "time  price\n"
            "a     starts    8 x nvidia-h100-sxm5-80g            lab/hall/su/rack/n1        "
            "20 min      -\n"
            "wide  waits     busy: 8 accelerators short (fleet)\n"
            "next  waits     for prep, sort and cut to end");
}

TEST(ScheduleAnswer, JsonTellsTheSameInSeconds) {
  QueueFiles queue;
  queue.add("a", 8, "estimate: 20 min\n");
  queue.add("endless", 8);
  queue.add("wide", 16);
  queue.add("next", 8, "after: [{job: prep}]\n");
  const Json json = answer_of(queue).shown.json;
  EXPECT_EQ(json["policy"], "fifo");
  ASSERT_EQ(json["started"].size(), 2U);
  const Json& first = json["started"][0];
  EXPECT_EQ(first["job"], "a");
  EXPECT_EQ(first["delay_s"], 0.0);
  EXPECT_EQ(first["expected_s"], 1200.0);
  EXPECT_EQ(first["gangs"][0]["type"], "nvidia-h100-sxm5-80g");
  EXPECT_EQ(first["gangs"][0]["nodes"].size(), 1U);
  EXPECT_EQ(first["gangs"][0]["nodes"][0]["devices"], "0xff");
  EXPECT_FALSE(first.contains("price_usd")) << "this policy prices nothing";
  EXPECT_TRUE(json["started"][1]["expected_s"].is_null()) << "no run time is known";
  ASSERT_EQ(json["waiting"].size(), 2U);
  EXPECT_EQ(json["waiting"][0]["job"], "wide");
  EXPECT_EQ(json["waiting"][0]["kind"], "busy");
  EXPECT_EQ(json["waiting"][1], Json({{"job", "next"}, {"kind", "after"}, {"after", {"prep"}}}));
  EXPECT_TRUE(json["refused"].empty());
  EXPECT_TRUE(json["bounds"].empty());
}

TEST(ScheduleAnswer, PricesAreTheSumOfTheirTerms) {
  QueueFiles queue;
  queue.asked().policy = "hardware-aware";
  queue.add("a", 8, "estimate: 2 h\n");
  const JudgedAnswer answer = answer_of(queue);
  const Json& started = answer.shown.json["started"][0];
  ASSERT_TRUE(started.contains("price_usd"));
  double sum = 0;
  for (const auto& [term, dollars] : started["price_usd"].items()) sum += dollars.get<double>();
  const Accelerator* h100 = builtin_facts().find<Accelerator>("nvidia-h100-sxm5-80g");
  ASSERT_NE(h100, nullptr);
  const double hour = builtin_facts().price(*h100)->on_demand->quantity.value() * 3600;
  EXPECT_GE(sum, 8 * 2 * hour - 0.01) << "8 accelerators for 2 h";
  EXPECT_GT(started["price_usd"]["hire"].get<double>(), 0);
  const std::string total = print(Dollars(sum));
  EXPECT_NE(line_of(answer.shown.text, "a ").find(total), std::string::npos) << total << "\n"
                                                                             << answer.shown.text;
  const std::string prices = answer.shown.text.substr(answer.shown.text.find("\nprice of  "));
  EXPECT_NE(
      line_of(prices, "a ").find(fmt::format("{:.4g} kWh", started["energy_kwh"].get<double>())),
      std::string::npos)
      << prices;
}

TEST(ScheduleAnswer, ARefusedJobIsShownAndFailsTheVerb) {
  QueueFiles queue;
  queue.add("a", 8);
  queue.add("big", 64);
  queue.add("vast", 640);
  const JudgedAnswer answer = answer_of(queue);
  ASSERT_FALSE(answer.verdict);
  EXPECT_EQ(answer.verdict.error().kind, ErrorKind::kInfeasible);
  EXPECT_EQ(answer.verdict.error().text(), "2 jobs can never run on this fleet");
  EXPECT_NE(line_of(answer.shown.text, "big").find("refused"), std::string::npos);
  const std::size_t why = answer.shown.text.find("\nvast: never: ");
  ASSERT_NE(why, std::string::npos) << answer.shown.text;
  EXPECT_NE(answer.shown.text.find("accelerators: 640 of nvidia-h100-sxm5-80g asked", why),
            std::string::npos)
      << answer.shown.text;
  ASSERT_EQ(answer.shown.json["refused"].size(), 2U);
  EXPECT_EQ(answer.shown.json["refused"][1]["job"], "vast");
  queue.asked().explain = "a";
  const JudgedAnswer explained = answer_of(queue);
  EXPECT_TRUE(explained.shown.text.ends_with("\na starts\n")) << explained.shown.text;
  ASSERT_FALSE(explained.verdict) << "an explained job leaves the refused ones refused";
  queue.asked().explain = "vast";
  EXPECT_TRUE(answer_of(queue).shown.text.ends_with(
      "\nvast can never run on this fleet; the reason is above\n"));
  EXPECT_EQ(explained.verdict.error().text(), "2 jobs can never run on this fleet");
}

TEST(ScheduleAnswer, WhatIsSharedIsToldAsAPartOfADevice) {
  QueueFiles queue;
  queue.files().write("half.yaml",
                      "apiVersion: orrery/v1\nkind: Batch\nname: half\nroles:\n"
                      "- {accelerators: 1, share: 0.5, types: [h100]}\n");
  queue.asked().jobs = {queue.files().path("half.yaml")};
  EXPECT_NE(answer_of(queue).shown.text.find("0.5 of 1 x nvidia-h100-sxm5-80g"), std::string::npos)
      << answer_of(queue).shown.text;
}

TEST(ScheduleAnswer, ExplainsJobsThatStartWaitOrAreHeldAndNoOthers) {
  QueueFiles queue;
  queue.add("alpha", 8, "estimate: 20 min\n");
  queue.add("beta", 16, "estimate: 1 h\n");
  queue.add("gamma", 8, "after: [{job: prep}]\n");
  queue.asked().explain = "alpha";
  EXPECT_TRUE(answer_of(queue).shown.text.ends_with("\nalpha starts\n"));
  queue.asked().explain = "gamma";
  EXPECT_TRUE(answer_of(queue).shown.text.ends_with("\ngamma waits for prep to end\n"));
  queue.asked().explain = "beta";
  const std::string beta = answer_of(queue).shown.text;
  EXPECT_NE(beta.find("\n\nbeta waits for 16 nvidia-h100-sxm5-80g: busy\n"), std::string::npos)
      << beta;
  EXPECT_NE(beta.find("  blocked by  alpha\n"), std::string::npos) << beta;
  queue.asked().explain = "gama";
  const JudgedAnswer none = answer_of(queue);
  ASSERT_FALSE(none.verdict);
  EXPECT_EQ(none.verdict.error().text(), "--explain: no job \"gama\", did you mean \"gamma\"?");
  EXPECT_TRUE(none.shown.text.starts_with("job ")) << "the table is shown all the same";
  EXPECT_TRUE(answer_of(queue, OutputFormat::kJson).verdict) << "JSON explains nothing";
}

TEST(ScheduleAnswer, AQueueWithoutJobsIsATableWithoutRows) {
  QueueFiles queue;
  std::filesystem::create_directory(queue.files().path("none"));
  queue.asked().jobs = {queue.files().path("none")};
  const JudgedAnswer answer = answer_of(queue);
  EXPECT_TRUE(answer.verdict);
  EXPECT_TRUE(answer.shown.text.starts_with("job  decision"));
  EXPECT_EQ(answer.shown.json["started"], Json::array());
}

}  // namespace
}  // namespace orrery
