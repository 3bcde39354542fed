#include "tokens/bpe/text_replacement.hpp"

namespace orrery {

std::vector<TextSpan> find_literal(std::string_view text, std::string_view literal) {
  std::vector<TextSpan> found;
  if (literal.size() == 1) {
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (text[at] == literal.front()) found.push_back({at, at + 1});
    }
    return found;
  }
  for (std::size_t at = text.find(literal); at != std::string_view::npos;
       at = text.find(literal, at + literal.size())) {
    found.push_back({at, at + literal.size()});
  }
  return found;
}

MatchPattern::MatchPattern(const JsonPart& owner) {
  const JsonPart pattern = owner.part("pattern");
  if (pattern.has("String")) {
    literal_ = pattern.text("String");
    if (literal_.empty()) pattern.refuse("an empty text is not supported");
  } else if (pattern.has("Regex")) {
    try {
      regex_ = TextPattern::of_json(pattern.text("Regex"));
    } catch (const LoadFault& fault) {
      pattern.refuse(fault.message);
    }
  } else {
    pattern.refuse("expected \"String\" or \"Regex\"");
  }
}

std::vector<TextSpan> MatchPattern::find_all(std::string_view text) const {
  return regex_ ? regex_->find_all(text) : find_literal(text, literal_);
}

TextReplacement::TextReplacement(const JsonPart& owner)
    : pattern_(owner), content_(owner.text("content")) {}

std::string_view TextReplacement::apply(std::string_view text, std::string& buffer) const {
  if (text.empty()) return text;
  const std::vector<TextSpan> found = pattern_.find_all(text);
  if (found.empty()) return text;
  buffer.clear();
  buffer.reserve(text.size() + found.size() * content_.size());
  std::size_t done = 0;
  for (const TextSpan span : found) {
    buffer += text.substr(done, span.begin - done);
    buffer += content_;
    done = span.end;
  }
  buffer += text.substr(done);
  return buffer;
}

}  // namespace orrery
