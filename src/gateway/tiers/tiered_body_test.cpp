#include "gateway/tiers/tiered_body.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace orrery {
namespace {

std::optional<TieredBody> read(const std::string& body,
                               const std::string& path = "/v1/chat/completions") {
  return TieredBody::read({.method = "POST", .target = path, .headers = {}, .body = body});
}

std::string chat(const std::string& more, const std::string& content = R"("hi")") {
  return R"({"model":"m","messages":[{"role":"user","content":)" + content + "}]" + more + "}";
}

TEST(TieredBody, IsARequestForOneText) {
  EXPECT_TRUE(read(chat("")));
  EXPECT_TRUE(read(chat(R"(,"n":1,"tools":[],"tool_choice":null,"logprobs":false)")));
  EXPECT_TRUE(read(chat("", R"([{"type":"text","text":"hi"}])")));
  EXPECT_TRUE(read(R"({"model":"m","prompt":"hi"})", "/v1/completions"));
  for (const char* more : {R"(,"n":2)", R"(,"tools":[{"type":"function"}])", R"(,"logprobs":true)",
                           R"(,"response_format":{"type":"json_object"})",
                           R"(,"tool_choice":"auto")", R"(,"modalities":["text","audio"])"}) {
    EXPECT_FALSE(read(chat(more))) << more;
  }
  EXPECT_FALSE(read(chat("", R"([{"type":"image_url","image_url":{"url":"x"}}])")));
  EXPECT_FALSE(read(chat("", "null")));
  EXPECT_FALSE(read(R"({"model":"m","prompt":[1,2]})", "/v1/completions"));
  EXPECT_FALSE(read(R"({"model":"m","input":"hi"})", "/v1/embeddings"));
  EXPECT_FALSE(read("no json"));
  EXPECT_FALSE(read("[]"));
}

TEST(TieredBody, RefusesWhatIsNestedTooDeeplyToBeWrittenAnew) {
  const std::size_t depth = 100'000;
  const std::string deep = std::string(depth, '[') + std::string(depth, ']');
  EXPECT_FALSE(read(chat(R"(,"x":)" + deep)));
}

TEST(TieredBody, KeepsTheRequestForAnotherModel) {
  const auto body =
      read(chat(R"(,"stream":true,"stream_options":{"include_usage":true},"seed":7)"));
  ASSERT_TRUE(body);
  EXPECT_EQ(body->for_model("s"),
            R"({"model":"s","messages":[{"role":"user","content":"hi"}],"stream":true,)"
            R"("stream_options":{"include_usage":true},"seed":7})");
  EXPECT_EQ(body->for_comparison("s"),
            R"({"model":"s","messages":[{"role":"user","content":"hi"}],"seed":7})");
}

TEST(TieredBody, ShowsWhatItsPromptIsLike) {
  const auto body = read(chat(R"(,"max_tokens":9)", R"("12 a\n{}")"));
  ASSERT_TRUE(body);
  EXPECT_EQ(body->prompt(), "12 a\n{}");
  const TierFeatures& features = body->features();
  EXPECT_DOUBLE_EQ(features[0], std::log1p(7));
  EXPECT_DOUBLE_EQ(features[1], std::log1p(9));
  EXPECT_DOUBLE_EQ(features[2], std::log1p(1));
  EXPECT_DOUBLE_EQ(features[3], 2.0 / 7);
  EXPECT_DOUBLE_EQ(features[4], 2.0 / 7);
  EXPECT_DOUBLE_EQ(features[5], 0);
  EXPECT_DOUBLE_EQ(features[6], 1.0 / 7);
  EXPECT_DOUBLE_EQ(features[7], 7.0 / 3);
}

TEST(AnswerText, IsThatOfTheFirstChoice) {
  EXPECT_EQ(answer_text(R"({"choices":[{"message":{"content":"yes"}}]})"), "yes");
  EXPECT_EQ(answer_text(R"( {"choices":[{"text":"no"}]})"), "no");
  EXPECT_EQ(answer_text("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\r\n\r\n"
                        ": a comment\n\n"
                        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
                        "data:{\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n"
                        "data: {\"choices\":[],\"usage\":{}}\n\ndata: [DONE]\n\n"),
            "ab");
  for (const char* none :
       {"", "no json", "[]", R"({"error":{"message":"x"}})", R"({"choices":[{}]})",
        R"({"choices":[{"message":{"content":null,"tool_calls":[{}]}}]})",
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
        "data: {\"error\":{}}\n\ndata: [DONE]\n\n"}) {
    EXPECT_FALSE(answer_text(none)) << none;
  }
}

}  // namespace
}  // namespace orrery
