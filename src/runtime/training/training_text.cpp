#include "runtime/training/training_text.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text/utf8.hpp"
#include "runtime/checkpoint/checkpoint_directory.hpp"

namespace orrery {
namespace {

std::string source_text(const TokenizedText& text) {
  switch (text.source) {
    case TokenizedText::Source::kMade:
      return "made now";
    case TokenizedText::Source::kFound:
      return "found on this node";
    case TokenizedText::Source::kMemory:
      return "in this rank's memory alone: " + text.why;
  }
  return "";
}

/// Returns the tokenizer named in a manifest's `extra`; "" means bytes.
std::string tokenizer_saved(const Manifest& manifest) {
  const auto extra = nlohmann::json::parse(manifest.extra, nullptr, /*allow_exceptions=*/false);
  if (!extra.is_object()) return "";
  const auto found = extra.find("tokenizer");
  if (found == extra.end() || !found->is_string()) return "";
  return found->get<std::string>();
}

std::string shown(const std::string& identity) {
  return identity.empty() ? "bytes" : "the tokenizer of SHA-256 " + printable(identity, 64);
}

}  // namespace

Status check_vocabulary(const TrainingSpec& spec, const Tokenizer& tokenizer) {
  if (spec.model.vocab >= tokenizer.kinds()) return {};
  return input_error(spec.model.where,
                     fmt::format("model.vocab: expected at least {}, the tokens of {}; found {}",
                                 tokenizer.kinds(), tokenizer.name(), spec.model.vocab));
}

Status check_tokens_saved(const TrainingSpec& spec, const Tokenizer& tokenizer) {
  auto saved = list_checkpoints(spec.checkpoint.directory);
  if (!saved) return forward_error(saved);
  if (saved->empty() || saved->front().state != ListedCheckpoint::State::kCommitted) return {};
  const std::string before = tokenizer_saved(saved->front().manifest);
  if (before == tokenizer.identity()) return {};
  return input_error(spec.data.where,
                     fmt::format("data.tokenizer: {} was trained on {}, this is {}",
                                 step_directory(spec.checkpoint.directory, saved->front().step),
                                 shown(before), shown(tokenizer.identity())));
}

Result<TrainingText> open_training_text(const TrainingSpec& spec, const Tokenizer& tokenizer,
                                        const std::string& cache) {
  Result<TextCorpus> corpus =
      TextCorpus::open({.paths = spec.data.paths, .suffixes = spec.data.suffixes});
  if (!corpus) return forward_error(corpus);
  std::string kind = tokenizer.name();
  if (!tokenizer.identity().empty()) {
    TokenizedText text = tokenize(*corpus, tokenizer, cache);
    kind = fmt::format("{} ({} kinds; {})", tokenizer.name(), tokenizer.kinds(), source_text(text));
    corpus = std::move(text.corpus);
  }
  Result<TextStream> stream =
      TextStream::create(std::move(*corpus), spec.model.sequence, spec.seed);
  if (!stream) return forward_error(stream);
  std::string summary = fmt::format("{} files, {} tokens of {}", stream->corpus().files(),
                                    stream->corpus().tokens(), kind);
  return TrainingText{std::move(*stream), std::move(summary)};
}

}  // namespace orrery
