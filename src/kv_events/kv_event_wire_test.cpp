#include "kv_events/kv_event_wire.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "base/format/xxh3.hpp"

namespace orrery {
namespace {

using Json = nlohmann::json;

std::string packed(const Json& json) {
  std::string bytes;
  Json::to_msgpack(json, bytes);
  return bytes;
}

std::string error_of(const Json& json) {
  const Result<KvEventBatch> read = read_kv_events(packed(json));
  return read ? "" : read.error().message;
}

std::vector<std::int32_t> tokens_from(std::int32_t first, std::size_t count) {
  std::vector<std::int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

/// The events that a message of these has.
std::vector<KvEvent> events_in(const Json& events) {
  Result<KvEventBatch> read = read_kv_events(packed({{"ts", 7.5}, {"events", events}}));
  EXPECT_TRUE(read) << read.error().message;
  return read ? read->events : std::vector<KvEvent>();
}

TEST(KvEventWire, AMessageIsReadAsItWasWritten) {
  const KvEventBatch batch{.time_s = 12.25,
                           .events = {KvBlocksStored{{1, 1ULL << 63U}, {}, tokens_from(0, 32), 16},
                                      KvBlocksStored{{9}, 1ULL << 63U, tokens_from(7, 16), 16},
                                      KvBlocksRemoved{{1, 9}}, KvCacheCleared()}};
  const Result<KvEventBatch> read = read_kv_events(write_kv_events(batch));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, batch);
}

TEST(KvEventWire, ReadsTheArraysOfEarlierReleases) {
  // As vLLM 0.9 wrote them, then with the fields that were added up to the change to maps.
  const Json message = {1.5,
                        {{"BlockStored", {-1, 5}, nullptr, tokens_from(0, 4), 2, nullptr},
                         {"BlockStored",
                          {6},
                          5,
                          tokens_from(4, 2),
                          2,
                          nullptr,
                          "GPU",
                          nullptr,
                          nullptr,
                          0,
                          "full_attention",
                          nullptr},
                         {"BlockRemoved", {5}},
                         {"BlockRemoved", {6}, "GPU", 0},
                         {"AllBlocksCleared"}},
                        0};
  const Result<KvEventBatch> read = read_kv_events(packed(message));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->time_s, 1.5);
  EXPECT_EQ(read->events,
            (std::vector<KvEvent>{KvBlocksStored{{~std::uint64_t{0}, 5}, {}, tokens_from(0, 4), 2},
                                  KvBlocksStored{{6}, 5, tokens_from(4, 2), 2},
                                  KvBlocksRemoved{{5}}, KvBlocksRemoved{{6}}, KvCacheCleared()}));
}

TEST(KvEventWire, ReadsHashesOfBytesAndPassesOverUnknownFieldsAndTypes) {
  const Json name = Json::binary({1, 2, 3});
  const std::uint64_t hash = xxh3(std::string_view("\1\2\3"));
  EXPECT_EQ(
      events_in({{{"type", "BlockStored"},
                  {"block_hashes", {name}},
                  {"parent_block_hash", name},
                  {"token_ids", {3, 4}},
                  {"block_size", 2},
                  {"new_field", {{"a", 1}}}},
                 {{"type", "BlockMoved"}, {"block_hashes", "x"}},
                 {"BlockRemoved", {name}}}),
      (std::vector<KvEvent>{KvBlocksStored{{hash}, hash, {3, 4}, 2}, KvBlocksRemoved{{hash}}}));
}

TEST(KvEventWire, PassesOverBlocksThatAPlainPromptDoesNotFind) {
  const Json plain = {{"type", "BlockStored"}, {"block_hashes", {1}}, {"token_ids", {3, 4}},
                      {"block_size", 2},       {"medium", "GPU"},     {"extra_keys", {nullptr}}};
  EXPECT_EQ(events_in(Json::array({plain})).size(), 1u);
  for (const Json& change :
       Json::array({{{"lora_id", 3}},
                    {{"lora_name", "poet"}},
                    {{"medium", "CPU"}},
                    {{"extra_keys", {{"salt"}}}},
                    {{"kv_cache_spec_kind", "sliding_window"}},
                    {{"block_hashes", Json::array()}, {"token_ids", Json::array()}}})) {
    Json other = plain;
    other.update(change);
    EXPECT_TRUE(events_in(Json::array({other})).empty()) << change;
  }
  EXPECT_TRUE(
      events_in({{{"type", "BlockRemoved"}, {"block_hashes", {1}}, {"medium", "CPU"}}}).empty());
}

TEST(KvEventWire, ErrorsSayWhatWasExpected) {
  const auto stored = [](const Json& change) {
    Json event = {
        {"type", "BlockStored"}, {"block_hashes", {1}}, {"token_ids", {3, 4}}, {"block_size", 2}};
    event.update(change);
    return error_of({{"ts", 1}, {"events", {event}}});
  };
  const std::string begin = "a message of KV events: ";
  EXPECT_EQ(error_of({{"ts", "now"}, {"events", Json::array()}}).substr(0, 60),
            begin + "expected a time and a list of events");
  EXPECT_EQ(stored({{"block_hashes", 4}}), begin + "block_hashes is a number, expected a list");
  EXPECT_EQ(stored({{"block_hashes", {"x"}}}),
            begin + "a hash is a string, expected a whole number or bytes");
  EXPECT_EQ(stored({{"token_ids", {3, -4}}}),
            begin + "a token is no whole number from 0 to 2147483647");
  EXPECT_EQ(stored({{"block_size", 0}}),
            begin + "2 tokens of 1 blocks, expected block_size of each");
  EXPECT_EQ(stored({{"block_size", 3}}),
            begin + "2 tokens of 1 blocks, expected block_size of each");
  EXPECT_EQ(error_of({1, {7}}), begin + "an event is a number, expected a map or a list");
  EXPECT_EQ(error_of({1, {Json::array()}}), begin + "an event has no type");
}

TEST(KvEventWire, WhatIsNoMessageIsRefused) {
  const std::string whole =
      write_kv_events({.time_s = 1, .events = {KvBlocksStored{{1}, {}, tokens_from(0, 16), 16}}});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(read_kv_events(std::string_view(whole).substr(0, size))) << size;
  }
  EXPECT_FALSE(read_kv_events(whole + "x"));
  const Result<KvEventBatch> deep = read_kv_events(std::string(1'000'000, '\x91'));
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().message,
            "a message of KV events: 1000000 bytes, expected msgpack of at most 8 levels");
  EXPECT_FALSE(read_kv_events("\xdf\xff\xff\xff\xff")) << "a map of which nothing comes";
}

}  // namespace
}  // namespace orrery
