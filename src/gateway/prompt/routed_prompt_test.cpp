#include "gateway/prompt/routed_prompt.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace orrery {
namespace {

RoutedPrompt prompt_in(const std::string& body, std::uint64_t service = 1) {
  RequestReader reader;
  const auto facts = reader.read(body);
  EXPECT_TRUE(facts) << body;
  return routed_prompt(body, facts.value_or(RequestFacts()), {service, ServiceTokens(), Instant()});
}

/// Leading blocks that two prompts share.
std::size_t shared(const RoutedPrompt& a, const RoutedPrompt& b) {
  const auto [at, end] = std::ranges::mismatch(a.blocks, b.blocks);
  return static_cast<std::size_t>(at - a.blocks.begin());
}

std::string turn(std::size_t size, char fill) {
  return R"({"role":"user","content":")" + std::string(size, fill) + "\"}";
}

TEST(RoutedPrompt, ASessionGoesOnWithTheBlocksOfItsLastRequest) {
  const std::string system = turn(1000, 's');
  const RoutedPrompt first =
      prompt_in(R"({"model":"m","messages":[)" + system + "," + turn(600, 'a') + "]}");
  const RoutedPrompt second =
      prompt_in(R"({"stream":true, "messages":[)" + system + "," + turn(600, 'a') + "," +
                turn(900, 'b') + R"(],"temperature":0.5,"model":"m"})");
  const RoutedPrompt other =
      prompt_in(R"({"model":"m","messages":[)" + system + "," + turn(600, 'c') + "]}");
  EXPECT_EQ(first.blocks.size(), 6u);
  EXPECT_EQ(shared(first, second), first.blocks.size());
  EXPECT_EQ(shared(first, other), 4u);
  EXPECT_GT(second.tokens, first.tokens);
  EXPECT_EQ(first.block_tokens, 64);
}

TEST(RoutedPrompt, NothingIsSharedBetweenServicesToolsAndSalts) {
  const std::string text = std::string(600, 'x');
  const auto body = [&](const std::string& more) {
    return R"({"model":"m","prompt":")" + text + "\"" + more + "}";
  };
  const RoutedPrompt plain = prompt_in(body(""));
  ASSERT_EQ(plain.blocks.size(), 2u);
  EXPECT_EQ(shared(plain, prompt_in(body(R"(,"max_tokens":5)"))), 2u);
  EXPECT_EQ(shared(plain, prompt_in(body(""), 2)), 0u);
  EXPECT_EQ(shared(plain, prompt_in(body(R"(,"cache_salt":"s")"))), 0u);
  const RoutedPrompt tools = prompt_in(body(R"(,"tools":[{"type":"function"}])"));
  EXPECT_EQ(shared(plain, tools), 0u);
  EXPECT_EQ(shared(tools, prompt_in(body(R"(,"tools":[{"type":"function"}],"n":1)"))), 2u);
}

TEST(RoutedPrompt, WhatIsNoTextHasNoBlocks) {
  EXPECT_TRUE(prompt_in(R"({"model":"m"})").blocks.empty());
  EXPECT_TRUE(prompt_in(R"({"model":"m","prompt":7,"messages":null})").blocks.empty());
  EXPECT_TRUE(prompt_in(R"({"model":"m","prompt":"short"})").blocks.empty());
  const std::string large(1 << 20, 'x');
  EXPECT_EQ(prompt_in(R"({"model":"m","prompt":")" + large + "\"}").blocks.size(), 2048u);
}

TEST(TokenDensity, FollowsWhatEnginesCount) {
  TokenDensity density;
  EXPECT_EQ(density.tokens_per_byte(), 0.25);
  for (int i = 0; i < 2000; ++i) density.add(1000, 500);
  EXPECT_NEAR(density.tokens_per_byte(), 0.5, 0.01);
  for (int i = 0; i < 2000; ++i) density.add(1000, 1);
  EXPECT_EQ(density.tokens_per_byte(), 1.0 / 16);
}

}  // namespace
}  // namespace orrery
