// runtime/text/token_cache.hpp - a text in the tokens of a tokenizer, made once per node.
//
//   DIRECTORY/KEY.tokens   the tokens (token_file.hpp)
//   DIRECTORY/KEY.tmp      the unfinished file; the process that makes it holds its lock (flock)
//
// KEY is the SHA-256 of the contents of all files and of the tokenizer, so jobs can share tokens,
// and a changed text has its own tokens. Several processes may call tokenize() at the same time:
// one makes the tokens, the others wait for it; if it dies, the next one takes over. A file that is
// not as it was written is made again. The directory may be removed at any time. If nothing can be
// written, the tokens are kept in this process's memory.
#pragma once

#include <string>

#include "runtime/text/text_corpus.hpp"
#include "tokens/tokenizer.hpp"

namespace orrery {

struct TokenizedText {
  TextCorpus corpus;
  enum class Source { kMade, kFound, kMemory } source = Source::kMade;
  std::string why;  ///< why they are only in memory
};

/// Returns the files of `bytes` in tokens: those of each file, followed by
/// Tokenizer::end_of_text(). `directory` is created when absent; it must belong to this user (or to
/// root) and no other user may be able to write to it; "": keep nothing. Cost: hashing the text,
/// and if it was not found, encoding it with all cores that this process may use; beside the tokens
/// at most some 100 MB are in memory. Precondition: Tokenizer::keeps_lines().
[[nodiscard]] TokenizedText tokenize(const TextCorpus& bytes, const Tokenizer& tokenizer,
                                     const std::string& directory);

/// Number of files of tokens that a directory keeps: the most recently used ones.
inline constexpr std::size_t kTokenFilesKept = 16;

}  // namespace orrery
