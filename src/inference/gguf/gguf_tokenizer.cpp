#include "inference/gguf/gguf_tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/text/utf8.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kTypes = "tokenizer.ggml.token_type";
constexpr std::string_view kScores = "tokenizer.ggml.scores";
constexpr std::string_view kPattern = "tokenizer.ggml.pre";
constexpr std::string_view kSpace = "\xe2\x96\x81";  // U+2581, a space in a SentencePiece token
/// The regular expression of the words of Llama 3, as its tokenizer.json has it.
constexpr std::string_view kLlama3Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::size_t kTokensMax = std::size_t{1} << 20;
constexpr std::size_t kPieceMax = 1'024;  ///< bytes of a token that merges make

constexpr int kKindMax = 6;

/// Types of tokens as llama.cpp numbers them.
enum TokenKind : int { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kByte = 6 };

/// The vocabulary of a file. It moves but is not copied: `ids` borrows the texts.
struct GgufVocabulary {
  GgufVocabulary() = default;
  GgufVocabulary(GgufVocabulary&&) = default;
  GgufVocabulary& operator=(GgufVocabulary&&) = default;

  std::vector<std::string> texts;
  std::vector<int> kinds;  ///< a TokenKind each
  std::unordered_map<std::string_view, std::size_t> ids;
};

Result<GgufVocabulary> read_vocabulary(GgufFields& fields) {
  GgufVocabulary vocabulary;
  const std::vector<std::string_view> texts = fields.texts(kTokens);
  const std::vector<double> kinds = fields.numbers(kTypes);
  if (texts.empty() || texts.size() > kTokensMax) {
    fields.refuse(kTokens, fmt::format("1 to {} texts", kTokensMax));
  }
  if (!kinds.empty() && kinds.size() != texts.size()) {
    fields.refuse(kTypes, fmt::format("{} numbers, one for each token", texts.size()));
  }
  if (!std::ranges::all_of(kinds, [](double kind) { return kind >= 0 && kind <= kKindMax; })) {
    fields.refuse(kTypes, fmt::format("numbers from 0 to {}", kKindMax));
  }
  if (!fields.status()) return forward_error(fields.status());
  vocabulary.texts.reserve(texts.size());
  for (const std::string_view text : texts) {
    const std::size_t id = vocabulary.texts.size();
    vocabulary.kinds.push_back(kinds.empty() ? kNormal : static_cast<int>(kinds[id]));
    vocabulary.texts.emplace_back(text);
    if (first_invalid_utf8(text) == std::string_view::npos &&
        vocabulary.ids.emplace(vocabulary.texts.back(), id).second) {
      continue;
    }
    return input_error({fields.file().file()},
                       fmt::format("{}: token {} is \"{}\", expected UTF-8 that no other token has",
                                   kTokens, id, printable(text, 60)));
  }
  return vocabulary;
}

/// Returns whether a number of the file is one of its tokens.
std::optional<std::size_t> token_at(GgufFields& fields, std::string_view key,
                                    const GgufVocabulary& vocabulary) {
  if (!fields.has(key)) return std::nullopt;
  const auto last = static_cast<double>(vocabulary.texts.size() - 1);
  const std::int64_t token = fields.whole(key, {.low = 0, .high = last}, std::nullopt);
  if (!fields.status()) return std::nullopt;
  return static_cast<std::size_t>(token);
}

Json added_tokens(const GgufVocabulary& vocabulary) {
  Json added = Json::array();
  for (std::size_t id = 0; id < vocabulary.texts.size(); ++id) {
    const int kind = vocabulary.kinds[id];
    if (kind != kControl && kind != kUserDefined && kind != kUnknown) continue;
    if (vocabulary.texts[id].empty()) continue;
    added.push_back({{"id", id},
                     {"content", vocabulary.texts[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", kind != kUserDefined}});
  }
  return added;
}

Json vocabulary_json(const GgufVocabulary& vocabulary) {
  Json::object_t ids;
  ids.reserve(vocabulary.texts.size());
  for (std::size_t id = 0; id < vocabulary.texts.size(); ++id) {
    // Texts are unique, so the object needs no look-up.
    ids.emplace_back(vocabulary.texts[id], id);
  }
  return ids;
}

Json begin_with(std::size_t token, const GgufVocabulary& vocabulary) {
  const std::string& text = vocabulary.texts[token];
  return {{"type", "TemplateProcessing"},
          {"single",
           {{{"SpecialToken", {{"id", text}, {"type_id", 0}}}},
            {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
          {"special_tokens", {{text, {{"id", text}, {"ids", {token}}, {"tokens", {text}}}}}}};
}

/// How a named pattern divides a text into words.
struct WordPattern {
  std::string_view name;
  enum class Kind : std::uint8_t { kGpt2, kDigitsGpt2, kLlama3 } kind;
};
constexpr std::array kPatterns{WordPattern{"gpt-2", WordPattern::Kind::kGpt2},
                               WordPattern{"gpt2", WordPattern::Kind::kGpt2},
                               WordPattern{"smollm", WordPattern::Kind::kDigitsGpt2},
                               WordPattern{"starcoder", WordPattern::Kind::kDigitsGpt2},
                               WordPattern{"llama-bpe", WordPattern::Kind::kLlama3},
                               WordPattern{"llama3", WordPattern::Kind::kLlama3},
                               WordPattern{"llama-v3", WordPattern::Kind::kLlama3}};

/// Whether a step finds GPT-2's words, or takes those that others found.
enum class Words : std::uint8_t { kFound, kGiven };

Json byte_level(Words words) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", words == Words::kFound}};
}

Json pre_tokenizer(WordPattern::Kind kind) {
  Json steps = Json::array();
  switch (kind) {
    case WordPattern::Kind::kGpt2:
      return byte_level(Words::kFound);
    case WordPattern::Kind::kDigitsGpt2:
      steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
      steps.push_back(byte_level(Words::kFound));
      break;
    case WordPattern::Kind::kLlama3:
      steps.push_back({{"type", "Split"},
                       {"pattern", {{"Regex", kLlama3Words}}},
                       {"behavior", "Isolated"},
                       {"invert", false}});
      steps.push_back(byte_level(Words::kGiven));
      break;
  }
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}

std::string known_patterns() {
  std::string names;
  for (const WordPattern& each : kPatterns) {
    names += (names.empty() ? "" : ", ") + std::string(each.name);
  }
  return names;
}

Result<Json> merged_tokens(GgufFields& fields, const GgufVocabulary& vocabulary) {
  const std::string name = fields.text(kPattern, std::nullopt);
  const auto pattern = std::ranges::find(kPatterns, name, &WordPattern::name);
  if (pattern == kPatterns.end()) fields.refuse(kPattern, "one of " + known_patterns());
  const std::vector<std::string_view> merges = fields.texts("tokenizer.ggml.merges");
  for (const std::string_view merge : merges) {
    if (first_invalid_utf8(merge) == std::string_view::npos) continue;
    fields.refuse("tokenizer.ggml.merges", "texts of UTF-8");
  }
  if (!fields.status()) return forward_error(fields.status());
  return Json{{"pre_tokenizer", pre_tokenizer(pattern->kind)},
              {"decoder", byte_level(Words::kFound)},
              {"model",
               {{"type", "BPE"},
                {"ignore_merges", pattern->kind == WordPattern::Kind::kLlama3},
                {"vocab", vocabulary_json(vocabulary)},
                {"merges", merges}}}};
}

/// Two tokens that make a third.
struct ScoredMerge {
  double score = 0;  ///< of the token that they make
  std::string_view left;
  std::string_view right;
};

/// Returns all pairs of tokens that make a token, in the order in which they are merged; of equal
/// scores the longer left side goes first, as Hugging Face's converter has it.
std::vector<ScoredMerge> merges_of(const GgufVocabulary& vocabulary,
                                   const std::vector<double>& scores) {
  std::vector<ScoredMerge> merges;
  const auto is_part = [&](std::string_view text) {
    const auto found = vocabulary.ids.find(text);
    return found != vocabulary.ids.end() && vocabulary.kinds[found->second] == kNormal;
  };
  for (std::size_t id = 0; id < vocabulary.texts.size(); ++id) {
    if (vocabulary.kinds[id] != kNormal) continue;
    const std::string_view text = vocabulary.texts[id];
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      const bool inside = (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80;
      if (inside || !is_part(text.substr(0, cut)) || !is_part(text.substr(cut))) continue;
      merges.push_back({scores[id], text.substr(0, cut), text.substr(cut)});
    }
  }
  std::ranges::stable_sort(merges, std::ranges::greater(), [](const ScoredMerge& merge) {
    return std::tuple(merge.score, merge.left.size(), merge.right.size());
  });
  return merges;
}

/// Whether a text gets a space in front.
enum class FirstSpace : std::uint8_t { kAdded, kNone };

/// Writes spaces as a visible character.
Json space_normalizer(FirstSpace first) {
  Json steps = Json::array();
  if (first == FirstSpace::kAdded) steps.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
  steps.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpace}});
  return {{"type", "Sequence"}, {"normalizers", steps}};
}

Json space_decoder(FirstSpace first) {
  Json steps = Json::array();
  steps.push_back({{"type", "Replace"}, {"pattern", {{"String", kSpace}}}, {"content", " "}});
  steps.push_back({{"type", "ByteFallback"}});
  steps.push_back({{"type", "Fuse"}});
  if (first == FirstSpace::kAdded) {
    steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  return {{"type", "Sequence"}, {"decoders", steps}};
}

Result<Json> scored_tokens(GgufFields& fields, const GgufVocabulary& vocabulary) {
  const std::vector<double> scores = fields.numbers(kScores);
  const bool good = scores.size() == vocabulary.texts.size() &&
                    std::ranges::all_of(scores, [](double score) { return score == score; });
  if (!good) fields.refuse(kScores, "a number for each token");
  const auto is_long = [](const std::string& text) { return text.size() > kPieceMax; };
  if (std::ranges::any_of(vocabulary.texts, is_long)) {
    fields.refuse(kTokens, fmt::format("tokens of at most {} bytes", kPieceMax));
  }
  const bool prefixed = fields.flag("tokenizer.ggml.add_space_prefix").value_or(true);
  const FirstSpace first = prefixed ? FirstSpace::kAdded : FirstSpace::kNone;
  const auto unknown = token_at(fields, "tokenizer.ggml.unknown_token_id", vocabulary);
  if (!fields.status()) return forward_error(fields.status());
  Json merges = Json::array();
  for (const ScoredMerge& merge : merges_of(vocabulary, scores)) {
    merges.push_back({merge.left, merge.right});
  }
  Json model{{"type", "BPE"},
             {"byte_fallback", true},
             {"fuse_unk", true},
             {"vocab", vocabulary_json(vocabulary)},
             {"merges", std::move(merges)}};
  if (unknown) model["unk_token"] = vocabulary.texts[*unknown];
  return Json{{"normalizer", space_normalizer(first)},
              {"decoder", space_decoder(first)},
              {"model", std::move(model)}};
}

Result<Json> tokenizer_of(GgufFields& fields, const GgufVocabulary& vocabulary) {
  const std::string_view key = "tokenizer.ggml.model";
  const std::string model = fields.text(key, std::nullopt);
  if (model != "gpt2" && model != "llama") fields.refuse(key, "\"gpt2\" or \"llama\"");
  if (!fields.status()) return forward_error(fields.status());
  Result<Json> json =
      model == "gpt2" ? merged_tokens(fields, vocabulary) : scored_tokens(fields, vocabulary);
  if (!json) return json;
  (*json)["version"] = "1.0";
  (*json)["added_tokens"] = added_tokens(vocabulary);
  // Without the key, Llama's tokens begin a text and others do not.
  const bool begins = model == "llama" || fields.text(kPattern, "").starts_with("llama");
  const auto begin = token_at(fields, "tokenizer.ggml.bos_token_id", vocabulary);
  if (begin && fields.flag("tokenizer.ggml.add_bos_token").value_or(begins)) {
    (*json)["post_processor"] = begin_with(*begin, vocabulary);
  }
  if (!fields.status()) return forward_error(fields.status());
  return json;
}

/// Names of tokens that end an answer beside the one that ends a text.
constexpr std::array<std::string_view, 2> kTurnEnds{"<|eot_id|>", "<|im_end|>"};

std::vector<std::int32_t> ends_of(GgufFields& fields, const GgufVocabulary& vocabulary) {
  std::vector<std::int32_t> ends;
  const auto add = [&](std::size_t token) {
    const auto end = static_cast<std::int32_t>(token);
    if (std::ranges::find(ends, end) == ends.end()) ends.push_back(end);
  };
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                          "tokenizer.ggml.eom_token_id"}) {
    if (const auto token = token_at(fields, key, vocabulary)) add(*token);
  }
  for (const std::string_view name : kTurnEnds) {
    const auto found = vocabulary.ids.find(name);
    if (found == vocabulary.ids.end()) continue;
    if (vocabulary.kinds[found->second] == kControl) add(found->second);
  }
  return ends;
}

}  // namespace

Result<GgufText> read_gguf_text(GgufFields& fields) {
  Result<GgufVocabulary> vocabulary = read_vocabulary(fields);
  if (!vocabulary) return forward_error(vocabulary);
  Result<Json> json = tokenizer_of(fields, *vocabulary);
  if (!json) return forward_error(json);
  Result<BpeTokenizer> tokenizer = BpeTokenizer::of(json->dump(), fields.file().file());
  if (!tokenizer) return forward_error(tokenizer);
  GgufText text{.tokenizer = *std::move(tokenizer),
                .ends = ends_of(fields, *vocabulary),
                .chat = std::nullopt};
  const std::string written = fields.text("tokenizer.chat_template", "");
  const auto begin = token_at(fields, "tokenizer.ggml.bos_token_id", *vocabulary);
  const auto end = token_at(fields, "tokenizer.ggml.eos_token_id", *vocabulary);
  if (!fields.status()) return forward_error(fields.status());
  if (written.empty()) return text;
  Result<ChatTemplate> chat =
      ChatTemplate::of(written, fields.file().file() + ": tokenizer.chat_template");
  if (!chat) return forward_error(chat);
  text.chat = ModelChat{.chat_template = *std::move(chat),
                        .bos = begin ? vocabulary->texts[*begin] : "",
                        .eos = end ? vocabulary->texts[*end] : ""};
  return text;
}

}  // namespace orrery
