#include "base/format/gzip.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

namespace orrery {
namespace {

std::string gzip(std::string text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
  std::string bytes(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  bytes.resize(stream.total_out);
  deflateEnd(&stream);
  return bytes;
}

std::string message(std::string_view bytes, std::size_t size_max) {
  const Result<std::string> text = gunzip(bytes, size_max);
  return text ? "read" : text.error().message;
}

TEST(Gzip, GivesBackWhatWasCompressed) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += std::to_string(i * 7919 % 1000) + ',';
  for (const std::string& each : {std::string(), std::string("a"), text}) {
    const std::string bytes = gzip(each);
    EXPECT_TRUE(is_gzip(bytes));
    const Result<std::string> again = gunzip(bytes, each.size());
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(*again, each);
  }
}

TEST(Gzip, ReadsMembersBehindEachOther) {
  const Result<std::string> text = gunzip(gzip("one\n") + gzip("two\n"), 100);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "one\ntwo\n");
}

TEST(Gzip, NoCutAndNoFlippedBitChangesTheText) {
  const std::string whole = "timestamp,duration\n1,2\n";
  const std::string bytes = gzip(whole);
  for (std::size_t size = 2; size < bytes.size(); ++size) {
    EXPECT_EQ(message(bytes.substr(0, size), 1000), "the gzip file ends too early: is it whole?");
  }
  int refused = 0;
  for (std::size_t at = 10; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    const Result<std::string> text = gunzip(damaged, 1000);
    EXPECT_EQ(text.value_or(whole), whole) << "a bit that pads the last block, byte " << at;
    refused += text ? 0 : 1;
  }
  EXPECT_GT(refused, 20);
}

TEST(Gzip, WhatIsNoGzipIsRefused) {
  EXPECT_EQ(message("timestamp,duration\n", 100), "this is no gzip file");
  EXPECT_FALSE(is_gzip("\x1f"));
  EXPECT_NE(message(gzip("text") + "rest", 100), "read");
}

TEST(Gzip, ASmallFileThatHoldsTooMuchIsRefusedEarly) {
  const std::string bomb = gzip(std::string(4u << 20, '\0'));
  EXPECT_LT(bomb.size(), 10'000u);
  EXPECT_EQ(message(bomb, 1u << 20), "the gzip file holds more than 1 MiB, expected at most that");
}

}  // namespace
}  // namespace orrery
