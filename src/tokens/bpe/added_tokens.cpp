#include "tokens/bpe/added_tokens.hpp"

#include <algorithm>

#include "tokens/text/unicode_class.hpp"

namespace orrery {
namespace {

/// The begin of the last character before `at`.
std::size_t character_before(std::string_view text, std::size_t at) {
  std::size_t begin = at - 1;
  while (begin > 0 && at - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) {
    --begin;
  }
  return begin + code_point_at(text, begin).size == at ? begin : at - 1;
}

bool is_space(std::string_view text, std::size_t at) {
  return (UnicodeClasses::table().of(code_point_at(text, at).value) & kSpace) != 0;
}

std::size_t spaces_before(std::string_view text, std::size_t at) {
  while (at > 0 && is_space(text, character_before(text, at))) at = character_before(text, at);
  return at;
}

std::size_t spaces_behind(std::string_view text, std::size_t at) {
  while (at < text.size() && is_space(text, at)) at += code_point_at(text, at).size;
  return at;
}

AddedToken read_token(const JsonPart& part) {
  return {.content = part.text("content"),
          .single_word = part.flag("single_word"),
          .lstrip = part.flag("lstrip"),
          .rstrip = part.flag("rstrip"),
          .normalized = part.flag("normalized"),
          .special = part.flag("special")};
}

}  // namespace

void TokenTrie::add(std::string_view text, std::int32_t value) {
  if (text.empty()) return;
  if (nodes_.empty()) nodes_.emplace_back();
  bool& begins = begins_[static_cast<unsigned char>(text.front())];
  if (!begins) first_bytes_ += text.front();
  begins = true;
  std::uint32_t at = 0;
  for (const char byte : text) {
    const auto found =
        std::ranges::find(nodes_[at].next, byte, &std::pair<char, std::uint32_t>::first);
    if (found != nodes_[at].next.end()) {
      at = found->second;
      continue;
    }
    const auto fresh = static_cast<std::uint32_t>(nodes_.size());
    nodes_[at].next.emplace_back(byte, fresh);
    nodes_.emplace_back();
    at = fresh;
  }
  nodes_[at].value = value;
}

std::size_t TokenTrie::next_begin(std::string_view text, std::size_t at) const {
  if (first_bytes_.empty()) return text.size();
  if (first_bytes_.size() == 1) return std::min(text.find(first_bytes_.front(), at), text.size());
  while (at < text.size() && !begins_[static_cast<unsigned char>(text[at])]) ++at;
  return at;
}

TokenTrie::Match TokenTrie::longest_at(std::string_view text, std::size_t at) const {
  Match best;
  std::uint32_t node = 0;
  for (std::size_t i = at; i < text.size(); ++i) {
    const auto& next = nodes_[node].next;
    const auto found = std::ranges::find(next, text[i], &std::pair<char, std::uint32_t>::first);
    if (found == next.end()) break;
    node = found->second;
    if (nodes_[node].value >= 0) best = {i + 1 - at, nodes_[node].value};
  }
  return best;
}

AddedTokens::AddedTokens(const JsonPart& file, const MergeModel& model,
                         const TextNormalizer& normalizer) {
  if (!file.has("added_tokens")) return;
  auto next = static_cast<std::int32_t>(model.size());
  for (const JsonPart& part : file.items("added_tokens")) {
    AddedToken token = read_token(part);
    if (token.content.empty()) continue;
    token.matched = token.content;
    if (token.normalized) {
      std::string buffer;
      token.matched = std::string(normalizer.apply(token.content, buffer));
    }
    if (token.single_word && !word_character_) word_character_.emplace(word_character_pattern());
    add(std::move(token), model, next);
  }
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    TokenTrie& trie = tokens_[i].normalized ? normalized_ : raw_;
    if (by_id_.at(tokens_[i].id) == i) trie.add(tokens_[i].matched, static_cast<std::int32_t>(i));
  }
}

void AddedTokens::add(AddedToken token, const MergeModel& model, std::int32_t& next) {
  if (const auto known = this->token(token.content)) {
    token.id = *known;
  } else if (const auto of_model = model.token(token.content)) {
    token.id = *of_model;
  } else {
    token.id = next++;
  }
  by_content_[token.content] = token.id;
  by_id_[token.id] = tokens_.size();
  if (token.special) special_.insert(token.content);
  tokens_.push_back(std::move(token));
}

const AddedToken* AddedTokens::by_id(std::int32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

std::optional<std::int32_t> AddedTokens::token(std::string_view content) const {
  const auto found = by_content_.find(std::string(content));
  return found == by_content_.end() ? std::nullopt : std::optional(found->second);
}

bool AddedTokens::stands_alone(std::string_view text, TextSpan span) const {
  const auto is_word = [&](std::size_t at) {
    const std::size_t size = code_point_at(text, at).size;
    return !word_character_->find_all(text.substr(at, size)).empty();
  };
  return (span.begin == 0 || !is_word(character_before(text, span.begin))) &&
         (span.end == text.size() || !is_word(span.end));
}

std::vector<TextPart> AddedTokens::find(std::string_view text, Search search) const {
  std::vector<TextPart> parts;
  const TokenTrie& trie = search.stage == Stage::kBeforeNormalizer ? raw_ : normalized_;
  std::size_t done = 0;
  for (std::size_t at = 0; (at = trie.next_begin(text, at)) < text.size();) {
    const TokenTrie::Match match = trie.longest_at(text, at);
    if (match.size == 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<std::size_t>(match.value)];
    TextSpan span{at, at + match.size};
    at = span.end;
    if (search.special == Special::kText && special_.contains(token.content)) continue;
    if (token.single_word && !stands_alone(text, span)) continue;
    if (token.lstrip) span.begin = std::max(spaces_before(text, span.begin), done);
    if (token.rstrip) span.end = spaces_behind(text, span.end);
    if (done < span.begin) parts.push_back({{done, span.begin}, std::nullopt});
    parts.push_back({span, token.id});
    done = span.end;
  }
  if (done < text.size()) parts.push_back({{done, text.size()}, std::nullopt});
  return parts;
}

}  // namespace orrery
