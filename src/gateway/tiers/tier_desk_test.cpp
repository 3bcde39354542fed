// gateway/tiers/tier_desk_test.cpp - a gateway with a small and a large model: which one answers,
// and what is compared.
#include "gateway/tiers/tier_desk.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gateway/gateway_test.hpp"
#include "gateway/tiers/tier_comparison.hpp"

namespace orrery {
namespace {

TEST(TierComparison, ToleratesBlanks) {
  EXPECT_TRUE(says_the_same(" 42\n", "42"));
  EXPECT_TRUE(says_the_same("a  b\n\nc", "a b c"));
  EXPECT_FALSE(says_the_same("42", "43"));
  EXPECT_FALSE(says_the_same("4 2", "42"));
}

TEST(TierComparison, ReadsTheFirstWordOfAJudge) {
  EXPECT_EQ(verdict_of(" Yes."), AnswerQuality::kAsGood);
  EXPECT_EQ(verdict_of("**no**, it is wrong"), AnswerQuality::kWorse);
  EXPECT_FALSE(verdict_of("perhaps yes"));
  EXPECT_FALSE(verdict_of(""));
  const std::string asked = judge_request("big", "2+2?", "5", "4");
  const auto body = nlohmann::json::parse(asked);
  EXPECT_EQ(body["model"], "big");
  const std::string question = body["messages"][0]["content"];
  EXPECT_LT(question.find("First answer:\n4"), question.find("Second answer:\n5"));
}

/// Two services, "m" with the large model and "s" with the small one.
class TierDeskTest : public GatewayTest {
 protected:
  void serve(TierMeasure measure) {
    large_.react = [this](WebExchange& exchange) { answer(exchange, "large", large_says_); };
    small_.react = [this](WebExchange& exchange) { answer(exchange, "small", small_says_); };
    gateway_->set_table(table(measure));
  }

  RouteTable table(TierMeasure measure) {
    RouteTable table = table_of({large_.address()});
    table.services[0].tiers =
        RoutedTiers{.small = 2, .loss_max = 0.2, .audit_rate = 0.5, .measure = measure};
    table.services.push_back(
        {.id = 2,
         .name = "chat-small",
         .model = "s",
         .tenant = "org/a",
         .replicas = {{.job = 9, .attempt = 1, .endpoint = small_.address()}}});
    return table;
  }

  /// Answers as the request's form asks for; judges by whether both answers are alike in length.
  static void answer(WebExchange& exchange, const char* model, const std::string& text) {
    const auto body = nlohmann::json::parse(exchange.request().body);
    std::string said = text;
    if (body.contains("messages") &&
        std::string(body["messages"][0]["content"]).find("Second answer") != std::string::npos) {
      said = "yes";
    }
    if (body.value("stream", false)) {
      begin_stream(exchange);
      const nlohmann::json event{{"model", model}, {"choices", {{{"delta", {{"content", said}}}}}}};
      exchange.send("data: " + event.dump() + "\n\ndata: [DONE]\n\n");
      exchange.end();
      return;
    }
    const nlohmann::json whole{{"model", model},
                               {"choices", {{{"message", {{"content", said}}}}}},
                               {"usage", {{"prompt_tokens", 3}, {"completion_tokens", 5}}}};
    exchange.respond(200, "application/json", whole.dump());
  }

  /// Asks until the small model answers one of `most` requests; returns whether it did.
  bool small_answers_one_of(int most, const std::string& more = "") {
    for (int i = 0; i < most; ++i) {
      const std::string body =
          R"({"model":"m","messages":[{"role":"user","content":"2+2?"}])" + more + "}";
      const std::string got = ask(request(kChat, body));
      EXPECT_TRUE(got.starts_with("HTTP/1.1 200")) << got;
      const bool small = got.find("x-orrery-tier: small") != std::string::npos;
      EXPECT_EQ(small, got.find("\"small\"") != std::string::npos) << got;
      if (small) return true;
    }
    return false;
  }

  ScriptedReplica large_{env_->loop()};
  ScriptedReplica small_{env_->loop()};
  std::string large_says_ = "4";
  std::string small_says_ = " 4\n";
};

constexpr int kEnough = 4000;  ///< requests in which a gate learns

TEST_F(TierDeskTest, ASmallModelThatIsAsGoodAnswersOnceItHasProvedIt) {
  serve(TierMeasure::kExact);
  EXPECT_FALSE(small_answers_one_of(500)) << "600 comparisons come first";
  EXPECT_GT(small_.seen.size(), 60u) << "a quarter of the requests is compared";
  EXPECT_TRUE(small_answers_one_of(kEnough));
  // What the small model got is the request, with its own name.
  const auto body = nlohmann::json::parse(small_.seen.back().body);
  EXPECT_EQ(body["model"], "s");
  EXPECT_EQ(body["messages"][0]["content"], "2+2?");
  const std::string id = "x-request-id: asked\r\n";
  ask(request(kChat, R"({"model":"m","messages":[{"role":"user","content":"2+2?"}],"n":3})", id));
  EXPECT_NE(ask(get("/explain/asked")).find(R"("smaller_model":"unfit")"), std::string::npos);
  EXPECT_TRUE(small_answers_one_of(50, R"(,"stream":true)"));
  EXPECT_FALSE(small_answers_one_of(50, R"(,"n":2)")) << "several answers are not compared";
}

TEST_F(TierDeskTest, ASmallModelThatIsWorseNeverAnswers) {
  small_says_ = "5";
  serve(TierMeasure::kExact);
  EXPECT_FALSE(small_answers_one_of(kEnough));
  EXPECT_GT(small_.seen.size(), 600u);
}

TEST_F(TierDeskTest, ALargeModelJudgesAnswersThatDiffer) {
  small_says_ = "four";
  serve(TierMeasure::kJudge);
  EXPECT_TRUE(small_answers_one_of(kEnough));
}

TEST_F(TierDeskTest, TheLargeModelAnswersWhileTheSmallOneIsAway) {
  serve(TierMeasure::kExact);
  ASSERT_TRUE(small_answers_one_of(kEnough));
  RouteTable without = table(TierMeasure::kExact);
  without.services[1].replicas.clear();
  gateway_->set_table(without);
  EXPECT_FALSE(small_answers_one_of(50));
  gateway_->set_table(table(TierMeasure::kExact));
  EXPECT_TRUE(small_answers_one_of(50)) << "what was learnt is kept";
  without.services.pop_back();
  without.services[0].tiers.reset();
  gateway_->set_table(without);
  EXPECT_FALSE(small_answers_one_of(50));
}

TEST_F(TierDeskTest, WhatTheSmallModelCannotAnswerTheLargeOneAnswers) {
  serve(TierMeasure::kExact);
  ASSERT_TRUE(small_answers_one_of(kEnough));
  const std::size_t before = small_.seen.size();
  // An error of its engine, a replica that breaks, and one that is not there any more.
  small_.react = [](WebExchange& exchange) { exchange.respond(500, "text/plain", "broken"); };
  EXPECT_FALSE(small_answers_one_of(20)) << "each answer is a 200 of the large model";
  EXPECT_GT(small_.seen.size(), before);
  small_.react = [](WebExchange& exchange) { exchange.abort(); };
  EXPECT_FALSE(small_answers_one_of(20));
  small_.close();
  EXPECT_FALSE(small_answers_one_of(20));
  EXPECT_EQ(gateway_->report().services.at(0).counts.failed, 0u);
}

TEST_F(TierDeskTest, AServiceMayEndWhileAnswersAreCompared) {
  serve(TierMeasure::kExact);
  small_.react = [](WebExchange&) {};  // a comparison that does not end
  for (int i = 0; i < 40; ++i) EXPECT_FALSE(small_answers_one_of(1));
  EXPECT_TRUE(run_until([&] { return !small_.kept.empty(); }));
  gateway_->set_table(table_of({}));
  EXPECT_TRUE(run_until([&] { return small_.gone > 0; })) << "its comparisons end with it";
}

}  // namespace
}  // namespace orrery
