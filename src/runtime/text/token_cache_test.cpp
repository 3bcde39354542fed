#include "runtime/text/token_cache.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/numbers/rng.hpp"
#include "base/system/file_descriptor.hpp"
#include "runtime/text/text_stream.hpp"
#include "runtime/text/token_file.hpp"

namespace orrery {
namespace {

using Source = TokenizedText::Source;
namespace fs = std::filesystem;

/// Each byte is a token, counted from `shift`; 0 is the end of a file.
class ShiftedBytes final : public Tokenizer {
 public:
  enum class Lines : std::uint8_t { kKept, kSpanned };
  explicit ShiftedBytes(std::int64_t kinds, Lines lines = Lines::kKept)
      : kinds_(kinds), lines_(lines) {
    void* shared =
        ::mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    calls_ = static_cast<int*>(shared);
  }
  ShiftedBytes(const ShiftedBytes&) = delete;
  ShiftedBytes& operator=(const ShiftedBytes&) = delete;
  ~ShiftedBytes() override { ::munmap(calls_, sizeof(int)); }

  std::string name() const override { return "shifted"; }
  std::string identity() const override { return "shifted bytes"; }
  std::int64_t kinds() const override { return kinds_; }
  std::optional<std::int32_t> end_of_text() const override { return 0; }
  bool keeps_lines() const override { return lines_ == Lines::kKept; }
  void encode(std::string_view text, std::vector<std::int32_t>& to) const override {
    ++std::atomic_ref<int>(*calls_);
    before_();
    for (const char c : text) to.push_back(shift() + static_cast<unsigned char>(c));
  }
  std::string decode(std::span<const std::int32_t> tokens) const override {
    std::string text;
    for (const std::int32_t token : tokens) {
      if (token != 0) text.push_back(static_cast<char>(token - shift()));
    }
    return text;
  }

  /// Number of calls of encode() in all processes that were forked since it was made.
  int calls() const { return *calls_; }
  void do_before(std::function<void()> what) { before_ = std::move(what); }

 private:
  std::int32_t shift() const { return static_cast<std::int32_t>(kinds_ - 256); }

  std::int64_t kinds_;
  Lines lines_;
  int* calls_;
  std::function<void()> before_ = [] {};
};

class TokenCacheTest : public testing::Test {
 protected:
  TokenCacheTest() {
    std::string name = fs::temp_directory_path() / "orrery_tokens_XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error(name);
    root_ = name;
    fs::create_directory(root_ / "text");
    cache_ = root_ / "cache/tokens";
    write("text/a", "one\ntwo");
    write("text/b", "three");
  }
  ~TokenCacheTest() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(root_ / name, std::ios::binary) << bytes;
  }
  TextCorpus corpus() const {
    auto corpus = TextCorpus::open({.paths = {root_ / "text"}});
    if (!corpus) throw std::runtime_error(corpus.error().text());
    return *std::move(corpus);
  }
  TokenizedText get() const { return tokenize(corpus(), tokenizer_, cache_); }

  static std::vector<std::int32_t> tokens_of(const TextCorpus& corpus) {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(corpus.tokens()));
    corpus.read(0, tokens);
    return tokens;
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(cache_)) files.push_back(entry.path());
    return files;
  }
  static std::string bytes_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// Runs `body` in a child process, whose exit status is its result; returns the child's id.
  template <class Body>
  static pid_t fork_to(const Body& body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body() ? 0 : 1);
    return child;
  }
  static int end_of(pid_t child) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  fs::path root_;
  std::string cache_;
  ShiftedBytes tokenizer_{300};
};

TEST_F(TokenCacheTest, PutsTheEndOfATextBehindEachFile) {
  for (const std::int64_t kinds : {300, 65'536, 65'537, 1'000'000}) {
    const ShiftedBytes tokenizer(kinds);
    const TokenizedText text = tokenize(corpus(), tokenizer, cache_);
    EXPECT_EQ(text.source, Source::kMade) << text.why;
    EXPECT_EQ(text.corpus.files(), 2u);
    ASSERT_EQ(text.corpus.tokens(), 14);
    const std::vector<std::int32_t> tokens = tokens_of(text.corpus);
    EXPECT_EQ(tokenizer.decode(tokens), "one\ntwothree");
    EXPECT_EQ(tokens[7], 0);
    EXPECT_EQ(tokens[13], 0);
    EXPECT_EQ(tokens[0], kinds - 256 + 'o');
    std::vector<std::int32_t> some(3);
    text.corpus.read(6, some);
    EXPECT_EQ(some, std::vector<std::int32_t>(tokens.begin() + 6, tokens.begin() + 9));
  }
}

TEST_F(TokenCacheTest, TakesNoTokenizerWhoseTokensSpanLines) {
  const ShiftedBytes tokenizer(300, ShiftedBytes::Lines::kSpanned);
  EXPECT_DEATH((void)tokenize(corpus(), tokenizer, cache_), "slices that end at lines");
}

TEST_F(TokenCacheTest, EncodesATextOnce) {
  const std::vector<std::int32_t> made = tokens_of(get().corpus);
  EXPECT_EQ(tokenizer_.calls(), 2);
  const TokenizedText again = get();
  EXPECT_EQ(again.source, Source::kFound);
  EXPECT_EQ(tokenizer_.calls(), 2);
  EXPECT_EQ(tokens_of(again.corpus), made);
  fs::rename(root_ / "text", root_ / "elsewhere");
  fs::create_directory(root_ / "text");
  fs::rename(root_ / "elsewhere/a", root_ / "text/0");
  fs::rename(root_ / "elsewhere/b", root_ / "text/1");
  EXPECT_EQ(get().source, Source::kFound) << "the contents count, not the names";
}

TEST_F(TokenCacheTest, EncodesAnotherTextAndWithAnotherTokenizer) {
  (void)get();
  EXPECT_EQ(tokenize(corpus(), ShiftedBytes(301), cache_).source, Source::kMade);
  write("text/b", "threE");
  EXPECT_EQ(get().source, Source::kMade);
  // Equal bytes, divided differently among the files.
  write("text/a", "one\ntwot");
  write("text/b", "hrE");
  const TokenizedText cut = get();
  EXPECT_EQ(cut.source, Source::kMade);
  EXPECT_EQ(tokens_of(cut.corpus)[8], 0);
  EXPECT_EQ(files().size(), 4u);
}

TEST_F(TokenCacheTest, MakesAFileAnewThatIsNotAsItWasWritten) {
  const std::vector<std::int32_t> tokens = tokens_of(get().corpus);
  const fs::path file = files().at(0);
  const std::string good = bytes_of(file);
  ASSERT_EQ(good.size(), 80 + 2 * tokens.size());
  std::vector<std::string> bad{"",
                               "tokens",
                               good.substr(0, 80),
                               good.substr(0, good.size() - 1),
                               good.substr(0, good.size() - 2),
                               good + "x",
                               good + "xy",
                               std::string(good.size(), '\0')};
  for (std::size_t at = 0; at < good.size(); ++at) {
    bad.push_back(good);
    bad.back()[at] = static_cast<char>(bad.back()[at] ^ (1 << (at % 8)));
  }
  for (const std::string& bytes : bad) {
    std::ofstream(file, std::ios::binary) << bytes;
    const TokenizedText again = get();
    ASSERT_EQ(again.source, Source::kMade);
    ASSERT_EQ(tokens_of(again.corpus), tokens);
    ASSERT_EQ(bytes_of(file), good);
  }
}

TEST_F(TokenCacheTest, TakesNoTokenThatTheTokenizerDoesNotHave) {
  const fs::path path = root_ / "tokens";
  const TokenFileKey key{.digest = {}, .kinds = 300};
  for (const std::int32_t highest : {299, 300}) {
    std::ofstream(path).close();
    const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    TokenFileWriter writer(file.get(), key);
    ASSERT_TRUE(writer.append(std::vector<std::int32_t>{0, highest, 1}));
    ASSERT_TRUE(writer.finish());
    const auto opened = open_token_file(path, key);
    EXPECT_EQ(opened.has_value(), highest < 300);
  }
}

TEST_F(TokenCacheTest, KeepsTheTokensInMemoryWhereTheyCannotBeWritten) {
  const std::vector<std::int32_t> tokens = tokens_of(get().corpus);
  const auto why = [&](const std::string& directory) {
    const TokenizedText text = tokenize(corpus(), tokenizer_, directory);
    EXPECT_EQ(text.source, Source::kMemory) << directory;
    EXPECT_EQ(tokens_of(text.corpus), tokens);
    std::string said = text.why;
    if (const std::size_t at = said.find(root_.string()); at != std::string::npos) {
      said.replace(at, root_.string().size(), "ROOT");
    }
    return said;
  };
  EXPECT_EQ(why(""), "there is no directory for them");
  EXPECT_EQ(why(root_ / "text/a"), "ROOT/text/a: expected a directory");
  EXPECT_EQ(why(root_ / "text/a/below"), "ROOT/text/a/below: cannot make it: Not a directory");
  EXPECT_EQ(why("/proc/1/tokens").substr(0, 29), "/proc/1/tokens: cannot make i");
  fs::create_directory(root_ / "open");
  ASSERT_EQ(::chmod((root_ / "open").c_str(), 0777), 0);
  EXPECT_EQ(why(root_ / "open"), "ROOT/open: others may write to this directory");
  fs::create_directory_symlink(cache_, root_ / "link");
  EXPECT_EQ(why(root_ / "link"), "ROOT/link: expected a directory");
}

TEST_F(TokenCacheTest, KeepsTheTokensInMemoryWhenTheDiskIsFull) {
  fs::create_directories(cache_);
  write("text/c", std::string(100'000, 'c'));
  // A limit on the size of files stands for a disk without room.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 65'536, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const TokenizedText text = get();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  (void)::signal(SIGXFSZ, handler);
  EXPECT_EQ(text.source, Source::kMemory);
  EXPECT_NE(text.why.find("File too large"), std::string::npos) << text.why;
  EXPECT_TRUE(files().empty()) << "nothing is left of what was begun";
  const TokenizedText later = get();
  EXPECT_EQ(later.source, Source::kMade);
  EXPECT_EQ(tokens_of(later.corpus), tokens_of(text.corpus));
}

TEST_F(TokenCacheTest, OfManyProcessesOneMakesTheTokens) {
  const TextCorpus text = corpus();
  std::vector<pid_t> children;
  children.reserve(4);
  for (int i = 0; i < 4; ++i) {
    children.push_back(fork_to([&] {
      const TokenizedText mine = tokenize(text, tokenizer_, cache_);
      return mine.source != Source::kMemory && tokens_of(mine.corpus).size() == 14;
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(end_of(child), 0);
  EXPECT_EQ(tokenizer_.calls(), 2) << "a call for each file, by one of the processes";
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(TokenCacheTest, AnotherMakesTheTokensWhenTheFirstIsKilled) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  tokenizer_.do_before([&] {
    (void)!::write(ends[1], "x", 1);
    ::pause();
  });
  const pid_t maker = fork_to([&] { return get().source == Source::kMade; });
  char byte = 0;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1) << "it has the lock";
  tokenizer_.do_before([] {});
  const pid_t waiter = fork_to([&] { return get().source == Source::kMade; });
  ASSERT_EQ(::kill(maker, SIGKILL), 0);
  EXPECT_EQ(end_of(maker), 128 + SIGKILL);
  EXPECT_EQ(end_of(waiter), 0);
  EXPECT_EQ(get().source, Source::kFound);
  EXPECT_EQ(files().size(), 1u);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(TokenCacheTest, KeepsTheFilesUsedLastAndWhatIsNotItsOwn) {
  (void)get();
  const fs::path first = files().at(0);
  write("cache/tokens/notes.tmp", "mine");
  write("cache/tokens/" + std::string(64, '0') + ".tmp", "of a dead process");
  for (std::size_t i = 0; i < kTokenFilesKept + 3; ++i) {
    write("text/a", fmt::format("text {}", i));
    (void)get();
    // The clock of files is coarse: each is older than the next by an hour.
    for (const fs::path& file : files()) {
      fs::last_write_time(file, fs::last_write_time(file) - std::chrono::hours(1));
    }
  }
  EXPECT_EQ(files().size(), kTokenFilesKept + 1);
  EXPECT_FALSE(fs::exists(first));
  EXPECT_TRUE(fs::exists(root_ / "cache/tokens/notes.tmp"));
  EXPECT_EQ(get().source, Source::kFound);
}

TEST_F(TokenCacheTest, AStreamIsTheSameWhereverItsTokensLie) {
  Rng rng(2);
  std::string text;
  for (int i = 0; i < 20'000; ++i) text.push_back(static_cast<char>('a' + rng.below(26)));
  write("text/c", text);
  const auto open = [&](const std::string& directory, Source source) {
    TokenizedText tokens = tokenize(corpus(), tokenizer_, directory);
    EXPECT_EQ(tokens.source, source);
    auto stream = TextStream::create(std::move(tokens.corpus), 16, 3);
    if (!stream) throw std::runtime_error(stream.error().text());
    return *std::move(stream);
  };
  const TextStream memory = open("", Source::kMemory);
  const TextStream made = open(cache_, Source::kMade);
  const TextStream found = open(cache_, Source::kFound);
  std::vector<std::int32_t> expected(68);  // four samples of 16 tokens and the one that follows
  std::vector<std::int32_t> seen(expected.size());
  // Samples can be read by number alone, in any order, also in the second epoch.
  for (const std::uint64_t k : {0u, 1'000u, 7u, 2'500u}) {
    memory.training_samples(k, expected);
    for (const TextStream* stream : {&made, &found}) {
      stream->training_samples(k, seen);
      EXPECT_EQ(seen, expected);
    }
  }
}

}  // namespace
}  // namespace orrery
