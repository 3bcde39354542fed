// runtime/text/text_corpus.hpp - the tokens of text files, one file after another in the order
// of their paths: their bytes as tokens 0 to 255, or the tokens of a tokenizer.
//
// Opened by each rank on its own; immutable and safe to read from every thread. The files are
// mapped, and read once when opened, which brings them into the node's memory: they must not change
// while a corpus of bytes is open. Other tokens come from token_cache and no longer need the files.
// Invariant: the same files in the same places give the same tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/text/token_array.hpp"

namespace orrery {

struct CorpusOptions {
  std::vector<std::string> paths;     ///< files, and directories taken with all below them
  std::vector<std::string> suffixes;  ///< suffixes of files to take from directories; none: all
  /// Whether to accept files with a zero byte, which are not text.
  enum class Binary { kRefuse, kAllow } binary = Binary::kRefuse;
};

class TextCorpus {
 public:
  /// An input error names the path that is missing, unreadable, empty or binary, or the directory
  /// that holds nothing. Empty files in directories are passed over; a path given twice counts
  /// once. O(bytes).
  [[nodiscard]] static Result<TextCorpus> open(const CorpusOptions& options);

  /// Returns the same files with other tokens; `tokens` are those of all files.
  [[nodiscard]] TextCorpus in_tokens(TokenArray tokens) const;

  [[nodiscard]] std::int64_t tokens() const { return tokens_ ? tokens_->size() : begins_.back(); }
  [[nodiscard]] std::size_t files() const { return begins_.size() - 1; }
  /// Returns the bytes of a file. Precondition: tokens are bytes.
  [[nodiscard]] std::span<const unsigned char> file(std::size_t number) const;
  /// Number of zero bytes in all files, if they were allowed.
  [[nodiscard]] std::int64_t zero_bytes() const { return zero_bytes_; }

  /// Fills `out` with the tokens from `begin` on. Precondition: there are so many. O(tokens + log
  /// files).
  void read(std::int64_t begin, std::span<std::int32_t> out) const;

 private:
  class MappedFile;

  TextCorpus() = default;
  Status add(const std::string& path, const CorpusOptions& options);

  std::vector<std::shared_ptr<const MappedFile>> files_;  ///< empty if tokens are not bytes
  std::vector<std::int64_t> begins_{0};  ///< first byte of each file, and the end of the last
  std::optional<TokenArray> tokens_;     ///< none: tokens are bytes
  std::int64_t zero_bytes_ = 0;
};

}  // namespace orrery
