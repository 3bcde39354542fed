#include "inference/gguf/gguf_file.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "inference/formats/model_writer_test.hpp"

namespace orrery {
namespace {

using enum TensorEncoding;

GgufForTest good() {
  GgufForTest file;
  file.text("name", "tiny")
      .whole("count", 7)
      .number("rate", 0.5F)
      .flag("set")
      .texts("words", {"a", "", "bc"})
      .numbers("scores", {1, -2.5F})
      .tensor("a.weight", {kF32, {2, 3}, std::string(24, 'a')})
      .tensor("b.weight", {kQ8_0, {1, 32}, std::string(34, 'b')});
  return file;
}

std::string refusal(const std::string& bytes) {
  const Result<GgufFile> file = GgufFile::parse(bytes, "m.gguf");
  return file ? "" : file.error().text();
}

TEST(GgufFileTest, IsReadAsItWasWritten) {
  for (const std::uint32_t version : {2U, 3U}) {
    GgufForTest written = good();
    written.version = version;
    const std::string bytes = written.bytes();
    const Result<GgufFile> file = GgufFile::parse(bytes, "m.gguf");
    ASSERT_TRUE(file) << file.error().text();
    EXPECT_EQ(file->version(), version);
    EXPECT_EQ(std::get<std::string_view>(file->find("name")->value), "tiny");
    EXPECT_EQ(std::get<std::uint64_t>(file->find("count")->value), 7U);
    EXPECT_EQ(std::get<double>(file->find("rate")->value), 0.5);
    EXPECT_TRUE(std::get<bool>(file->find("set")->value));
    EXPECT_EQ(strings_of(std::get<GgufArray>(file->find("words")->value)),
              (std::vector<std::string_view>{"a", "", "bc"}));
    EXPECT_EQ(numbers_of(std::get<GgufArray>(file->find("scores")->value)),
              (std::vector<double>{1, -2.5}));
    EXPECT_EQ(file->find("nothing"), nullptr);
    ASSERT_EQ(file->tensors().size(), 2U);
    EXPECT_EQ(file->tensors()[0].name, "a.weight");
    EXPECT_EQ(file->tensors()[0].shape, (std::vector<std::uint64_t>{2, 3}));
    EXPECT_EQ(file->tensors()[0].bytes, std::string(24, 'a'));
    EXPECT_EQ(file->tensors()[1].bytes, std::string(34, 'b'));
    EXPECT_EQ(file->tensors()[1].offset % 32, 0U);
  }
}

TEST(GgufFileTest, TheLastPaddingMayBeMissing) {
  const std::string bytes = good().bytes();
  EXPECT_EQ(refusal(bytes.substr(0, bytes.size() - 30)), "");
  EXPECT_NE(refusal(bytes + "x"), "");
}

TEST(GgufFileTest, AFileThatIsCutAnywhereIsRefusedAtAByte) {
  const std::string bytes = good().bytes();
  for (std::size_t size = 0; size < bytes.size() - 30; ++size) {
    EXPECT_TRUE(refusal(bytes.substr(0, size)).starts_with("m.gguf: byte ")) << size;
  }
}

TEST(GgufFileTest, CountsThatTheFileHasNoRoomForAreRefused) {
  std::string bytes = good().bytes();
  for (const std::size_t at : {8U, 16U, 24U}) {
    std::string lying = bytes;
    store_little_endian(~std::uint64_t{0} >> 1, lying.data() + at);
    EXPECT_TRUE(refusal(lying).starts_with("m.gguf: byte ")) << refusal(lying);
  }
  GgufForTest texts;
  texts.entry("words", 9, little_endian(std::uint32_t{8}) + little_endian(std::uint64_t{1} << 60));
  EXPECT_EQ(refusal(texts.bytes()),
            "m.gguf: byte 45: 1152921504606846976 texts of an array, expected at most 0 in the 0 "
            "bytes behind it");
}

TEST(GgufFileTest, MarkAndVersionAreChecked) {
  std::string bytes = good().bytes();
  EXPECT_EQ(refusal("GGML" + bytes.substr(4)), "m.gguf: byte 0: expected the mark \"GGUF\"");
  bytes[4] = 1;
  EXPECT_EQ(refusal(bytes), "m.gguf: byte 4: version 1, expected 2 or 3, little endian");
}

TEST(GgufFileTest, EntriesOfAWrongFormAreRefused) {
  EXPECT_NE(refusal(good().whole("count", 8).bytes()).find("the key \"count\" comes twice"),
            std::string::npos);
  EXPECT_NE(refusal(GgufForTest().whole("", 8).bytes()).find("expected a key"), std::string::npos);
  EXPECT_NE(refusal(GgufForTest().whole("\xFF", 8).bytes()).find("UTF-8"), std::string::npos);
  EXPECT_NE(refusal(GgufForTest().entry("k", 13, "").bytes()).find("type 13, expected a type"),
            std::string::npos);
  EXPECT_NE(refusal(GgufForTest().entry("k", 7, "\2").bytes()).find("a truth value"),
            std::string::npos);
  const std::string nested = little_endian(std::uint32_t{9}) + little_endian(std::uint64_t{0});
  EXPECT_NE(refusal(GgufForTest().entry("k", 9, nested).bytes()).find("an array of arrays"),
            std::string::npos);
  for (const std::uint32_t alignment : {0U, 24U, 1U << 30}) {
    EXPECT_NE(refusal(good().whole("general.alignment", alignment).bytes()).find("power of two"),
              std::string::npos);
  }
}

TEST(GgufFileTest, AnotherAlignmentIsKept) {
  GgufForTest file;
  file.alignment = 64;
  file.whole("general.alignment", 64)
      .tensor("a", {kF32, {1}, std::string(4, 'a')})
      .tensor("b", {kF32, {1}, std::string(4, 'b')});
  const std::string bytes = file.bytes();
  const Result<GgufFile> read = GgufFile::parse(bytes, "m.gguf");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->tensors()[1].bytes, "bbbb");
  EXPECT_EQ(read->tensors()[1].offset % 64, 0U);
}

TEST(GgufFileTest, TensorsThatOverlapOrLeaveGapsAreRefused) {
  const auto with = [](std::uint64_t offset) {
    return good().tensor("c", {kF32, {1}, std::string(4, 'c'), offset}).bytes();
  };
  EXPECT_EQ(refusal(with(96)), "");
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{64}, std::uint64_t{80},
                                     std::uint64_t{128}, ~std::uint64_t{0}}) {
    EXPECT_NE(refusal(with(offset)).find("where those before it end"), std::string::npos) << offset;
  }
}

TEST(GgufFileTest, TensorsOfAWrongFormAreRefused) {
  const auto one = [](const std::vector<std::uint64_t>& shape) {
    return GgufForTest().tensor("t", {kQ8_0, shape, std::string(34, 't')}).bytes();
  };
  EXPECT_EQ(refusal(one({1, 32})), "");
  EXPECT_NE(refusal(one({})).find("has 0 extents, expected 1 to 4"), std::string::npos);
  EXPECT_NE(refusal(one({1, 1, 1, 1, 32})).find("has 5 extents"), std::string::npos);
  EXPECT_NE(refusal(one({0, 32})).find("has an extent of 0"), std::string::npos);
  EXPECT_NE(refusal(one({1, 33})).find("expected whole blocks of 32 Q8_0"), std::string::npos);
  EXPECT_NE(refusal(one({std::uint64_t{1} << 40, 1 << 20})).find("2^53"), std::string::npos);
  EXPECT_NE(refusal(one({2, 32})).find("expected 68 bytes of the tensor \"t\""), std::string::npos);
  EXPECT_NE(refusal(good().tensor("a.weight", {kF32, {1}, "aaaa"}).bytes()).find("comes twice"),
            std::string::npos);
  std::string unknown = one({1, 32});
  unknown[24 + 8 + 1 + 4 + 16] = 39;
  EXPECT_NE(refusal(unknown).find("has the type 39, expected one of F32 (0), F16 (1)"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery
