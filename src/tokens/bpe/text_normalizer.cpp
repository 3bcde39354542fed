#include "tokens/bpe/text_normalizer.hpp"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/text/utf8.hpp"
#include "tokens/bpe/text_replacement.hpp"
#include "tokens/text/byte_alphabet.hpp"
#include "tokens/text/unicode_class.hpp"

namespace orrery {
namespace {

constexpr int kDepthMax = 16;

struct CharacterRange {
  char32_t first;
  char32_t last;
};

/// Characters with a decomposition or a combining class that the reference does not know: its
/// normal forms are those of Unicode 9. They stand for themselves.
constexpr std::array kUnknown = {
    CharacterRange{0x7FD, 0x7FD},     CharacterRange{0x898, 0x89F},
    CharacterRange{0x8CA, 0x8D3},     CharacterRange{0x9FE, 0x9FE},
    CharacterRange{0xC3C, 0xC3C},     CharacterRange{0xD3B, 0xD3C},
    CharacterRange{0xEBA, 0xEBA},     CharacterRange{0x1715, 0x1715},
    CharacterRange{0x1ABF, 0x1ACE},   CharacterRange{0x1DF6, 0x1DFA},
    CharacterRange{0x32FF, 0x32FF},   CharacterRange{0xA7F2, 0xA7F4},
    CharacterRange{0xA82C, 0xA82C},   CharacterRange{0xAB69, 0xAB69},
    CharacterRange{0x10781, 0x10785}, CharacterRange{0x10787, 0x107B0},
    CharacterRange{0x107B2, 0x107BA}, CharacterRange{0x10D24, 0x10D27},
    CharacterRange{0x10EAB, 0x10EAC}, CharacterRange{0x10EFD, 0x10EFF},
    CharacterRange{0x10F46, 0x10F50}, CharacterRange{0x10F82, 0x10F85},
    CharacterRange{0x11070, 0x11070}, CharacterRange{0x1133B, 0x1133B},
    CharacterRange{0x1145E, 0x1145E}, CharacterRange{0x11839, 0x1183A},
    CharacterRange{0x11938, 0x11938}, CharacterRange{0x1193D, 0x1193E},
    CharacterRange{0x11943, 0x11943}, CharacterRange{0x119E0, 0x119E0},
    CharacterRange{0x11A34, 0x11A34}, CharacterRange{0x11A47, 0x11A47},
    CharacterRange{0x11A99, 0x11A99}, CharacterRange{0x11D42, 0x11D42},
    CharacterRange{0x11D44, 0x11D45}, CharacterRange{0x11D97, 0x11D97},
    CharacterRange{0x11F41, 0x11F42}, CharacterRange{0x16FF0, 0x16FF1},
    CharacterRange{0x1E030, 0x1E06D}, CharacterRange{0x1E08F, 0x1E08F},
    CharacterRange{0x1E130, 0x1E136}, CharacterRange{0x1E2AE, 0x1E2AE},
    CharacterRange{0x1E2EC, 0x1E2EF}, CharacterRange{0x1E4EC, 0x1E4EF},
    CharacterRange{0x1F16C, 0x1F16C}, CharacterRange{0x1FBF0, 0x1FBF9}};

/// Characters that NFC leaves as they are beside each other: none has a decomposition that is
/// preferred, none joins the character before it, and all have the combining class 0.
constexpr std::array kComposed = {
    CharacterRange{0x00, 0x2FF},    CharacterRange{0x400, 0x482},    CharacterRange{0x48A, 0x52F},
    CharacterRange{0x5D0, 0x5EA},   CharacterRange{0x621, 0x64A},    CharacterRange{0x904, 0x939},
    CharacterRange{0x1E00, 0x1EFF}, CharacterRange{0x2010, 0x2027},  CharacterRange{0x2030, 0x205E},
    CharacterRange{0x20A0, 0x20BF}, CharacterRange{0x2190, 0x21FF},  CharacterRange{0x2500, 0x27BF},
    CharacterRange{0x3001, 0x3029}, CharacterRange{0x3041, 0x3096},  CharacterRange{0x30A1, 0x30FF},
    CharacterRange{0x3400, 0x4DB5}, CharacterRange{0x4E00, 0x9FCC},  CharacterRange{0xAC00, 0xD7A3},
    CharacterRange{0xFF01, 0xFF60}, CharacterRange{0x1F300, 0x1F64F}};

/// Those of them that NFKC leaves as they are, too.
constexpr std::array kPlain = {
    CharacterRange{0x00, 0x9F},      CharacterRange{0xC0, 0x131},    CharacterRange{0x400, 0x482},
    CharacterRange{0x48A, 0x52F},    CharacterRange{0x5D0, 0x5EA},   CharacterRange{0x621, 0x64A},
    CharacterRange{0x904, 0x939},    CharacterRange{0x1E00, 0x1E99}, CharacterRange{0x1EA0, 0x1EFF},
    CharacterRange{0x2012, 0x2016},  CharacterRange{0x2018, 0x2023}, CharacterRange{0x2190, 0x21FF},
    CharacterRange{0x3001, 0x3029},  CharacterRange{0x3041, 0x3096}, CharacterRange{0x30A1, 0x30FE},
    CharacterRange{0x3400, 0x4DB5},  CharacterRange{0x4E00, 0x9FCC}, CharacterRange{0xAC00, 0xD7A3},
    CharacterRange{0x1F300, 0x1F64F}};

/// Capital letters that are newer than the library's, and the way to their small letters.
struct CapitalRange {
  char32_t first;
  char32_t last;
  std::int32_t distance;
};
constexpr std::array kLaterCapitals = {
    CapitalRange{0x1C89, 0x1C89, 1},      CapitalRange{0xA7CB, 0xA7CB, 0x264 - 0xA7CB},
    CapitalRange{0xA7CC, 0xA7CC, 1},      CapitalRange{0xA7CE, 0xA7CE, 1},
    CapitalRange{0xA7D2, 0xA7D2, 1},      CapitalRange{0xA7D4, 0xA7D4, 1},
    CapitalRange{0xA7DA, 0xA7DA, 1},      CapitalRange{0xA7DC, 0xA7DC, 0x19B - 0xA7DC},
    CapitalRange{0x10D50, 0x10D65, 0x20}, CapitalRange{0x16EA0, 0x16EB8, 0x1B}};

/// Whether ascending ranges hold a character.
bool hold(std::span<const CharacterRange> ranges, char32_t value) {
  const auto found = std::ranges::lower_bound(ranges, value, {}, &CharacterRange::last);
  return found != ranges.end() && value >= found->first;
}

bool is_unknown(char32_t value) { return hold(kUnknown, value); }

char32_t small_letter(char32_t value) {
  for (const CapitalRange& range : kLaterCapitals) {
    if (value >= range.first && value <= range.last) {
      return static_cast<char32_t>(static_cast<std::int32_t>(value) + range.distance);
    }
  }
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(value)));
}

constexpr int kCompose = UTF8PROC_STABLE | UTF8PROC_COMPOSE;
constexpr int kDecompose = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;

class NormalForm final : public NormalizerStep {
 public:
  explicit NormalForm(int options, std::span<const CharacterRange> formed = {})
      : options_(options), formed_(formed) {}

  std::string_view apply(std::string_view text, std::string& buffer) const override {
    if (is_formed(text)) return text;
    buffer.clear();
    for (std::size_t at = 0; at < text.size();) {
      // ASCII joins only what follows it, so a stretch from its last character on stands alone.
      const std::size_t end = stretch_end(text, at);
      append_form(text.substr(at, end - at), buffer);
      at = end;
      if (at < text.size() && is_apart(text, at)) {
        const std::size_t size = code_point_at(text, at).size;
        buffer += text.substr(at, size);
        at += size;
      }
    }
    return buffer;
  }

 private:
  /// Whether a character stands for itself whatever is around it.
  [[nodiscard]] static bool is_apart(std::string_view text, std::size_t at) {
    const CodePoint point = code_point_at(text, at);
    return point.value == kNoCodePoint || is_unknown(point.value);
  }
  /// Whether a text is seen at a glance to be in the form.
  [[nodiscard]] bool is_formed(std::string_view text) const {
    std::size_t at = ascii_end(text, 0);
    while (at < text.size()) {
      const CodePoint point = code_point_at(text, at);
      if (!hold(formed_, point.value)) return false;
      at += point.size;
    }
    return true;
  }
  /// The end of an ASCII run, or of an ASCII character at most and what follows it up to the next.
  [[nodiscard]] static std::size_t stretch_end(std::string_view text, std::size_t at) {
    std::size_t end = ascii_end(text, at);
    if (end == text.size()) return end;
    if (end > at + 1) return end - 1;
    while (end < text.size() && static_cast<unsigned char>(text[end]) >= 128) {
      if (is_apart(text, end)) break;
      end += code_point_at(text, end).size;
    }
    return end;
  }
  void append_form(std::string_view valid, std::string& to) const {
    if (is_formed(valid)) {
      to += valid;
      return;
    }
    utf8proc_uint8_t* made = nullptr;
    const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(valid.data()),
                                   static_cast<utf8proc_ssize_t>(valid.size()), &made,
                                   static_cast<utf8proc_option_t>(options_));
    if (size >= 0) {
      to.append(reinterpret_cast<const char*>(made), static_cast<std::size_t>(size));
    } else {
      to += valid;
    }
    std::free(made);
  }

  int options_;
  std::span<const CharacterRange> formed_;  ///< beside ASCII, what is left as it is
};

class LowercaseStep final : public NormalizerStep {
 public:
  std::string_view apply(std::string_view text, std::string& buffer) const override {
    buffer.clear();
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint point = code_point_at(text, at);
      if (point.value == kNoCodePoint) {
        buffer += text[at];
      } else if (point.value == 0x130) {
        buffer += "i\xcc\x87";
      } else {
        append_code_point(small_letter(point.value), buffer);
      }
      at += point.size;
    }
    return buffer;
  }
};

class PrependStep final : public NormalizerStep {
 public:
  explicit PrependStep(std::string front) : front_(std::move(front)) {}
  std::string_view apply(std::string_view text, std::string& buffer) const override {
    if (text.empty()) return text;
    buffer = front_;
    buffer += text;
    return buffer;
  }

 private:
  std::string front_;
};

class ReplaceStep final : public NormalizerStep {
 public:
  explicit ReplaceStep(const JsonPart& part) : replacement_(part) {}
  std::string_view apply(std::string_view text, std::string& buffer) const override {
    return replacement_.apply(text, buffer);
  }

 private:
  TextReplacement replacement_;
};

class ByteLevelStep final : public NormalizerStep {
 public:
  std::string_view apply(std::string_view text, std::string& buffer) const override {
    buffer = bytes_as_characters(text);
    return buffer;
  }
};

std::unique_ptr<const NormalizerStep> make_step(const JsonPart& part) {
  const std::string type = part.type();
  if (type == "NFC") return std::make_unique<NormalForm>(kCompose, kComposed);
  if (type == "NFKC") return std::make_unique<NormalForm>(kCompose | UTF8PROC_COMPAT, kPlain);
  if (type == "NFD") return std::make_unique<NormalForm>(kDecompose);
  if (type == "NFKD") return std::make_unique<NormalForm>(kDecompose | UTF8PROC_COMPAT);
  if (type == "Lowercase") return std::make_unique<LowercaseStep>();
  if (type == "Prepend") return std::make_unique<PrependStep>(part.text("prepend"));
  if (type == "Replace") return std::make_unique<ReplaceStep>(part);
  if (type == "ByteLevel") return std::make_unique<ByteLevelStep>();
  part.refuse(
      fmt::format("the normalizer \"{}\" is not supported, expected NFC, NFD, NFKC, NFKD, "
                  "Lowercase, Prepend, Replace, ByteLevel or Sequence",
                  printable(type, 60)));
}

}  // namespace

TextNormalizer::TextNormalizer(const JsonPart& file) {
  if (file.has("normalizer")) read(file.part("normalizer"), 0);
}

void TextNormalizer::read(const JsonPart& part, int depth) {
  if (depth > kDepthMax) part.refuse("too deep");
  if (part.type() != "Sequence") return steps_.push_back(make_step(part));
  for (const JsonPart& item : part.items("normalizers")) read(item, depth + 1);
}

std::string_view TextNormalizer::apply(std::string_view text, std::string& buffer) const {
  std::string other;
  std::string made;
  std::string_view now = text;
  for (const auto& step : steps_) {
    const std::string_view next = step->apply(now, other);
    if (next.data() != other.data()) {
      now = next;
      continue;
    }
    made.swap(other);
    now = made;
  }
  if (now.data() != made.data()) return text;
  buffer.swap(made);
  return buffer;
}

}  // namespace orrery
