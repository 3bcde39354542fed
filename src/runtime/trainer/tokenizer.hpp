// runtime/trainer/tokenizer.hpp - text to tokens and back.
//
// Made once by main(), borrowed by all that reads or writes text; immutable and safe to use from
// every thread. Invariant: the text of the tokens of a text is that text, to the byte. Tokens of
// bytes stand here; those of a SentencePiece model in sentencepiece/piece_tokenizer.hpp, which
// alone needs the library.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// For people: "bytes", or the file of the model.
  [[nodiscard]] virtual std::string name() const = 0;
  /// What decides the tokens: the SHA-256 of the model's file in hexadecimal; "" for bytes.
  [[nodiscard]] virtual std::string identity() const = 0;
  /// Tokens are 0 to kinds() - 1.
  [[nodiscard]] virtual std::int64_t kinds() const = 0;
  /// The token that stands after each file of a corpus, where there is one.
  [[nodiscard]] virtual std::optional<std::int32_t> end_of_text() const = 0;

  /// Adds the tokens of any bytes to `to`. No token spans a line end, so a text that is cut behind
  /// one has the same tokens in two calls; nor does any span a place a multiple of kLineMax into
  /// a line. O(bytes log bytes of a line).
  virtual void encode(std::string_view text, std::vector<std::int32_t>& to) const = 0;
  static constexpr std::size_t kLineMax = std::size_t{1} << 16;  ///< bytes

  /// The bytes of tokens; of those that stand for no text, and of numbers that are no token, none.
  [[nodiscard]] virtual std::string decode(std::span<const std::int32_t> tokens) const = 0;
};

/// A token is a byte, and nothing stands between files.
class ByteTokenizer final : public Tokenizer {
 public:
  static constexpr std::int64_t kKinds = 256;

  [[nodiscard]] std::string name() const override { return "bytes"; }
  [[nodiscard]] std::string identity() const override { return ""; }
  [[nodiscard]] std::int64_t kinds() const override { return kKinds; }
  [[nodiscard]] std::optional<std::int32_t> end_of_text() const override { return std::nullopt; }
  void encode(std::string_view text, std::vector<std::int32_t>& to) const override;
  [[nodiscard]] std::string decode(std::span<const std::int32_t> tokens) const override;
};

}  // namespace orrery
