#include "runtime/text/token_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "base/format/little_endian.hpp"
#include "base/numbers/parallel.hpp"
#include "base/system/file_descriptor.hpp"
#include "runtime/checkpoint/durable_file.hpp"
#include "runtime/text/token_file.hpp"
#include "runtime/trainer/sha256.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFinished = ".tokens";
constexpr std::string_view kUnfinished = ".tmp";
/// A multiple of kLineMax, so that cuts do not change tokens; see Tokenizer::encode().
constexpr std::size_t kSlice = 16 * Tokenizer::kLineMax;
constexpr std::size_t kBatch = 8 * kSlice;  ///< bytes encoded at a time
/// How often to wait for other processes that fail to leave a good file.
constexpr int kTurns = 16;

using TokenSink = std::function<Status(std::span<const std::int32_t>)>;

/// Encodes a corpus slice by slice, in its order.
class CorpusEncoder {
 public:
  CorpusEncoder(const TextCorpus& corpus, const Tokenizer& tokenizer, const TokenSink& sink)
      : corpus_(corpus), tokenizer_(tokenizer), sink_(sink) {}

  /// Returns the sink's error, if any.
  Status run() {
    for (std::size_t i = 0; i < corpus_.files(); ++i) {
      const std::span<const unsigned char> bytes = corpus_.file(i);
      std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      while (!text.empty()) {
        const std::size_t size = slice_of(text);
        slices_.push_back({text.substr(0, size), size == text.size(), {}});
        text.remove_prefix(size);
        waiting_ += size;
        if (waiting_ < kBatch) continue;
        if (Status flushed = flush(); !flushed) return flushed;
      }
    }
    return flush();
  }

 private:
  struct Slice {
    std::string_view text;
    bool ends_file = false;
    std::vector<std::int32_t> tokens;
  };

  /// Returns the bytes up to the last line end within kSlice; kSlice if the line is longer.
  static std::size_t slice_of(std::string_view text) {
    if (text.size() <= kSlice) return text.size();
    const std::size_t end = text.substr(0, kSlice).rfind('\n');
    return end == std::string_view::npos ? kSlice : end + 1;
  }

  Status flush() {
    parallel_each({.items = slices_.size(), .threads = std::thread::hardware_concurrency()},
                  [&](std::size_t i) {
                    tokenizer_.encode(slices_[i].text, slices_[i].tokens);
                    return Onward::kGo;
                  });
    for (Slice& slice : slices_) {
      const auto end = tokenizer_.end_of_text();
      if (slice.ends_file && end) slice.tokens.push_back(*end);
      if (Status taken = sink_(slice.tokens); !taken) return taken;
    }
    slices_.clear();
    waiting_ = 0;
    return {};
  }

  const TextCorpus& corpus_;
  const Tokenizer& tokenizer_;
  const TokenSink& sink_;
  std::vector<Slice> slices_;
  std::size_t waiting_ = 0;  ///< bytes of the waiting slices
};

TokenFileKey key_of(const TextCorpus& corpus, const Tokenizer& tokenizer) {
  Sha256 digest;
  const std::string head =
      fmt::format("orrery tokens 1\n{}\n{}\n", tokenizer.identity(), tokenizer.kinds());
  digest.add(std::as_bytes(std::span(head)));
  for (std::size_t i = 0; i < corpus.files(); ++i) {
    const std::span<const unsigned char> bytes = corpus.file(i);
    std::array<char, sizeof(std::uint64_t)> size{};
    store_little_endian(std::uint64_t{bytes.size()}, size.data());
    digest.add(std::as_bytes(std::span(size)));
    digest.add(std::as_bytes(bytes));
  }
  return {digest.value(), tokenizer.kinds()};
}

tl::unexpected<Error> failed_to(std::string_view what, const std::string& path) {
  return environment_error(
      fmt::format("{}: cannot {}: {}", path, what, std::generic_category().message(errno)));
}

/// Creates the directory, and checks that no other user can write to it.
Status make_directory(const std::string& path) {
  std::error_code failed;
  const fs::path parent = fs::path(path).parent_path();
  if (!parent.empty()) fs::create_directories(parent, failed);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return failed_to("make it", path);
  struct stat status{};
  // A symbolic link is refused: it could point to any directory of this user.
  if (::lstat(path.c_str(), &status) != 0) return failed_to("use it", path);
  if (!S_ISDIR(status.st_mode)) {
    return environment_error(fmt::format("{}: expected a directory", path));
  }
  const bool own = status.st_uid == ::geteuid() || status.st_uid == 0;
  if (own && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return environment_error(fmt::format("{}: others may write to this directory", path));
}

bool is_named(const FileDescriptor& file, const std::string& path) {
  struct stat open{};
  struct stat named{};
  return ::fstat(file.get(), &open) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

/// An open file whose lock this process holds.
Result<FileDescriptor> lock(const std::string& path, int how) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  FileDescriptor file(::open(path.c_str(), kFlags, 0600));
  if (!file.valid()) return failed_to("write it", path);
  int locked = -1;
  do {
    locked = ::flock(file.get(), how);
  } while (locked != 0 && errno == EINTR);
  if (locked != 0) return failed_to("lock it", path);
  return file;
}

/// Whether a name is that of a file of tokens without its ending.
bool is_key(std::string_view name) {
  return name.size() == 2 * sizeof(Sha256::Value) &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

class TokenDirectory {
 public:
  TokenDirectory(std::string directory, const TextCorpus& corpus, const Tokenizer& tokenizer)
      : directory_(std::move(directory)),
        corpus_(corpus),
        tokenizer_(tokenizer),
        key_(key_of(corpus, tokenizer)) {
    std::string name;
    for (const unsigned char byte : key_.digest) name += fmt::format("{:02x}", byte);
    finished_ = directory_ + "/" + name + std::string(kFinished);
    unfinished_ = directory_ + "/" + name + std::string(kUnfinished);
  }

  /// Returns the text, found or made. Error: it can be neither read nor made in the directory.
  Result<TokenizedText> get() {
    if (Status made = make_directory(directory_); !made) return forward_error(made);
    for (int turn = 0; turn < kTurns; ++turn) {
      if (auto found = open(); found) return in_tokens(*found, TokenizedText::Source::kFound);
      Result<FileDescriptor> file = lock(unfinished_, LOCK_EX);
      if (!file) return forward_error(file);
      // The process that held the lock has finished the file, or removed it.
      if (!is_named(*file, unfinished_)) continue;
      if (auto found = open(); found) {
        ::unlink(unfinished_.c_str());
        return in_tokens(*found, TokenizedText::Source::kFound);
      }
      if (Status made = make(*file); !made) {
        ::unlink(unfinished_.c_str());
        return environment_error(fmt::format("{}: {}", directory_, made.error().text()));
      }
      prune();
      auto tokens = open();
      if (!tokens) return forward_error(tokens);
      return in_tokens(*tokens, TokenizedText::Source::kMade);
    }
    return environment_error(fmt::format("{}: files in it do not stay", directory_));
  }

 private:
  TokenizedText in_tokens(const TokenArray& tokens, TokenizedText::Source source) const {
    return {corpus_.in_tokens(tokens), source, ""};
  }

  Result<TokenArray> open() const {
    auto tokens = open_token_file(finished_, key_);
    // Marks the file as used; the most recently used files are kept.
    if (tokens) (void)::utimensat(AT_FDCWD, finished_.c_str(), nullptr, 0);
    return tokens;
  }

  Status make(const FileDescriptor& file) const {
    if (::ftruncate(file.get(), 0) != 0) return failed_to("write it", unfinished_);
    TokenFileWriter writer(file.get(), key_);
    const TokenSink sink = [&](std::span<const std::int32_t> tokens) {
      return writer.append(tokens);
    };
    if (Status written = CorpusEncoder(corpus_, tokenizer_, sink).run(); !written) return written;
    if (Status finished = writer.finish(); !finished) return finished;
    if (::rename(unfinished_.c_str(), finished_.c_str()) != 0) {
      return failed_to("name it", finished_);
    }
    return sync_names(directory_);
  }

  /// Removes the least recently used files, and unfinished files of dead processes.
  void prune() const {
    std::vector<std::pair<fs::file_time_type, std::string>> files;
    std::error_code failed;
    for (fs::directory_iterator at(directory_, failed), end; !failed && at != end;
         at.increment(failed)) {
      const std::string path = at->path().string();
      if (!is_key(at->path().stem().string())) continue;
      if (path.ends_with(kFinished)) files.emplace_back(at->last_write_time(failed), path);
      if (!path.ends_with(kUnfinished)) continue;
      const auto left = lock(path, LOCK_EX | LOCK_NB);
      if (left && is_named(*left, path)) ::unlink(path.c_str());
    }
    std::ranges::sort(files, std::ranges::greater{});
    for (std::size_t i = kTokenFilesKept; i < files.size(); ++i) {
      if (files[i].second != finished_) ::unlink(files[i].second.c_str());
    }
  }

  std::string directory_;
  const TextCorpus& corpus_;
  const Tokenizer& tokenizer_;
  TokenFileKey key_;
  std::string finished_;
  std::string unfinished_;
};

TokenArray encode_in_memory(const TextCorpus& corpus, const Tokenizer& tokenizer) {
  const std::size_t width = token_width(tokenizer.kinds());
  std::string bytes;
  const TokenSink sink = [&](std::span<const std::int32_t> tokens) -> Status {
    pack_tokens(tokens, width, bytes);
    return {};
  };
  (void)CorpusEncoder(corpus, tokenizer, sink).run();  // the sink cannot fail
  return TokenArray::of(std::move(bytes), width);
}

}  // namespace

TokenizedText tokenize(const TextCorpus& bytes, const Tokenizer& tokenizer,
                       const std::string& directory) {
  ORRERY_ASSERT(tokenizer.keeps_lines(), "a corpus is encoded in slices that end at lines");
  std::string why = "there is no directory for them";
  if (!directory.empty()) {
    auto text = TokenDirectory(directory, bytes, tokenizer).get();
    if (text) return *std::move(text);
    why = text.error().text();
  }
  return {bytes.in_tokens(encode_in_memory(bytes, tokenizer)), TokenizedText::Source::kMemory,
          std::move(why)};
}

}  // namespace orrery
