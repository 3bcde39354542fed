#include "tokens/token_joiner.hpp"

#include "tokens/text/unicode_class.hpp"

namespace orrery {
void TokenJoiner::add(std::int32_t token, std::string& to) {
  const auto place = begun_ ? TokenUse::Place::kLater : TokenUse::Place::kFirst;
  TokenText text = tokenizer_.text_of(token, {place, special_});
  if (text.kind == TokenText::Kind::kNone) return;
  if (begun_) append(rules_.between, to);
  begun_ = true;
  if (text.kind == TokenText::Kind::kFallback) {
    run_ += text.bytes;
    return;
  }
  end_run(to);
  append(text.bytes, to);
}

void TokenJoiner::finish(std::string& to) {
  end_run(to);
  text_.finish(to);
}

void TokenJoiner::end_run(std::string& to) {
  if (run_.empty()) return;
  std::string lossy;
  LossyText whole;
  whole.add(run_, lossy);
  whole.finish(lossy);
  // UTF-8 stays as it is.
  if (run_ == lossy) {
    append(run_, to);
  } else {
    for (std::size_t i = 0; i < run_.size(); ++i) append(kReplacementCharacter, to);
  }
  run_.clear();
}

void TokenJoiner::append(std::string_view text, std::string& to) {
  while (stripping_ && !text.empty()) {
    const CodePoint first = code_point_at(text, 0);
    stripping_ = stripped_ < rules_.stripped_max && first.value == rules_.stripped;
    if (!stripping_) break;
    ++stripped_;
    text.remove_prefix(first.size);
  }
  text_.add(text, to);
}

}  // namespace orrery
