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

/// Whether each character of a word is in one of its tokens.
bool covers(const JsonPart& model, const MergeModel& vocabulary, VocabularyText words) {
  const bool unknown = model.has("unk_token") && vocabulary.token(model.text("unk_token"));
  if (unknown && !model.flag("fuse_unk")) return true;
  const bool bytes = words == VocabularyText::kBytes;
  if (!bytes && !model.flag("byte_fallback")) return false;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string name = bytes ? bytes_as_characters(std::string(1, static_cast<char>(byte)))
                                   : fmt::format("<0x{:02X}>", byte);
    if (!vocabulary.token(name)) return false;
  }
  return true;
}

}  // namespace

std::optional<std::size_t> bytes_of_a_token(const JsonPart& file, const MergeModel& model,
                                            VocabularyText words, const AddedTokens& added) {
  if (file.has("pre_tokenizer") && removes(file.part("pre_tokenizer"))) return std::nullopt;
  if (!covers(file.part("model"), model, words)) return std::nullopt;
  std::size_t longest = kCharacterMax;
  for (const std::string& text : model.texts()) {
    const auto bytes = words == VocabularyText::kBytes ? characters_as_bytes(text) : std::nullopt;
    longest = std::max(longest, bytes ? bytes->size() : text.size());
  }
  for (const AddedToken& token : added.all()) {
    if (token.lstrip || token.rstrip) return std::nullopt;
    longest = std::max({longest, token.content.size(), token.matched.size()});
  }
  if (!file.has("normalizer")) return longest;
  const Bound shrinks = normalizer_bound(file.part("normalizer"));
  return shrinks ? Bound(*shrinks * longest) : std::nullopt;
}

}  // namespace orrery
