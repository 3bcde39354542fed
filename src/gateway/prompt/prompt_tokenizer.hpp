// gateway/prompt/prompt_tokenizer.hpp - the tokens of prompts, as the engines of a model count
// them.
//
// Made by main(), shared by a gateway's services; immutable. Cost: that of the tokenizer, on the
// gateway's loop; so longer prompts than kJsonMax are not read.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "tokens/model_chat.hpp"
#include "tokens/tokenizer.hpp"

namespace orrery {

class PromptTokenizer {
 public:
  /// Bytes of the longest JSON that is read: about 120,000 tokens, which take 10 ms, without any
  /// space 0.2 s.
  static constexpr std::size_t kJsonMax = std::size_t{1} << 19;

  /// Opens a directory with the tokenizer.json of a model, and its chat template if it has one;
  /// "bytes": each byte is a token. Errors: there is no tokenizer, or a file cannot be read.
  [[nodiscard]] static Result<std::shared_ptr<const PromptTokenizer>> open(const std::string& from);
  PromptTokenizer(std::unique_ptr<const Tokenizer> tokenizer, std::optional<ModelChat> chat)
      : tokenizer_(std::move(tokenizer)), chat_(std::move(chat)) {}

  /// Returns the tokens of the JSON of "prompt" (a text, a list with one, or a list of tokens) or
  /// of "messages" without tools, which the model's template writes, else contents a line. `now` is
  /// seconds since 1970. Nothing: it is none of these, or longer than kJsonMax.
  [[nodiscard]] std::optional<std::vector<std::int32_t>> tokens_of(std::string_view json,
                                                                   std::int64_t now) const;

 private:
  using TokenList = std::vector<std::int32_t>;

  [[nodiscard]] std::optional<TokenList> chat_tokens(nlohmann::ordered_json messages,
                                                     std::int64_t now) const;

  std::unique_ptr<const Tokenizer> tokenizer_;
  std::optional<ModelChat> chat_;
};

}  // namespace orrery
