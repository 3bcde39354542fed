// gateway/request_facts_test.cpp - what is read of a body, and where it is wrong.
#include "gateway/request_facts.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(RequestFacts, ReadsWhatAGatewayNeeds) {
  RequestReader reader;
  const auto facts = reader.read(
      R"({"messages":[{"content":"\"model\":\"x\""}],"mo\u0064el":"a/b","stream":true,)"
      R"("max_tokens":5,"max_completion_tokens":7,"stream_options":{"x":1,"include_usage":true}})");
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->model, "a/b");
  EXPECT_EQ(facts->form, AnswerForm::kStream);
  EXPECT_EQ(facts->output_tokens_max, 7u);
  EXPECT_TRUE(facts->include_usage);
}

TEST(RequestFacts, TheFlexTierIsOfClassBatch) {
  RequestReader reader;
  const auto service_class = [&](const std::string& tier) {
    return name_of(reader.read(R"({"model":"m","service_tier":)" + tier + "}")->service_class);
  };
  EXPECT_EQ(service_class(R"("flex")"), "batch");
  for (const char* tier : {R"("auto")", R"("default")", R"("priority")", "null"}) {
    EXPECT_EQ(service_class(tier), "interactive") << tier;
  }
}

TEST(RequestFacts, TakesNullAsAbsent) {
  RequestReader reader;
  const auto facts =
      reader.read(R"({"model":"m","stream":null,"max_tokens":null,"stream_options":null})");
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->form, AnswerForm::kWhole);
  EXPECT_EQ(facts->output_tokens_max, 0u);
}

TEST(RequestFacts, SaysWhereABodyIsMalformed) {
  RequestReader reader;
  const auto fault = [&](const std::string& body) {
    const auto facts = reader.read(body);
    return facts ? std::string("read") : facts.error().message;
  };
  EXPECT_NE(fault("").find("not a JSON object"), std::string::npos);
  EXPECT_NE(fault("[1]").find("not a JSON object"), std::string::npos);
  EXPECT_NE(fault("{\"model\":\"m\"").find("not a JSON object"), std::string::npos);
  EXPECT_NE(fault("{\"model\":\"m\"} x").find("not a JSON object"), std::string::npos);
  EXPECT_NE(fault("{\"model\":\"m\",\n  \"a\" 1}").find("line 2"), std::string::npos);
  EXPECT_NE(fault("{\"model\":\"\xff\"}").find("UTF-8"), std::string::npos);
}

TEST(RequestFacts, NamesTheFieldThatIsWrong) {
  RequestReader reader;
  const auto param = [&](const std::string& body) {
    const auto facts = reader.read(body);
    return facts ? std::string("read") : std::string(facts.error().param);
  };
  EXPECT_EQ(param(R"({"messages":[]})"), "model");
  EXPECT_EQ(param(R"({"model":""})"), "model");
  EXPECT_EQ(param(R"({"model":3})"), "model");
  EXPECT_EQ(param(R"({"model":"m","stream":"yes"})"), "stream");
  EXPECT_EQ(param(R"({"model":"m","max_tokens":-1})"), "max_tokens");
  EXPECT_EQ(param(R"({"model":"m","stream_options":1})"), "stream_options");
  EXPECT_EQ(param(R"({"model":"m","service_tier":1})"), "service_tier");
}

TEST(RequestFacts, ReadsABodyWithoutMemoryBehindIt) {
  RequestReader reader;
  std::string body = R"({"model":"m","prompt":")" + std::string(5000, 'x') + "\"}";
  body.shrink_to_fit();
  EXPECT_TRUE(reader.read(body));
}

}  // namespace
}  // namespace orrery
