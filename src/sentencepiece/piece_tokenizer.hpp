// sentencepiece/piece_tokenizer.hpp - the tokens of a SentencePiece model with byte_fallback.
//
// Made by main() from the model's file; movable; immutable, safe to use from every thread. The
// pieces divide the unchanged text: the model's rules for normalising text, adding a space in front
// and removing spaces are ignored, so that the invariant of a Tokenizer holds for every text. Text
// that pieces cannot represent (bytes that are not UTF-8, and U+2581, which stands for a space in
// pieces) becomes byte tokens. Cost: the library's, a few megabytes of text per second and core.
#pragma once

#include <array>
#include <memory>

#include "base/error.hpp"
#include "tokens/tokenizer.hpp"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace orrery {

class PieceTokenizer final : public Tokenizer {
 public:
  /// Opens a model. The input error names the file and the cause: it cannot be read, is not a
  /// model, or has no token for some byte.
  [[nodiscard]] static Result<PieceTokenizer> open(const std::string& path);
  /// Makes a tokenizer of a model in memory; `name` stands for its file.
  [[nodiscard]] static Result<PieceTokenizer> of(std::string_view model, const std::string& name);
  PieceTokenizer(PieceTokenizer&& other) noexcept;
  ~PieceTokenizer() override;

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string identity() const override { return identity_; }
  [[nodiscard]] std::int64_t kinds() const override {
    return static_cast<std::int64_t>(texts_.size());
  }
  [[nodiscard]] std::optional<std::int32_t> end_of_text() const override { return end_; }
  /// O(kinds()).
  [[nodiscard]] std::size_t least_tokens(std::string_view text) const override;
  void encode(std::string_view text, std::vector<std::int32_t>& to) const override;
  [[nodiscard]] std::string decode(std::span<const std::int32_t> tokens) const override;

 private:
  using Processor = sentencepiece::SentencePieceProcessor;

  PieceTokenizer(std::string name, std::unique_ptr<Processor> processor);
  /// Learns what each token stands for. The error names what the model lacks.
  [[nodiscard]] Status learn();
  void encode_line(std::string_view line, std::vector<std::int32_t>& to) const;
  /// Encodes UTF-8 without U+2581.
  void encode_plain(std::string_view text, std::vector<std::int32_t>& to) const;
  void encode_bytes(std::string_view bytes, std::vector<std::int32_t>& to) const;

  std::string name_;
  std::string identity_;
  std::unique_ptr<Processor> processor_;
  std::vector<std::string> texts_;         ///< text by token
  std::array<std::int32_t, 256> bytes_{};  ///< token by byte
  std::optional<std::int32_t> end_;
};

/// Returns the library's message without the position in its source.
[[nodiscard]] std::string piece_library_text(std::string_view status);

}  // namespace orrery
