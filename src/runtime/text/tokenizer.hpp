// runtime/text/tokenizer.hpp - text to tokens and back.
//
// Made once by main(), borrowed by all code that reads or writes text; immutable and safe to use
// from every thread. Invariant: decoding the tokens of a text gives that text, to the byte. Byte
// tokens are defined here; the tokens of a SentencePiece model in
// sentencepiece/piece_tokenizer.hpp, which alone needs that library.
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
  /// A name to show: "bytes", or the file of the model.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Identifies the tokens: the SHA-256 of the model's file in hexadecimal; "" for bytes.
  [[nodiscard]] virtual std::string identity() const = 0;
  /// Number of tokens, which are 0 to kinds() - 1.
  [[nodiscard]] virtual std::int64_t kinds() const = 0;
  /// The token that is put after each file of a corpus, if there is one.
  [[nodiscard]] virtual std::optional<std::int32_t> end_of_text() const = 0;

  /// Appends the tokens of any bytes to `to`. No token spans a line end, so a text that is cut
  /// after one has the same tokens in two calls; no token spans a multiple of kLineMax bytes within
  /// a line either. O(bytes log bytes of a line).
  virtual void encode(std::string_view text, std::vector<std::int32_t>& to) const = 0;
  static constexpr std::size_t kLineMax = std::size_t{1} << 16;  ///< bytes

  /// Returns the bytes of tokens; tokens that stand for no text, and numbers that are not tokens,
  /// give no bytes.
  [[nodiscard]] virtual std::string decode(std::span<const std::int32_t> tokens) const = 0;
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
  [[nodiscard]] std::string decode(std::span<const std::int32_t> tokens) const override;
};

}  // namespace orrery
