// tests/inference/model_scores.cpp - the scores of a model behind each of some tokens, for
// compare.py.
//
//   model_scores PATH TOKEN...      floats to standard output, those of the vocabulary for each
//   token model_scores --encode PATH      the tokens of each line of standard input, a line each
//   model_scores --chat PATH TOKENS greedy tokens behind a chat of one user's message on standard
//                                   input
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "inference/engine/inference_engine.hpp"
#include "inference/engine/model_files.hpp"
#include "inference/engine/paged_decoder.hpp"
#include "inference/request/chat_prompt.hpp"

namespace orrery {
namespace {

using Tokens = std::vector<std::int32_t>;

int complain(std::string_view text) {
  fmt::print(stderr, "model_scores: {}\n", text);
  return 1;
}

std::int32_t number_of(std::string_view text) {
  std::int32_t number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

int print_scores(const ServedModel& model, const Tokens& tokens) {
  constexpr std::size_t kBlock = KvBlockPool::kTokens;
  std::vector<KvBlockId> blocks;
  for (std::size_t i = 0; i * kBlock < tokens.size(); ++i) {
    blocks.push_back(static_cast<KvBlockId>(i));
  }
  PagedDecoder decoder(model.model,
                       {.blocks = blocks.size(), .rows = static_cast<std::int64_t>(tokens.size())});
  std::vector<DecoderRow> rows;
  rows.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    rows.push_back({.token = tokens[i],
                    .position = static_cast<std::int64_t>(i),
                    .blocks = blocks,
                    .scores = DecoderRow::Scores::kWanted});
  }
  const std::span<const float> scores = decoder.compute(rows);
  return std::fwrite(scores.data(), sizeof(float), scores.size(), stdout) == scores.size() ? 0 : 1;
}

int print_encoded(const ServedModel& model) {
  for (std::string line; std::getline(std::cin, line);) {
    Tokens tokens;
    model.tokenizer->encode(line, tokens);
    for (const std::int32_t token : tokens) fmt::print("{} ", token);
    fmt::print("\n");
  }
  return 0;
}

int print_chat(const ServedModel& model, std::int64_t tokens) {
  if (!model.chat) return complain("the model has no chat template");
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  CompletionRequest request{.kind = CompletionKind::kChat};
  request.prompt.messages.push_back({{"role", "user"}, {"content", text}});
  const ApiResult<std::string> prompt = chat_prompt(*model.chat, request, 0);
  if (!prompt) return complain(prompt.error().message);
  Tokens written;
  model.tokenizer->encode(*prompt, written);
  const EngineLimits limits{.slots = 1};
  InferenceEngine engine(model.model, *model.tokenizer, limits);
  engine.submit({.prompt = written,
                 .sampling = {.tokens = tokens, .temperature = 0},
                 .stops = {},
                 .ends = model.ends});
  while (!engine.idle()) {
    for (const GenerationDelta& delta : engine.step().deltas) fmt::print("{} ", delta.token);
  }
  fmt::print("\n");
  return 0;
}

int run(const std::vector<std::string>& arguments) {
  const bool flagged = !arguments.empty() && arguments[0].starts_with("--");
  if (arguments.size() < 2) return complain("expected PATH TOKEN... or --encode PATH");
  const Result<ServedModel> model =
      load_served_model({.checkpoint = flagged ? arguments[1] : arguments[0]});
  if (!model) return complain(model.error().text());
  if (arguments[0] == "--encode") return print_encoded(*model);
  if (arguments[0] == "--chat" && arguments.size() == 3) {
    return print_chat(*model, number_of(arguments[2]));
  }
  Tokens tokens;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    tokens.push_back(number_of(arguments[i]));
    if (tokens.back() < 0 || tokens.back() >= model->model.config().vocab) {
      return complain(fmt::format("{} is no token", arguments[i]));
    }
  }
  if (tokens.size() > static_cast<std::size_t>(model->model.config().sequence)) {
    return complain("more tokens than the context has");
  }
  return print_scores(*model, tokens);
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) { return orrery::run({argv + 1, argv + argc}); }
