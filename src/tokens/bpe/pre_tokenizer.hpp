// tokens/bpe/pre_tokenizer.hpp - the pre-tokenizer of a tokenizer.json: divides a text into words,
// which no token spans.
//
// Made while a tokenizer is loaded; movable, immutable, safe from every thread. Invariant: the
// words are the reference library's. Cost: O(n) for each step, or the regular expression's.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokens/bpe/json_part.hpp"
#include "tokens/bpe/merge_model.hpp"
#include "tokens/text/word_splitter.hpp"

namespace orrery {

/// A piece of a text on its way to words.
struct TextPiece {
  std::string_view text;
  bool opens = false;  ///< it begins where the whole text begins
};

/// Pieces in order, none empty; they lie in the text that was given or in `made`.
struct TextPieces {
  std::vector<TextPiece> pieces;
  std::deque<std::string> made;
};

class PreTokenizerStep {
 public:
  virtual ~PreTokenizerStep() = default;
  virtual void apply(TextPieces& text) const = 0;
  /// What divides into words, if the step does nothing else.
  [[nodiscard]] virtual const WordSplitter* splitter() const { return nullptr; }
};

class PreTokenizer {
 public:
  /// Reads "pre_tokenizer", which may be absent or null. Throws LoadFault.
  explicit PreTokenizer(const JsonPart& file);
  /// Divides each piece.
  void apply(TextPieces& text) const;
  /// The splitter whose words are those of `apply`, if there is one: it needs no memory for pieces.
  [[nodiscard]] const WordSplitter* splitter() const {
    return steps_.size() == 1 ? steps_.front()->splitter() : nullptr;
  }
  /// What the words are: with byte-level characters as the last step, their bytes.
  [[nodiscard]] VocabularyText words() const { return words_; }

 private:
  void read(const JsonPart& part, int depth);

  std::vector<std::unique_ptr<const PreTokenizerStep>> steps_;
  VocabularyText words_ = VocabularyText::kCharacters;
};

}  // namespace orrery
