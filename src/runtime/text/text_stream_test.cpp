#include "runtime/text/text_stream.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

namespace orrery {
namespace {

class TextStreamTest : public testing::Test {
 protected:
  TextStreamTest() {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_text_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error(name);
    root_ = name;
  }
  ~TextStreamTest() override { std::filesystem::remove_all(root_); }

  std::string file(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = root_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }

  std::string error_of(const CorpusOptions& options) const {
    const Result<TextCorpus> corpus = TextCorpus::open(options);
    if (corpus) return "";
    std::string text = corpus.error().text();
    for (std::size_t at = 0; (at = text.find(root_.string())) != std::string::npos;) {
      text.replace(at, root_.string().size(), "ROOT");
    }
    return text;
  }

  static std::string text_of(std::span<const std::int32_t> tokens) {
    std::string text;
    for (const std::int32_t token : tokens) text.push_back(static_cast<char>(token));
    return text;
  }

  std::filesystem::path root_;
};

TEST_F(TextStreamTest, JoinsFilesInTheOrderOfTheirPaths) {
  file("b.txt", "second ");
  file("a/deep/z.txt", "first ");
  file("a/picture.png", std::string("\0\1", 2));
  file("a/empty.txt", "");
  const std::string last = file("c.text", "third \xc3\xa9");
  const Result<TextCorpus> corpus =
      TextCorpus::open({.paths = {last, root_.string(), last}, .suffixes = {".txt"}});
  ASSERT_TRUE(corpus) << corpus.error().text();
  EXPECT_EQ(corpus->files(), 3u);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(corpus->tokens()));
  corpus->read(0, tokens);
  EXPECT_EQ(text_of(tokens), "first second third \xc3\xa9");
  EXPECT_EQ(tokens.back(), 0xa9);
  corpus->read(4, std::span(tokens).first(6));
  EXPECT_EQ(text_of(std::span(tokens).first(6)), "t seco");
}

TEST_F(TextStreamTest, NamesThePathThatIsNoText) {
  const std::string binary = file("x/data.bin", std::string("ab\0c\0", 5));
  const std::string empty = file("nothing.txt", "");
  EXPECT_EQ(error_of({}), "no training text: name a file or a directory");
  EXPECT_EQ(error_of({.paths = {root_.string() + "/lost.txt"}}),
            "training text \"ROOT/lost.txt\": No such file or directory");
  EXPECT_EQ(error_of({.paths = {empty}}), "training text \"ROOT/nothing.txt\": the file is empty");
  EXPECT_EQ(error_of({.paths = {root_.string()}, .suffixes = {".md", ".txt"}}),
            "training text \"ROOT\": the directory holds no file with text that ends in .md, .txt");
  EXPECT_EQ(
      error_of({.paths = {binary}}),
      "training text \"ROOT/x/data.bin\": 2 of 5 bytes are zero, the first is byte 2: the file "
      "is not text");
  Result<TextCorpus> allowed =
      TextCorpus::open({.paths = {binary}, .binary = CorpusOptions::Binary::kAllow});
  ASSERT_TRUE(allowed);
  EXPECT_EQ(allowed->zero_bytes(), 2);
  const Result<TextStream> stream = TextStream::create(std::move(*allowed), 5, 1);
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().text(),
            "the training text has 5 tokens, shorter than one sequence of 5 and the token that "
            "follows it");
}

TEST_F(TextStreamTest, ShowsEachSequenceOnceAnEpochAndHoldsOutTheLast) {
  constexpr std::int64_t kSequence = 4;
  constexpr std::int64_t kSequences = 250;
  std::string text;
  for (std::int64_t i = 0; i < kSequences; ++i) text += fmt::format("{:03}.", i);
  Result<TextCorpus> corpus = TextCorpus::open({.paths = {file("counted.txt", text + "e")}});
  ASSERT_TRUE(corpus);
  const Result<TextStream> stream = TextStream::create(std::move(*corpus), kSequence, 9);
  ASSERT_TRUE(stream);
  EXPECT_EQ(stream->held_out_sequences(), 2);
  std::vector<std::vector<std::string>> epochs(2);
  std::vector<std::int32_t> tokens(kSequence + 1);
  for (std::uint64_t k = 0; k < 496; ++k) {
    stream->training_samples(k, tokens);
    EXPECT_EQ(tokens[3], '.');
    epochs[k / 248].push_back(text_of(std::span(tokens).first(3)));
  }
  EXPECT_NE(epochs[0], epochs[1]);
  for (std::vector<std::string>& epoch : epochs) {
    EXPECT_FALSE(std::ranges::is_sorted(epoch));
    std::ranges::sort(epoch);
    for (std::size_t i = 0; i < epoch.size(); ++i) EXPECT_EQ(epoch[i], fmt::format("{:03}", i));
  }
  std::vector<std::int32_t> last(2 * (kSequence + 1));
  stream->held_out_samples(0, last);
  EXPECT_EQ(text_of(last), "248.2249.e");
}

TEST(SampleOrderTest, IsAPermutationOfAnyNumberOfThings) {
  for (const std::uint64_t count : {1u, 2u, 3u, 5u, 16u, 17u, 100u}) {
    const SampleOrder order(3, count);
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<std::uint64_t> seen;
      seen.reserve(count);
      for (std::uint64_t i = 0; i < count; ++i) seen.push_back(order[epoch * count + i]);
      std::ranges::sort(seen);
      for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(seen[i], i) << count;
    }
  }
}

}  // namespace
}  // namespace orrery
