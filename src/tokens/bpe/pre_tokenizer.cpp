#include "tokens/bpe/pre_tokenizer.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "base/text/utf8.hpp"
#include "tokens/bpe/split_step.hpp"
#include "tokens/bpe/text_replacement.hpp"
#include "tokens/text/byte_alphabet.hpp"
#include "tokens/text/word_splitter.hpp"

namespace orrery {
namespace {

constexpr int kDepthMax = 16;

std::string_view keep(std::string text, TextPieces& pieces) {
  return pieces.made.emplace_back(std::move(text));
}

/// Puts a space before pieces that begin with none.
class SpaceStep final : public PreTokenizerStep {
 public:
  void apply(TextPieces& text) const override {
    for (TextPiece& piece : text.pieces) {
      if (!piece.text.starts_with(' ')) piece.text = keep(" " + std::string(piece.text), text);
    }
  }
};

/// Writes bytes as characters.
class AlphabetStep final : public PreTokenizerStep {
 public:
  void apply(TextPieces& text) const override {
    for (TextPiece& piece : text.pieces) piece.text = keep(bytes_as_characters(piece.text), text);
  }
};

enum class PrependScheme : std::uint8_t { kFirst, kNever, kAlways };

/// Writes spaces as a visible character, puts one in front, and divides before each.
class MetaspaceStep final : public PreTokenizerStep {
 public:
  explicit MetaspaceStep(const JsonPart& part)
      : replacement_(part.text("replacement")), divides_(part.flag_or_true("split")) {
    const std::string scheme = part.has("prepend_scheme") ? part.text("prepend_scheme") : "always";
    if (replacement_.empty()) part.part("replacement").refuse("expected a character");
    if (scheme == "first") {
      scheme_ = PrependScheme::kFirst;
    } else if (scheme == "never") {
      scheme_ = PrependScheme::kNever;
    } else if (scheme != "always") {
      part.part("prepend_scheme").refuse("expected \"first\", \"never\" or \"always\"");
    }
    if (part.has("add_prefix_space") && !part.flag("add_prefix_space")) {
      if (part.has("prepend_scheme") && scheme_ != PrependScheme::kNever) {
        part.part("add_prefix_space").refuse("does not match the prepend_scheme");
      }
      scheme_ = PrependScheme::kNever;
    }
  }

  void apply(TextPieces& text) const override {
    std::vector<TextPiece> parts;
    for (const TextPiece& piece : text.pieces) {
      const TextPiece shown{keep(with_replacement(piece), text), piece.opens};
      if (!divides_) {
        parts.push_back(shown);
        continue;
      }
      const auto stretches =
          stretches_of(shown.text.size(), find_literal(shown.text, replacement_));
      append_parts(shown, divide(stretches, SplitBehavior::kMergedWithNext), parts);
    }
    text.pieces = std::move(parts);
  }

 private:
  [[nodiscard]] std::string with_replacement(const TextPiece& piece) const {
    std::string text;
    const bool leads = piece.text.starts_with(' ') || piece.text.starts_with(replacement_);
    const bool wanted =
        scheme_ == PrependScheme::kAlways || (scheme_ == PrependScheme::kFirst && piece.opens);
    if (wanted && !leads) text = replacement_;
    for (const char c : piece.text) {
      if (c == ' ') {
        text += replacement_;
      } else {
        text += c;
      }
    }
    return text;
  }

  std::string replacement_;
  bool divides_;
  PrependScheme scheme_ = PrependScheme::kAlways;
};

}  // namespace

PreTokenizer::PreTokenizer(const JsonPart& file) {
  if (file.has("pre_tokenizer")) read(file.part("pre_tokenizer"), 0);
}

void PreTokenizer::read(const JsonPart& part, int depth) {
  if (depth > kDepthMax) part.refuse("too deep");
  const std::string type = part.type();
  if (type == "Sequence") {
    for (const JsonPart& item : part.items("pretokenizers")) read(item, depth + 1);
    return;
  }
  if (std::exchange(words_, VocabularyText::kCharacters) == VocabularyText::kBytes) {
    steps_.push_back(std::make_unique<AlphabetStep>());
  }
  if (type == "ByteLevel") {
    if (part.flag("add_prefix_space")) steps_.push_back(std::make_unique<SpaceStep>());
    if (part.flag_or_true("use_regex")) steps_.push_back(make_word_step(WordSplitter::gpt2()));
    words_ = VocabularyText::kBytes;
  } else if (type == "Split") {
    steps_.push_back(make_split_step(part));
  } else if (type == "Digits") {
    steps_.push_back(make_digit_step(part.flag("individual_digits") ? SplitBehavior::kIsolated
                                                                    : SplitBehavior::kContiguous));
  } else if (type == "Metaspace") {
    steps_.push_back(std::make_unique<MetaspaceStep>(part));
  } else {
    part.refuse(
        fmt::format("the pre-tokenizer \"{}\" is not supported, expected ByteLevel, Split, "
                    "Digits, Metaspace or Sequence",
                    printable(type, 60)));
  }
}

void PreTokenizer::apply(TextPieces& text) const {
  for (const auto& step : steps_) step->apply(text);
}

}  // namespace orrery
