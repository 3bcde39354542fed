// tokens/tokenizer.hpp - text to tokens and back.
//
// Made once by main(), borrowed by all code that reads or writes text; immutable and safe to use
// from every thread. Invariant: decoding the tokens of a text gives that text, to the byte, where
// `keeps_lines`. Byte tokens are defined here; those of a tokenizer.json in
// tokens/bpe_tokenizer.hpp; those of a SentencePiece model in sentencepiece/piece_tokenizer.hpp,
// which alone needs that library.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// How the texts of tokens are joined; see TokenJoiner.
struct TextRules {
  std::string between;           ///< between two tokens
  char32_t stripped = 0;         ///< the character that is taken from the front
  std::size_t stripped_max = 0;  ///< at most so often
};

/// What a token adds to a text.
struct TokenText {
  enum class Kind : std::uint8_t {
    kNone,      ///< nothing: it is left out, or no token
    kBytes,     ///< its bytes
    kFallback,  ///< a byte of a run, which becomes U+FFFD as often as it has bytes if it is no
                ///< UTF-8
  };

  Kind kind = Kind::kNone;
  std::string bytes;
};

/// Where a token stands, and whether special tokens are shown.
struct TokenUse {
  enum class Place : std::uint8_t { kFirst, kLater };
  enum class Special : std::uint8_t { kLeftOut, kShown };

  Place place = Place::kLater;
  Special special = Special::kLeftOut;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// A name to show: "bytes", or the file of the model.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Identifies the tokens: the SHA-256 of the model's file in hexadecimal; "" for bytes.
  [[nodiscard]] virtual std::string identity() const = 0;
  /// Number of tokens, which are 0 to kinds() - 1.
  [[nodiscard]] virtual std::int64_t kinds() const = 0;
  /// The token that is put after each file of a corpus, if there is one.
  [[nodiscard]] virtual std::optional<std::int32_t> end_of_text() const = 0;

  /// Whether decoding gives back every text, and no token spans a line end. The tokens of a
  /// tokenizer.json promise neither; a corpus is read only with tokens that do.
  [[nodiscard]] virtual bool keeps_lines() const { return true; }

  /// Appends the tokens of any bytes to `to`. Where `keeps_lines`, no token spans a line end, so a
  /// text that is cut after one has the same tokens in two calls, and no token spans a multiple of
  /// kLineMax bytes within a line either. O(bytes log bytes of a line).
  virtual void encode(std::string_view text, std::vector<std::int32_t>& to) const = 0;
  static constexpr std::size_t kLineMax = std::size_t{1} << 16;  ///< bytes

  /// Appends the tokens of a whole text with those that the model expects around it, such as "<s>";
  /// most tokenizers have none.
  virtual void encode_whole(std::string_view text, std::vector<std::int32_t>& to) const {
    encode(text, to);
  }

  /// Returns a number of tokens that UTF-8 text has at least, without encoding it; 0: nothing is
  /// known. O(bytes).
  [[nodiscard]] virtual std::size_t least_tokens(std::string_view) const { return 0; }

  /// Returns the bytes of tokens; tokens that stand for no text, and numbers that are not tokens,
  /// give no bytes.
  [[nodiscard]] virtual std::string decode(std::span<const std::int32_t> tokens) const = 0;

  /// What one token adds to a text that TokenJoiner joins by `text_rules`.
  [[nodiscard]] virtual TokenText text_of(std::int32_t token, TokenUse use) const;
  [[nodiscard]] virtual TextRules text_rules() const { return {}; }
  /// The token of a name such as "<|im_end|>" or "</s>"; nothing if it has none.
  [[nodiscard]] virtual std::optional<std::int32_t> named(std::string_view name) const;
};

/// A token is a byte, and files have no token between them.
class ByteTokenizer final : public Tokenizer {
 public:
  static constexpr std::int64_t kKinds = 256;

  [[nodiscard]] std::string name() const override { return "bytes"; }
  [[nodiscard]] std::string identity() const override { return ""; }
  [[nodiscard]] std::int64_t kinds() const override { return kKinds; }
  [[nodiscard]] std::optional<std::int32_t> end_of_text() const override { return std::nullopt; }
  void encode(std::string_view text, std::vector<std::int32_t>& to) const override;
  [[nodiscard]] std::size_t least_tokens(std::string_view text) const override {
    return text.size();
  }
  [[nodiscard]] std::string decode(std::span<const std::int32_t> tokens) const override;
};

}  // namespace orrery
