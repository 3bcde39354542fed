#include "tokens/bpe/merge_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/utf8.hpp"
#include "tokens/text/byte_alphabet.hpp"
#include "tokens/text/unicode_class.hpp"

namespace orrery {
namespace {

constexpr std::int64_t kTokenMax = 1 << 24;

char32_t first_character(std::string_view text) { return code_point_at(text, 0).value; }

char32_t last_character(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return code_point_at(text, at).value;
}

}  // namespace

MergeModel::MergeModel(const JsonPart& model, VocabularyText text) : text_(text) {
  if (model.has("type") && model.type() != "BPE") {
    model.refuse(fmt::format("expected a model of type BPE, got \"{}\"", model.type()));
  }
  for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (model.has(key) && !model.text(key).empty()) {
      model.part(key).refuse("is not supported, expected null or \"\"");
    }
  }
  if (model.has("dropout") && model.part("dropout").value() != 0) {
    model.part("dropout").refuse("is not supported, expected null or 0");
  }
  unknown_.fused = model.flag("fuse_unk");
  byte_fallback_ = model.flag("byte_fallback");
  whole_words_ = model.flag("ignore_merges");
  read_vocabulary(model);
  read_merges(model);
  if (model.has("unk_token")) unknown_.token = token(model.text("unk_token"));
  if (text_ == VocabularyText::kBytes) read_bytes();
  if (model.has("unk_token") && !unknown_.token && !bytes_.all_known) {
    model.part("unk_token").refuse("expected a token of the vocabulary");
  }
  index_words();
}

void MergeModel::read_vocabulary(const JsonPart& model) {
  const JsonPart vocabulary = model.part("vocab");
  if (!vocabulary.value().is_object()) vocabulary.refuse("expected an object of tokens");
  ids_.reserve(vocabulary.value().size());
  for (const auto& [text, id] : vocabulary.value().items()) {
    if (!id.is_number_integer() || id < 0 || id >= kTokenMax) {
      vocabulary.refuse(fmt::format("token \"{}\" has no number from 0 to {}", printable(text, 60),
                                    kTokenMax - 1));
    }
    const auto number = id.get<std::int32_t>();
    const auto place = static_cast<std::size_t>(number);
    if (texts_.size() <= place) {
      texts_.resize(place + 1);
      known_.resize(place + 1);
    }
    ids_.emplace(text, number);
    texts_[place] = text;
    known_[place] = true;
  }
}

void MergeModel::read_bytes() {
  bytes_.all_known = true;
  for (const char32_t character : byte_alphabet()) {
    std::string shown;
    append_code_point(character, shown);
    Start start = start_of(shown);
    bytes_.all_known = bytes_.all_known && start.known;
    if (start.known) bytes_.tokens[bytes_.starts.size()] = start.tokens.front();
    bytes_.starts.push_back(std::move(start));
  }
}

void MergeModel::read_merges(const JsonPart& model) {
  const JsonPart merges = model.part("merges");
  if (!merges.value().is_array()) merges.refuse("expected an array");
  merges_.reserve(merges.value().size());
  characters_.reserve(merges.value().size());
  std::uint32_t rank = 0;
  for (const auto& merge : merges.value()) {
    const JsonPart place(merge, fmt::format("{}[{}]", merges.path(), rank));
    std::string left;
    std::string right;
    if (merge.is_string()) {
      const auto text = merge.get<std::string>();
      const std::size_t space = text.find(' ');
      if (text.starts_with("#version")) continue;
      if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
        place.refuse("expected two tokens with a space between them");
      }
      left = text.substr(0, space);
      right = text.substr(space + 1);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      left = merge[0].get<std::string>();
      right = merge[1].get<std::string>();
    } else {
      place.refuse("expected two tokens");
    }
    const auto a = token(left);
    const auto b = token(right);
    const auto both = token(left + right);
    if (!a || !b || !both || left.empty() || right.empty()) {
      place.refuse(fmt::format("\"{}\" and \"{}\" and what they make must be tokens",
                               printable(left, 60), printable(right, 60)));
    }
    merges_.add(PairTable::pair(*a, *b), {rank++, *both});
    characters_.join(last_character(left), first_character(right));
  }
}

std::optional<std::int32_t> MergeModel::token(std::string_view text) const {
  const auto found = ids_.find(std::string(text));
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

void MergeModel::index_words() {
  words_.reserve(ids_.size());
  cache_ = WordCache(ids_.size());
  for (const auto& [text, id] : ids_) {
    if (text.empty()) continue;
    if (text_ == VocabularyText::kCharacters) {
      words_.add(text, id);
      const CodePoint first = code_point_at(text, 0);
      if (first.size == text.size()) characters_.add(first.value);
    } else if (const auto bytes = characters_as_bytes(text)) {
      words_.add(*bytes, id);
    }
  }
  std::vector<std::int32_t> tokens;
  for (WordTable::Entry& entry : words_.entries()) {
    if (entry.size == 0) continue;
    tokens.clear();
    start(words_.word_of(entry), tokens);
    merge_tokens(merges_, 0, tokens);
    entry.merged = tokens.size() == 1 && tokens.front() == entry.token;
  }
}

MergeModel::Start MergeModel::start_of(std::string_view character) const {
  if (const auto own = token(character)) return {{*own}, true};
  Start start;
  if (!byte_fallback_) return start;
  for (const char byte : character) {
    const auto of_byte = token(fmt::format("<0x{:02X}>", static_cast<unsigned char>(byte)));
    if (!of_byte) return {};
    start.tokens.push_back(*of_byte);
  }
  return start;
}

void MergeModel::start(std::string_view word, std::vector<std::int32_t>& to) const {
  if (bytes_.all_known) {
    for (const char byte : word) to.push_back(bytes_.tokens[static_cast<unsigned char>(byte)]);
    return;
  }
  std::optional<std::int32_t> pending;
  for (std::size_t at = 0; at < word.size();) {
    const bool bytes = text_ == VocabularyText::kBytes;
    const std::size_t size = bytes ? 1 : code_point_at(word, at).size;
    const std::string_view character = word.substr(at, size);
    const WordTable::Entry* own = bytes ? nullptr : words_.find(character);
    at += size;
    if (own != nullptr) {
      if (pending) to.push_back(*pending);
      pending.reset();
      to.push_back(own->token);
      continue;
    }
    Start made;
    if (!bytes) made = start_of(character);
    const Start& begun =
        bytes ? bytes_.starts[static_cast<unsigned char>(character.front())] : made;
    if (begun.known && pending) {
      to.push_back(*pending);
      pending.reset();
    }
    to.insert(to.end(), begun.tokens.begin(), begun.tokens.end());
    if (!begun.tokens.empty() || !unknown_.token) continue;
    if (pending && !unknown_.fused) to.push_back(*pending);
    pending = unknown_.token;
  }
  if (pending) to.push_back(*pending);
}

std::size_t MergeModel::next_cut(std::string_view word, std::size_t from) const {
  CodePoint left = code_point_at(word, from);
  for (std::size_t at = from + left.size; at < word.size();) {
    const CodePoint right = code_point_at(word, at);
    if (characters_.cuts(left.value, right.value)) return at;
    at += right.size;
    left = right;
  }
  return word.size();
}

void MergeModel::encode(std::string_view word, std::vector<std::int32_t>& to) const {
  if (word.empty()) return;
  if (text_ == VocabularyText::kBytes) return encode_part(word, to);
  if (whole_words_) {
    if (const WordTable::Entry* entry = words_.find(word)) return to.push_back(entry->token);
  }
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t end = next_cut(word, at);
    encode_part(word.substr(at, end - at), to);
    at = end;
  }
}

void MergeModel::encode_part(std::string_view part, std::vector<std::int32_t>& to) const {
  const std::uint64_t hash = word_hash(part);
  if (cache_.append(part, hash, to)) return;
  const std::size_t begin = to.size();
  encode_anew(part, hash, to);
  cache_.keep(part, hash, std::span(to).subspan(begin));
}

void MergeModel::encode_anew(std::string_view part, std::uint64_t hash,
                             std::vector<std::int32_t>& to) const {
  const WordTable::Entry* entry = words_.find(part, hash);
  const bool whole = whole_words_ && text_ == VocabularyText::kBytes;
  if (entry != nullptr && (entry->merged || whole)) return to.push_back(entry->token);
  const std::size_t begin = to.size();
  start(part, to);
  merge_tokens(merges_, begin, to);
}

}  // namespace orrery
