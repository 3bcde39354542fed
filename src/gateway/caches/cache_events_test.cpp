// gateway/caches/cache_events_test.cpp - what engines tell of their caches decides where a prompt
// goes.
#include "gateway/caches/cache_events.hpp"

#include <gtest/gtest.h>

#include "gateway/gateway_test.hpp"
#include "kv_events/kv_event_publisher.hpp"

namespace orrery {
namespace {

std::vector<std::int32_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

/// A gateway's core with one service of two replicas that tell what their caches have.
class CacheEventsTest : public ::testing::Test {
 protected:
  CacheEventsTest() {
    core_ = std::make_unique<GatewayCore>(
        *env_, Log(sink_), GatewayOptions{.tokenizers = {{"m", *PromptTokenizer::open("bytes")}}});
    caches_ = std::make_unique<CacheEvents>(*core_);
    table_.services.push_back({.id = 1, .name = "chat", .model = "m"});
    for (std::uint64_t job = 1; job <= 2; ++job) {
      table_.services[0].replicas.push_back({.job = job,
                                             .attempt = 1,
                                             .endpoint = "127.0.0.1:9",
                                             .kv_tokens = 640,
                                             .kv_events = "127.0.0.1:9"});
    }
    take_table();
  }
  void take_table() {
    core_->set_table(table_);
    caches_->set_table(core_->table());
  }

  /// A message of the engine of a replica.
  void tell(std::uint64_t job, std::uint64_t number, std::vector<KvEvent> events) {
    caches_->take(*caches_->engine_of({job, 1}), KvEventMessage{number, {0, std::move(events)}});
  }
  static KvBlocksStored stored(std::string_view text) {
    KvBlocksStored event{.tokens = bytes_of(text), .block_tokens = kChainTokens};
    for (std::size_t i = 0; i < text.size() / kChainTokens; ++i) event.hashes.push_back(100 + i);
    return event;
  }
  /// How many blocks of a text the replicas are believed to have.
  std::vector<std::uint32_t> believed(std::string_view text) {
    const auto slots = core_->router().slots_of(0);
    std::vector<std::uint32_t> leading(slots.size());
    core_->router().index().match(token_chain(bytes_of(text), 0), slots, leading);
    return leading;
  }
  RouterReplica::Cache cache_of(std::size_t at) {
    return core_->router().replica(core_->router().slots_of(0)[at]).cache;
  }

  using Believed = std::vector<std::uint32_t>;
  NoLog sink_;
  std::unique_ptr<RealEnv> env_ = *RealEnv::create();
  std::unique_ptr<GatewayCore> core_;
  std::unique_ptr<CacheEvents> caches_;
  RouteTable table_{.epoch = 1};
  const std::string text_ = std::string(64, 'x');
};

TEST_F(CacheEventsTest, WhatAnEngineTellsIsBelievedOfItsReplica) {
  EXPECT_EQ(believed(text_), (Believed{0, 0}));
  tell(2, 0, {stored(text_)});
  EXPECT_EQ(believed(text_), (Believed{0, 4}));
  EXPECT_EQ(believed(text_.substr(16)), (Believed{0, 3})) << "the same letters";
  tell(2, 1, {KvBlocksRemoved{{102, 555}}});
  EXPECT_EQ(believed(text_), (Believed{0, 2}));
  tell(2, 2, {KvCacheCleared()});
  EXPECT_EQ(believed(text_), (Believed{0, 0}));
  EXPECT_EQ(caches_->figures().messages, 3u);
  EXPECT_EQ(caches_->figures().gaps, 0u);
  EXPECT_EQ(caches_->figures().engines, 2u);
}

TEST_F(CacheEventsTest, AMissingMessageAndABeginningAnewForgetTheReplica) {
  tell(1, 0, {stored(text_)});
  tell(2, 0, {stored(text_)});
  tell(2, 2, {});
  EXPECT_EQ(believed(text_), (Believed{4, 0}));
  EXPECT_EQ(cache_of(1), RouterReplica::Cache::kGuessed);
  tell(2, 3,
       {KvBlocksStored{{200}, 103, bytes_of("0123456789abcdef"), kChainTokens},
        stored("0123456789abcdef")});
  EXPECT_EQ(believed("0123456789abcdef"), (Believed{0, 1})) << "a text that begins after the gap";
  tell(2, 0, {stored(text_)});
  EXPECT_EQ(believed("0123456789abcdef"), (Believed{0, 0}));
  EXPECT_EQ(believed(text_), (Believed{4, 4}));
  EXPECT_EQ(cache_of(1), RouterReplica::Cache::kTold);
  EXPECT_EQ(caches_->figures().gaps, 2u);
}

TEST_F(CacheEventsTest, WhatCannotBeUsedForgetsTheReplica) {
  tell(1, 0, {stored(text_)});
  caches_->take(*caches_->engine_of({1, 1}), input_error({}, "no message"));
  EXPECT_EQ(believed(text_), (Believed{0, 0}));
  tell(1, 1, {stored(text_)});
  tell(1, 2, {KvBlocksStored{{5}, {}, bytes_of("seven b"), 7}});
  EXPECT_EQ(believed(text_), (Believed{0, 0}));
  // More blocks than twice those of its cache, none of which it removes.
  tell(1, 3, {stored(std::string(80 * kChainTokens, 'y'))});
  EXPECT_EQ(believed(std::string(48, 'y')), (Believed{3, 0}));
  KvBlocksStored more = stored(text_);
  for (std::uint64_t& each : more.hashes) each += 1000;
  tell(1, 4, {more});
  EXPECT_EQ(believed(text_), (Believed{0, 0}));
  EXPECT_EQ(caches_->figures().gaps, 3u);
}

TEST_F(CacheEventsTest, AnotherAttemptIsAnotherEngine) {
  tell(1, 0, {stored(text_)});
  const auto number = *caches_->engine_of({1, 1});
  take_table();
  EXPECT_EQ(caches_->engine_of({1, 1}), number);
  EXPECT_EQ(believed(text_), (Believed{4, 0}));
  table_.services[0].replicas[0].attempt = 2;
  take_table();
  EXPECT_FALSE(caches_->engine_of({1, 1}));
  EXPECT_EQ(believed(text_), (Believed{0, 0}));
  caches_->take(number, KvEventMessage{1, {0, {stored(text_)}}});
  EXPECT_EQ(believed(text_), (Believed{0, 0})) << "its last messages";
}

class ToldGatewayTest : public GatewayTest {
 protected:
  void SetUp() override {
    tick();
    start({.tokenizers = {{"m", *PromptTokenizer::open("bytes")}}});
  }
};

TEST_F(ToldGatewayTest, APromptGoesToTheReplicaThatTellsThatItHasIt) {
  ScriptedReplica one(env_->loop());
  ScriptedReplica other(env_->loop());
  const auto events = *KvEventPublisher::open("127.0.0.1:0");
  RouteTable table = table_of({one.address(), other.address()});
  table.services[0].replicas[1].kv_events = events->address();
  gateway_->set_table(table);
  const std::string text(160, 'x');
  KvBlocksStored stored{.tokens = bytes_of(text), .block_tokens = kChainTokens};
  for (std::uint64_t i = 1; i <= 10; ++i) stored.hashes.push_back(i);
  ASSERT_TRUE(run_until([&] {
    events->publish({1, {stored}});
    run_for(Duration::milliseconds(10));
    return ask(get("/metrics")).find("orrery_gateway_cache_messages_total 0") == std::string::npos;
  }));
  const std::string answer = ask(request(
      "/v1/completions", R"({"model":"m","prompt":")" + text + "y\"}", "X-Request-Id: r1\r\n"));
  EXPECT_NE(answer.find("200 OK"), std::string::npos) << answer;
  EXPECT_EQ(other.seen.size(), 1u);
  const std::string explained = ask(get("/explain/r1"));
  EXPECT_NE(explained.find("\"prompt_tokens\":161,"), std::string::npos) << explained;
  EXPECT_NE(explained.find("\"cached_tokens\":160,"), std::string::npos) << explained;
}

}  // namespace
}  // namespace orrery
