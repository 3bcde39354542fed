// tokens/bpe/token_texts.hpp - the decoder of a tokenizer.json: the text that each token adds.
//
// Made while a tokenizer is loaded; immutable, safe from every thread. Invariant: joined by
// TokenJoiner, the texts are what the reference library decodes. Decoders whose result for a token
// depends on more than its place are refused. Cost: one copy of a token's text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tokens/bpe/added_tokens.hpp"
#include "tokens/bpe/json_part.hpp"
#include "tokens/bpe/merge_model.hpp"
#include "tokens/bpe/text_replacement.hpp"
#include "tokens/tokenizer.hpp"

namespace orrery {

class TokenTexts {
 public:
  /// Reads "decoder", which may be absent or null. Throws LoadFault.
  TokenTexts(const JsonPart& file, const MergeModel& model, const AddedTokens& added);

  [[nodiscard]] TokenText text_of(std::int32_t token, TokenUse use) const;
  [[nodiscard]] const TextRules& rules() const { return rules_; }
  /// One more than the largest token.
  [[nodiscard]] std::size_t size() const { return texts_.size(); }

 private:
  struct Strip {
    std::string content;
    std::size_t start = 0;
    std::size_t stop = 0;
  };
  struct Metaspace {
    std::string replacement;
    bool strips_first = false;
  };
  using Step = std::variant<TextReplacement, Strip, Metaspace>;
  struct Entry {
    std::string raw;  ///< as the vocabulary has it
    TokenText text;   ///< what it adds behind other tokens
    bool known = false;
    bool special = false;
  };

  void read(const JsonPart& part, int depth);
  void read_strip(const JsonPart& part);
  void refuse_behind_bytes(const JsonPart& part) const;
  void add(std::int32_t token, std::string raw);
  /// Applies the steps to a token's text.
  [[nodiscard]] TokenText made(const std::string& raw, TokenUse::Place place) const;
  [[nodiscard]] static std::string stripped(std::string_view text, const Strip& strip);

  std::vector<Step> steps_;
  bool byte_level_ = false;
  bool byte_runs_ = false;
  bool fused_ = false;
  bool first_differs_ = false;
  TextRules rules_;
  std::vector<Entry> texts_;
};

}  // namespace orrery
