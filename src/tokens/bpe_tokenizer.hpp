// tokens/bpe_tokenizer.hpp - the tokens of a tokenizer.json (Hugging Face tokenizers, version 1.0)
// whose model is BPE.
//
// Made by main() from the file; movable; safe to use from every thread, immutable but for a cache
// of words that changes no result. Invariant: the tokens of UTF-8 are those of the reference
// library, and so is the text of tokens. A file with a component that is not known here is refused
// with the component's name. Cost: the classes in tokens/bpe; with words that are known 0.02 to
// 0.06 us a token, by family, and 0.05 to 0.11 us in a first text (measured on one core beside
// other work).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "tokens/tokenizer.hpp"

namespace orrery {

class BpeTokenizer final : public Tokenizer {
 public:
  /// Reads a file. The input error names the file, the place in it and what was expected.
  [[nodiscard]] static Result<BpeTokenizer> open(const std::string& path);
  /// Reads a tokenizer.json in memory; `name` stands for its file.
  [[nodiscard]] static Result<BpeTokenizer> of(std::string_view json, const std::string& name);
  BpeTokenizer(BpeTokenizer&& other) noexcept;
  BpeTokenizer& operator=(BpeTokenizer&& other) noexcept;
  ~BpeTokenizer() override;

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string identity() const override { return identity_; }
  [[nodiscard]] std::int64_t kinds() const override;
  /// The first of "<|endoftext|>", "</s>", "<|end_of_text|>" and "<eos>" that is a special token.
  [[nodiscard]] std::optional<std::int32_t> end_of_text() const override;
  [[nodiscard]] bool keeps_lines() const override { return false; }
  [[nodiscard]] std::size_t least_tokens(std::string_view text) const override;
  /// Appends the tokens of a text, special tokens in it found, none added.
  void encode(std::string_view text, std::vector<std::int32_t>& to) const override;
  void encode_whole(std::string_view text, std::vector<std::int32_t>& to) const override;
  /// Returns the text of tokens without special tokens.
  [[nodiscard]] std::string decode(std::span<const std::int32_t> tokens) const override;
  [[nodiscard]] TokenText text_of(std::int32_t token, TokenUse use) const override;
  [[nodiscard]] TextRules text_rules() const override;
  /// The token of a text as the vocabulary has it.
  [[nodiscard]] std::optional<std::int32_t> named(std::string_view name) const override;

  struct Encoding {
    /// Whether the tokens that the file puts around a text are added, such as "<s>". A chat
    /// template writes them itself.
    enum class Around : std::uint8_t { kNone, kAdded };
    /// Whether special tokens in the text are found, or are text like any other.
    enum class Special : std::uint8_t { kFound, kText };

    Around around = Around::kNone;
    Special special = Special::kFound;
  };
  void encode_with(std::string_view text, Encoding encoding, std::vector<std::int32_t>& to) const;
  /// Decodes with special tokens shown or left out.
  [[nodiscard]] std::string decode_with(std::span<const std::int32_t> tokens,
                                        TokenUse::Special special) const;

 private:
  struct Parts;

  BpeTokenizer(std::string name, std::unique_ptr<const Parts> parts);

  std::string name_;
  std::string identity_;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace orrery
