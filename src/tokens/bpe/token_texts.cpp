#include "tokens/bpe/token_texts.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/text/utf8.hpp"
#include "tokens/text/byte_alphabet.hpp"
#include "tokens/text/unicode_class.hpp"

namespace orrery {
namespace {

constexpr int kDepthMax = 16;

/// Writes a replacement as a space, or as nothing.
std::string with_spaces(std::string_view text, std::string_view replacement,
                        std::string_view space) {
  std::string made;
  std::size_t done = 0;
  for (const TextSpan span : find_literal(text, replacement)) {
    made += text.substr(done, span.begin - done);
    made += space;
    done = span.end;
  }
  made += text.substr(done);
  return made;
}

}  // namespace

TokenTexts::TokenTexts(const JsonPart& file, const MergeModel& model, const AddedTokens& added) {
  if (file.has("decoder")) {
    read(file.part("decoder"), 0);
  } else {
    rules_.between = " ";
  }
  for (std::size_t token = 0; token < model.texts().size(); ++token) {
    const auto id = static_cast<std::int32_t>(token);
    if (model.has(id)) add(id, model.texts()[token]);
  }
  for (const AddedToken& token : added.all()) {
    if (added.by_id(token.id) != &token) continue;
    add(token.id, token.matched);
    texts_[static_cast<std::size_t>(token.id)].special = added.is_special(token.matched);
  }
}

void TokenTexts::add(std::int32_t token, std::string raw) {
  const auto place = static_cast<std::size_t>(token);
  if (texts_.size() <= place) texts_.resize(place + 1);
  TokenText later = made(raw, TokenUse::Place::kLater);
  texts_[place] = {std::move(raw), std::move(later), true, false};
}

void TokenTexts::refuse_behind_bytes(const JsonPart& part) const {
  if (byte_level_ || byte_runs_ || fused_) {
    part.refuse(
        fmt::format("the decoder \"{}\" is not supported behind ByteLevel, ByteFallback or "
                    "Fuse",
                    printable(part.type(), 60)));
  }
}

void TokenTexts::read_strip(const JsonPart& part) {
  const Strip strip{part.text("content"), static_cast<std::size_t>(part.number("start")),
                    static_cast<std::size_t>(part.number("stop"))};
  if (strip.content.empty() || code_point_at(strip.content, 0).size != strip.content.size()) {
    part.part("content").refuse("expected one character");
  }
  if (!fused_) {
    refuse_behind_bytes(part);
    steps_.emplace_back(strip);
    return;
  }
  if (strip.stop > 0 || rules_.stripped_max > 0) {
    part.refuse("only one Strip, with \"stop\" 0, is supported behind Fuse");
  }
  rules_.stripped = code_point_at(strip.content, 0).value;
  rules_.stripped_max = strip.start;
}

void TokenTexts::read(const JsonPart& part, int depth) {
  if (depth > kDepthMax) part.refuse("too deep");
  const std::string type = part.type();
  if (type == "Sequence") {
    for (const JsonPart& item : part.items("decoders")) read(item, depth + 1);
  } else if (type == "ByteLevel") {
    refuse_behind_bytes(part);
    byte_level_ = true;
    fused_ = true;
  } else if (type == "ByteFallback") {
    refuse_behind_bytes(part);
    byte_runs_ = true;
  } else if (type == "Fuse") {
    fused_ = true;
  } else if (type == "Strip") {
    read_strip(part);
  } else if (type == "Replace") {
    refuse_behind_bytes(part);
    steps_.emplace_back(TextReplacement(part));
  } else if (type == "Metaspace") {
    refuse_behind_bytes(part);
    const bool never = part.has("prepend_scheme") ? part.text("prepend_scheme") == "never"
                                                  : !part.flag_or_true("add_prefix_space");
    steps_.emplace_back(Metaspace{part.text("replacement"), !never});
    first_differs_ = !never;
  } else {
    part.refuse(
        fmt::format("the decoder \"{}\" is not supported, expected ByteLevel, ByteFallback, "
                    "Fuse, Strip, Replace, Metaspace or Sequence",
                    printable(type, 60)));
  }
}

std::string TokenTexts::stripped(std::string_view text, const Strip& strip) {
  for (std::size_t i = 0; i < strip.start && text.starts_with(strip.content); ++i) {
    text.remove_prefix(strip.content.size());
  }
  for (std::size_t i = 0; i < strip.stop && text.ends_with(strip.content); ++i) {
    text.remove_suffix(strip.content.size());
  }
  return std::string(text);
}

TokenText TokenTexts::made(const std::string& raw, TokenUse::Place place) const {
  std::string text = raw;
  for (const Step& step : steps_) {
    if (const auto* replace = std::get_if<TextReplacement>(&step)) {
      std::string buffer;
      text = std::string(replace->apply(text, buffer));
    } else if (const auto* strip = std::get_if<Strip>(&step)) {
      text = stripped(text, *strip);
    } else if (const auto* space = std::get_if<Metaspace>(&step)) {
      const bool drops = space->strips_first && place == TokenUse::Place::kFirst;
      text = with_spaces(text, space->replacement, drops ? "" : " ");
    }
  }
  if (byte_runs_) {
    if (const auto byte = byte_of_token(text)) {
      return {TokenText::Kind::kFallback, std::string(1, static_cast<char>(*byte))};
    }
  }
  if (byte_level_) {
    if (auto bytes = characters_as_bytes(text)) text = *std::move(bytes);
  }
  return {TokenText::Kind::kBytes, std::move(text)};
}

TokenText TokenTexts::text_of(std::int32_t token, TokenUse use) const {
  if (token < 0 || static_cast<std::size_t>(token) >= texts_.size()) return {};
  const Entry& entry = texts_[static_cast<std::size_t>(token)];
  if (!entry.known) return {};
  if (entry.special && use.special == TokenUse::Special::kLeftOut) return {};
  if (first_differs_ && use.place == TokenUse::Place::kFirst) return made(entry.raw, use.place);
  return entry.text;
}

}  // namespace orrery
