#include "sentencepiece/training_tokenizer.hpp"

#include <utility>

#include "runtime/training/training_text.hpp"
#include "sentencepiece/piece_tokenizer.hpp"

namespace orrery {

Result<std::unique_ptr<Tokenizer>> open_training_tokenizer(const TrainingSpec& spec) {
  std::unique_ptr<Tokenizer> tokenizer = std::make_unique<ByteTokenizer>();
  if (!spec.data.tokenizer.empty()) {
    Result<PieceTokenizer> pieces = PieceTokenizer::open(spec.data.tokenizer);
    if (!pieces) return input_error(spec.data.where, pieces.error().message);
    tokenizer = std::make_unique<PieceTokenizer>(std::move(*pieces));
  }
  if (Status fits = check_vocabulary(spec, *tokenizer); !fits) return forward_error(fits);
  if (Status same = check_tokens_saved(spec, *tokenizer); !same) return forward_error(same);
  return tokenizer;
}

}  // namespace orrery
