// runtime/trainer/text_corpus.hpp - the bytes of text files, one after another in the order of
// their paths, as tokens 0 to 255.
//
// Opened by each rank on its own; immutable and safe to read from every thread. The files are
// mapped, and all read once when opened, which brings them into the node's memory: they must keep
// their contents while a corpus is open. Invariant: the same files in the same places are the same
// tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"

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

  [[nodiscard]] std::int64_t tokens() const { return begins_.back(); }
  [[nodiscard]] std::size_t files() const { return files_.size(); }
  /// Zero bytes in all files, where they were allowed.
  [[nodiscard]] std::int64_t zero_bytes() const { return zero_bytes_; }

  /// Fills `out` with the tokens from `begin` on. Precondition: there are so many. O(tokens + log
  /// files).
  void read(std::int64_t begin, std::span<std::int32_t> out) const;

 private:
  class MappedFile;

  TextCorpus() = default;
  Status add(const std::string& path, const CorpusOptions& options);

  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::vector<std::int64_t> begins_{0};  ///< first token of each file, and the end of the last
  std::int64_t zero_bytes_ = 0;
};

}  // namespace orrery
