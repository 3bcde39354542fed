#include "inference/request/completion_reading.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "base/text/utf8.hpp"
#include "inference/request/chat_prompt.hpp"

namespace orrery {
namespace {

using TokenList = std::vector<std::int32_t>;

constexpr std::int64_t kTextTokensDefault = 16;  // OpenAI's default of max_tokens for completions

std::string prompt_param(CompletionKind kind) {
  return kind == CompletionKind::kText ? "prompt" : "messages";
}

/// `size`: "1200 tokens".
tl::unexpected<ApiError> too_long(const ServedModel& model, CompletionKind kind,
                                  const std::string& size) {
  const std::string param = prompt_param(kind);
  return tl::unexpected(ApiError{
      .message = fmt::format("{}: the context of this model is {} tokens; the prompt has {}, which "
                             "leaves none to generate",
                             param, model.model.config().sequence, size),
      .param = param,
      .code = "context_length_exceeded"});
}

// A template writes the tokens around a text itself.
ApiResult<TokenList> tokens_of(const ReadingTerms& terms, const CompletionRequest& request) {
  const ServedModel& model = *terms.model;
  const bool templated = request.kind == CompletionKind::kChat && model.chat;
  TokenList tokens = request.prompt.tokens;
  if (!templated && !tokens.empty()) return tokens;
  ApiResult<std::string> text = request.prompt.text;
  if (templated) text = chat_prompt(*model.chat, request, request.so_far.created);
  if (!text) return tl::unexpected(text.error());
  const auto context = static_cast<std::size_t>(model.model.config().sequence);
  const std::size_t least = text->size() < context ? 0 : model.tokenizer->least_tokens(*text);
  if (least >= context) return too_long(model, request.kind, fmt::format("at least {}", least));
  if (templated) {
    model.tokenizer->encode(*text, tokens);
  } else {
    model.tokenizer->encode_whole(*text, tokens);
  }
  return tokens;
}

ApiResult<TokenList> prompt_of(const ReadingTerms& terms, const CompletionRequest& request) {
  const TransformerConfig& config = terms.model->model.config();
  ApiResult<TokenList> tokens = tokens_of(terms, request);
  if (!tokens) return tokens;
  const std::string param = prompt_param(request.kind);
  if (tokens->empty()) {
    return tl::unexpected(ApiError{.message = param + ": expected at least one token",
                                   .param = param,
                                   .code = "empty_prompt"});
  }
  if (tokens->size() >= static_cast<std::size_t>(config.sequence)) {
    return too_long(*terms.model, request.kind, fmt::format("{}", tokens->size()));
  }
  const auto beyond =
      std::ranges::find_if(*tokens, [&](std::int32_t token) { return token >= config.vocab; });
  if (beyond == tokens->end()) return tokens;
  return tl::unexpected(ApiError{
      .message = fmt::format("{}: token {}, expected 0 to {}", param, *beyond, config.vocab - 1),
      .param = param,
      .code = "invalid_value"});
}

std::optional<ApiError> wrong_model(const std::string& asked, const std::string& served) {
  if (asked.empty()) {
    return ApiError{.message = "model: expected the name of a model",
                    .param = "model",
                    .code = "missing_required_parameter"};
  }
  if (asked == served) return std::nullopt;
  return ApiError{.status = 404,
                  .message = fmt::format("model: {} is not served here, only {}",
                                         printable(asked, 100), served),
                  .param = "model",
                  .code = "model_not_found"};
}

}  // namespace

ApiResult<ReadCompletion> read_completion(const ReadingTerms& terms, CompletionKind kind,
                                          std::string_view body) {
  const ChatForm form = terms.model->chat ? ChatForm::kTemplate : ChatForm::kLines;
  ApiResult<CompletionRequest> request = parse_completion(kind, form, body);
  if (!request) return tl::unexpected(request.error());
  if (!request->continues()) request->so_far.created = terms.now;
  if (const auto wrong = wrong_model(request->model, terms.name)) return tl::unexpected(*wrong);
  ApiResult<TokenList> prompt = prompt_of(terms, *request);
  if (!prompt) return tl::unexpected(prompt.error());
  request->prompt = {};
  GenerationRequest generation{.prompt = std::move(*prompt),
                               .sampling = request->sampling,
                               .stops = std::exchange(request->stops, {}),
                               .ends = {}};
  if (!request->ignore_eos) generation.ends = terms.model->ends;
  const std::int64_t tokens_default =
      kind == CompletionKind::kText ? kTextTokensDefault : terms.model->model.config().sequence;
  generation.sampling.tokens = request->tokens_max.value_or(tokens_default);
  if (request->seed) generation.sampling.seed = *request->seed;
  return ReadCompletion{std::move(*request), std::move(generation)};
}

CompletionReader::CompletionReader(Inbox& inbox) : inbox_(inbox) {}

void CompletionReader::read(ReadingTerms terms, CompletionKind kind, std::string_view body,
                            Done done) {
  thread_.run([&inbox = inbox_, alive = std::weak_ptr(alive_), terms = std::move(terms), kind, body,
               done = std::move(done)] {
    auto read = std::make_shared<ApiResult<ReadCompletion>>(read_completion(terms, kind, body));
    inbox.post([alive, done, read] {
      if (!alive.expired()) done(std::move(*read));
    });
  });
}

}  // namespace orrery
