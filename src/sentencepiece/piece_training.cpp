#include "sentencepiece/piece_training.hpp"

#include <fmt/format.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <exception>
#include <unordered_map>

#include "base/text/utf8.hpp"
#include "sentencepiece/piece_tokenizer.hpp"

namespace orrery {
namespace {

constexpr std::int64_t kKindsMin = 256 + 3;
constexpr std::int64_t kKindsMax = 1 << 20;
constexpr std::size_t kSentenceMax = 4096;  ///< bytes; longer lines are cut

/// Iterates over the lines of a corpus, with their line ends; skips lines that are not UTF-8.
class CorpusLines final : public sentencepiece::SentenceIterator {
 public:
  explicit CorpusLines(const TextCorpus& corpus)
      : corpus_(corpus), every_((corpus.tokens() + kTrainedMax - 1) / kTrainedMax) {
    Next();
  }
  CorpusLines(const CorpusLines&) = delete;
  CorpusLines& operator=(const CorpusLines&) = delete;

  bool done() const override { return done_; }
  const std::string& value() const override { return value_; }
  sentencepiece::util::Status status() const override { return {}; }
  void Next() override {
    for (;;) {
      if (!next_line()) {
        done_ = true;
        return;
      }
      if (line_++ % every_ == 0 && first_invalid_utf8(value_) == std::string::npos) return;
    }
  }

 private:
  bool next_line() {
    while (rest_.empty()) {
      if (file_ == corpus_.files()) return false;
      const std::span<const unsigned char> bytes = corpus_.file(file_++);
      rest_ = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
    const std::size_t end = std::min(rest_.find('\n'), rest_.size() - 1) + 1;
    value_ = rest_.substr(0, std::min(end, kSentenceMax));
    rest_.remove_prefix(value_.size());
    return true;
  }

  const TextCorpus& corpus_;
  std::int64_t every_;
  std::int64_t line_ = 0;
  std::size_t file_ = 0;
  std::string_view rest_;  ///< rest of file number file_ - 1
  std::string value_;
  bool done_ = false;
};

}  // namespace

Result<std::string> train_pieces(const TextCorpus& text, std::int64_t kinds) {
  if (kinds <= kKindsMin || kinds > kKindsMax) {
    return input_error({}, fmt::format("a tokenizer of {} tokens: expected {} to {}", kinds,
                                       kKindsMin + 1, kKindsMax));
  }
  const std::unordered_map<std::string, std::string> how{
      {"model_type", "bpe"},
      {"vocab_size", fmt::format("{}", kinds)},
      {"hard_vocab_limit", "false"},
      {"byte_fallback", "true"},
      {"normalization_rule_name", "identity"},
      {"add_dummy_prefix", "false"},
      {"remove_extra_whitespaces", "false"},
      {"allow_whitespace_only_pieces", "true"},
      {"num_threads", "1"},
      {"minloglevel", "4"},  // errors are returned as a status
  };
  std::string model;
  std::string fault;
  try {
    CorpusLines lines(text);
    const auto done = sentencepiece::SentencePieceTrainer::Train(how, &lines, &model);
    if (!done.ok()) fault = piece_library_text(done.ToString());
    // The library's advice is about its own options, so it is cut off.
    fault.resize(std::min(fault.find(" Increase"), fault.size()));
  } catch (const std::exception& thrown) {
    fault = printable(thrown.what(), 160);
  }
  if (!fault.empty()) {
    return infeasible(fmt::format("this text gives no tokenizer of {} tokens: {}", kinds, fault));
  }
  const Result<PieceTokenizer> made = PieceTokenizer::of(model, "just made");
  if (!made) return tl::unexpected(made.error());
  if (made->kinds() != kinds) {
    return infeasible(
        fmt::format("this text gives a tokenizer of {} tokens, too few for {}: "
                    "take more text or fewer tokens",
                    made->kinds(), kinds));
  }
  return model;
}

}  // namespace orrery
