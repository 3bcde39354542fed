#include "tokens/token_bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "tokens/text/byte_alphabet.hpp"
#include "tokens/text/word_splitter.hpp"

namespace orrery {
namespace {

using Bound = std::optional<std::size_t>;

constexpr std::size_t kCharacterMax = 4;

/// Returns of how many bytes a step of a normalizer makes one at most.
Bound bytes_for_one(const JsonPart& step) {
  const std::string type = step.type();
  // U+1D6CA, U+0308 and U+0301 are 8 bytes, and one character of 2 bytes as NFKC.
  if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") return 4;
  if (type == "Lowercase") return 3;  // the Kelvin sign
  if (type != "Replace") return 1;
  const std::size_t made = step.text("content").size();
  const JsonPart pattern = step.part("pattern");
  if (made == 0 || !pattern.has("String")) return std::nullopt;
  return (std::max(pattern.text("String").size(), made) + made - 1) / made;
}

Bound normalizer_bound(const JsonPart& part) {
  if (part.type() != "Sequence") return bytes_for_one(part);
  std::size_t product = 1;
  for (const JsonPart& item : part.items("normalizers")) {
    const Bound bound = normalizer_bound(item);
    if (!bound) return std::nullopt;
    product *= *bound;
  }
  return product;
}

bool removes(const JsonPart& pre_tokenizer) {
  const std::string type = pre_tokenizer.type();
  if (type == "Sequence") {
    return std::ranges::any_of(pre_tokenizer.items("pretokenizers"), removes);
  }
  if (type != "Split" || pre_tokenizer.text("behavior") != "Removed") return false;
  const JsonPart pattern = pre_tokenizer.part("pattern");
  if (!pre_tokenizer.flag("invert") || !pattern.has("Regex")) return true;
  const auto words = WordSplitter::of_pattern(pattern.text("Regex"));
  return !words || !words->covers();
}

/// Returns which bytes of words are in a token; nothing: that does not follow from the byte.
std::optional<std::array<bool, 256>> bytes_in_tokens(const JsonPart& model,
                                                     const MergeModel& vocabulary,
                                                     VocabularyText words) {
  std::array<bool, 256> all{};
  all.fill(true);
  const bool unknown = model.has("unk_token") && vocabulary.token(model.text("unk_token"));
  if (unknown && !model.flag("fuse_unk")) return all;
  const bool bytes = words == VocabularyText::kBytes;
  if (!bytes && !model.flag("byte_fallback")) return std::nullopt;
  std::array<bool, 256> known{};
  for (std::size_t byte = 0; byte < known.size(); ++byte) {
    const std::string name = bytes ? bytes_as_characters(std::string(1, static_cast<char>(byte)))
                                   : fmt::format("<0x{:02X}>", byte);
    known[byte] = vocabulary.token(name).has_value();
  }
  // A character of which one byte has no token has none at all.
  return bytes || known == all ? std::optional(known) : std::nullopt;
}

}  // namespace

std::optional<TokenBound> TokenBound::of(const JsonPart& file, const MergeModel& model,
                                         VocabularyText words, const AddedTokens& added) {
  if (file.has("pre_tokenizer") && removes(file.part("pre_tokenizer"))) return std::nullopt;
  const auto known = bytes_in_tokens(file.part("model"), model, words);
  if (!known) return std::nullopt;
  TokenBound bound;
  bound.has_token_ = *known;
  bound.longest_ = kCharacterMax;
  for (const std::string& text : model.texts()) {
    const auto bytes = words == VocabularyText::kBytes ? characters_as_bytes(text) : std::nullopt;
    bound.longest_ = std::max(bound.longest_, bytes ? bytes->size() : text.size());
  }
  for (const AddedToken& token : added.all()) {
    if (token.lstrip || token.rstrip) return std::nullopt;
    bound.longest_ = std::max({bound.longest_, token.content.size(), token.matched.size()});
  }
  if (!file.has("normalizer")) return bound;
  const Bound shrinks = normalizer_bound(file.part("normalizer"));
  // What the normalizer makes of a byte is not known.
  if (!shrinks || std::ranges::find(*known, false) != known->end()) return std::nullopt;
  bound.longest_ *= *shrinks;
  return bound;
}

std::size_t TokenBound::least(std::string_view text) const {
  std::size_t bytes = 0;
  for (const char c : text) bytes += has_token_[static_cast<unsigned char>(c)] ? 1 : 0;
  return (bytes + longest_ - 1) / longest_;
}

}  // namespace orrery
