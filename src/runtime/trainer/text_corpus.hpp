// runtime/trainer/text_corpus.hpp - the tokens of text files, one file after another in the order
// of their paths: their bytes as tokens 0 to 255, or what a tokenizer made of them.
//
// Opened by each rank on its own; immutable and safe to read from every thread. The files are
// mapped, and all read once when opened, which brings them into the node's memory: they must keep
// their contents while a corpus of bytes is open. Other tokens come from token_cache and need the
// files no more. Invariant: the same files in the same places are the same tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/trainer/token_array.hpp"

namespace orrery {

struct CorpusOptions {
  std::vector<std::string> paths;     ///< files, and directories taken with all below them
  std::vector<std::string> suffixes;  ///< of the files taken out of directories; none: all files
  /// Files with a zero byte are no text.
  enum class Binary { kRefuse, kAllow } binary = Binary::kRefuse;
};

class TextCorpus {
 public:
  /// An input error names the path that is missing, unreadable, empty or binary, or the directory
  /// that holds nothing. Empty files in directories are passed over; a path given twice counts
  /// once. O(bytes).
  [[nodiscard]] static Result<TextCorpus> open(const CorpusOptions& options);

  /// The same files in other tokens, which are those of all of them.
  [[nodiscard]] TextCorpus in_tokens(TokenArray tokens) const;

  [[nodiscard]] std::int64_t tokens() const { return tokens_ ? tokens_->size() : begins_.back(); }
  [[nodiscard]] std::size_t files() const { return begins_.size() - 1; }
  /// The bytes of a file. Precondition: tokens are bytes.
  [[nodiscard]] std::span<const unsigned char> file(std::size_t number) const;
  /// Zero bytes in all files, where they were allowed.
  [[nodiscard]] std::int64_t zero_bytes() const { return zero_bytes_; }

  /// Fills `out` with the tokens from `begin` on. Precondition: there are so many. O(tokens + log
  /// files).
  void read(std::int64_t begin, std::span<std::int32_t> out) const;

 private:
  class MappedFile;

  TextCorpus() = default;
  Status add(const std::string& path, const CorpusOptions& options);

  std::vector<std::shared_ptr<const MappedFile>> files_;  ///< none where tokens are no bytes
  std::vector<std::int64_t> begins_{0};  ///< first byte of each file, and the end of the last
  std::optional<TokenArray> tokens_;     ///< none: bytes
  std::int64_t zero_bytes_ = 0;
};

}  // namespace orrery
