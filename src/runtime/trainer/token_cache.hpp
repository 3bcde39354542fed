// runtime/trainer/token_cache.hpp - a text in the tokens of a tokenizer, made once a node.
//
//   DIRECTORY/KEY.tokens   the tokens (token_file.hpp)
//   DIRECTORY/KEY.tmp      the same while they are made; who makes them holds its lock (flock)
//
// KEY is the SHA-256 of the contents of all files and of the tokenizer, so any job may share what
// another has made, and a text that has changed has tokens of its own. Any process may call it at
// once: one makes the tokens, the others wait for it; when it dies the next one does it. A file
// that is not as it was written is made anew. The directory may be removed at any time. Where
// nothing can be written the tokens are in this process's memory.
#pragma once

#include <string>

#include "runtime/trainer/text_corpus.hpp"
#include "runtime/trainer/tokenizer.hpp"

namespace orrery {

struct TokenizedText {
  TextCorpus corpus;
  enum class Source { kMade, kFound, kMemory } source = Source::kMade;
  std::string why;  ///< they are in memory alone
};

/// The files of `bytes` in tokens: of each its tokens, and behind it Tokenizer::end_of_text().
/// `directory`: made when absent; it must be of this user (or of root) and nobody else may be able
/// to write to it; "": keep nothing. Cost: hashing the text, and where it was not found encoding it
/// with all cores that this process may use; beside the tokens at most some 100 MB are in memory.
[[nodiscard]] TokenizedText tokenize(const TextCorpus& bytes, const Tokenizer& tokenizer,
                                     const std::string& directory);

/// Files of tokens that a directory keeps: those used last.
inline constexpr std::size_t kTokenFilesKept = 16;

}  // namespace orrery
