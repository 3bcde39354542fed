#include "tokens/chat/template_lexer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "tokens/chat/template_fault.hpp"
#include "tokens/text/python_text.hpp"
#include "tokens/text/unicode_class.hpp"

namespace orrery {
namespace {

using Kind = TemplateWord::Kind;

/// Line ends are line feeds, and one at the end is left out.
std::string with_plain_lines(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r') {
      plain += '\n';
      if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
    } else {
      plain += text[i];
    }
  }
  if (plain.ends_with('\n')) plain.pop_back();
  return plain;
}

bool is_name_begin(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class TemplateLexer {
 public:
  explicit TemplateLexer(std::string text) : text_(std::move(text)) {}

  std::vector<TemplateWord> read() {
    while (at_ < text_.size()) read_outside();
    add(Kind::kEnd, "");
    return std::move(words_);
  }

 private:
  enum class Tag : std::uint8_t { kBlock, kPrint, kComment };

  void read_outside();
  void add_text(std::size_t end, Tag tag, char sign);
  void read_comment();
  bool read_raw();
  void read_inside(Kind end, std::string_view close);
  bool read_end(Kind end, std::string_view close);
  void read_word();
  void read_string();
  void read_number();
  void read_escape(std::string& to);
  void skip_spaces();
  /// Skips what the end of a tag takes away: "-" all spaces, else a line end behind a block.
  void end_tag(std::string_view close, Tag tag);
  [[nodiscard]] bool next_is(std::string_view text) const {
    return std::string_view(text_).substr(at_).starts_with(text);
  }
  [[noreturn]] void fail(std::string why) const { throw TemplateFault{std::move(why), line()}; }
  [[nodiscard]] int line() const {
    return 1 + static_cast<int>(std::count(text_.begin(),
                                           text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n'));
  }
  void add(Kind kind, std::string text) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(counted_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n'));
    counted_ = at_;
    words_.push_back({kind, std::move(text), line_});
  }

  std::string text_;
  std::size_t at_ = 0;
  std::size_t counted_ = 0;  ///< line ends up to here are counted
  int line_ = 1;
  bool line_starts_ = true;
  std::string open_;  ///< brackets that are open
  std::vector<TemplateWord> words_;
};

void TemplateLexer::add_text(std::size_t end, Tag tag, char sign) {
  std::string_view text = std::string_view(text_).substr(at_, end - at_);
  if (sign == '-') {
    text = python_stripped(text, {}, StripSide::kRight);
  } else if (sign != '+' && tag != Tag::kPrint) {
    const std::size_t newline = text.rfind('\n');
    const std::size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    const bool starts = line > 0 || line_starts_;
    if (starts && python_stripped(text.substr(line), {}, StripSide::kBoth).empty()) {
      text = text.substr(0, line);
    }
  }
  if (!text.empty()) add(Kind::kText, std::string(text));
}

void TemplateLexer::read_outside() {
  std::size_t tag = text_.find('{', at_);
  while (tag != std::string::npos &&
         (tag + 1 >= text_.size() ||
          std::string_view("{%#").find(text_[tag + 1]) == std::string_view::npos)) {
    tag = text_.find('{', tag + 1);
  }
  if (tag == std::string::npos) {
    add(Kind::kText, text_.substr(at_));
    at_ = text_.size();
    return;
  }
  const char kind = text_[tag + 1];
  const char next = tag + 2 < text_.size() ? text_[tag + 2] : '\0';
  const bool signed_tag = next == '-' || next == '+';
  add_text(tag,
           kind == '{'   ? Tag::kPrint
           : kind == '%' ? Tag::kBlock
                         : Tag::kComment,
           signed_tag ? next : '\0');
  at_ = tag + (signed_tag ? 3 : 2);
  line_starts_ = false;
  if (kind == '#') {
    read_comment();
  } else if (kind == '{') {
    add(Kind::kPrintBegin, "{{");
    read_inside(Kind::kPrintEnd, "}}");
  } else if (!read_raw()) {
    add(Kind::kBlockBegin, "{%");
    read_inside(Kind::kBlockEnd, "%}");
  }
}

void TemplateLexer::end_tag(std::string_view close, Tag tag) {
  const bool minus = next_is("-");
  const bool plus = next_is("+");
  const std::size_t begin = at_;
  at_ += close.size() + (minus || plus ? 1 : 0);
  if (minus) skip_spaces();
  if (!minus && !plus && tag != Tag::kPrint && next_is("\n")) ++at_;
  line_starts_ = at_ > begin && text_[at_ - 1] == '\n';
}

void TemplateLexer::read_comment() {
  const std::size_t end = text_.find("#}", at_);
  if (end == std::string::npos) fail("a comment has no end");
  at_ = end;
  if (end > 0 && (text_[end - 1] == '-' || text_[end - 1] == '+')) --at_;
  end_tag("#}", Tag::kComment);
}

bool TemplateLexer::read_raw() {
  const std::size_t begin = at_;
  skip_spaces();
  const auto word = [&](std::string_view name) {
    if (!next_is(name)) return false;
    at_ += name.size();
    skip_spaces();
    return true;
  };
  if (!word("raw") || !(next_is("%}") || next_is("-%}"))) {
    at_ = begin;
    return false;
  }
  const bool strips = next_is("-");
  at_ += strips ? 3 : 2;
  if (strips) skip_spaces();
  line_starts_ = text_[at_ - 1] == '\n';
  for (std::size_t tag = text_.find("{%", at_); tag != std::string::npos;
       tag = text_.find("{%", tag + 1)) {
    const std::size_t text = at_;
    at_ = tag + 2;
    const char sign = next_is("-") ? '-' : next_is("+") ? '+' : '\0';
    if (sign != '\0') ++at_;
    skip_spaces();
    if (word("endraw") && (next_is("%}") || next_is("-%}") || next_is("+%}"))) {
      const std::size_t end = at_;
      at_ = text;
      add_text(tag, Tag::kBlock, sign);
      at_ = end;
      end_tag("%}", Tag::kBlock);
      return true;
    }
    at_ = text;
  }
  fail("a raw block has no end");
}

void TemplateLexer::skip_spaces() {
  while (at_ < text_.size()) {
    const CodePoint point = code_point_at(text_, at_);
    if (!is_python_space(point.value)) return;
    at_ += point.size;
  }
}

bool TemplateLexer::read_end(Kind end, std::string_view close) {
  if (!open_.empty()) return false;
  const bool is_end = next_is(close) || (next_is("-") && text_.compare(at_ + 1, 2, close) == 0) ||
                      (end == Kind::kBlockEnd && next_is("+%}"));
  if (!is_end) return false;
  add(end, std::string(close));
  end_tag(close, end == Kind::kBlockEnd ? Tag::kBlock : Tag::kPrint);
  return true;
}

void TemplateLexer::read_inside(Kind end, std::string_view close) {
  open_.clear();
  while (true) {
    skip_spaces();
    if (at_ >= text_.size()) fail(fmt::format("expected \"{}\", the template ends", close));
    if (read_end(end, close)) return;
    read_word();
  }
}

void TemplateLexer::read_word() {
  const char c = text_[at_];
  if (c == '"' || c == '\'') return read_string();
  if (is_digit(c)) return read_number();
  if (is_name_begin(c)) {
    std::size_t end = at_;
    while (end < text_.size() && (is_name_begin(text_[end]) || is_digit(text_[end]))) ++end;
    std::string name = text_.substr(at_, end - at_);
    at_ = end;
    return add(Kind::kName, std::move(name));
  }
  constexpr std::array<std::string_view, 6> kPairs = {"//", "**", "==", "!=", ">=", "<="};
  for (const std::string_view pair : kPairs) {
    if (!next_is(pair)) continue;
    at_ += 2;
    return add(Kind::kSign, std::string(pair));
  }
  if (std::string_view("+-/*%~[](){}<>=.:|,;").find(c) == std::string_view::npos) {
    fail(fmt::format("unexpected character {}", python_repr(std::string(1, c))));
  }
  if (c == '(' || c == '[' || c == '{') open_ += c;
  if (c == ')' || c == ']' || c == '}') {
    const char opens = c == ')' ? '(' : c == ']' ? '[' : '{';
    if (open_.empty() || open_.back() != opens) fail(fmt::format("unexpected \"{}\"", c));
    open_.pop_back();
  }
  ++at_;
  add(Kind::kSign, std::string(1, c));
}

void TemplateLexer::read_string() {
  const char quote = text_[at_++];
  std::string value;
  while (true) {
    if (at_ >= text_.size()) fail("a string has no end");
    const char c = text_[at_];
    if (c == quote) break;
    if (c == '\\') {
      read_escape(value);
    } else {
      value += c;
      ++at_;
    }
  }
  ++at_;
  add(Kind::kString, std::move(value));
}

void TemplateLexer::read_escape(std::string& to) {
  constexpr std::string_view kFrom = "nrtabfv\\'\"0";
  constexpr std::string_view kTo("\n\r\t\a\b\f\v\\'\"\0", 11);
  ++at_;
  if (at_ >= text_.size()) fail("a string has no end");
  const char kind = text_[at_];
  if (kind == 'x' || kind == 'u' || kind == 'U') {
    const std::size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
    const std::string hex = text_.substr(at_ + 1, digits);
    char* end = nullptr;
    const unsigned long value = std::strtoul(hex.c_str(), &end, 16);
    const bool good = hex.size() == digits && std::ranges::all_of(hex, [](unsigned char c) {
                        return std::isxdigit(c) != 0;
                      });
    if (!good || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) {
      fail(fmt::format("\"\\{}{}\" is no character", kind, hex));
    }
    append_code_point(static_cast<char32_t>(value), to);
    at_ += digits + 1;
    return;
  }
  const bool octal =
      is_digit(kind) && (kind != '0' || is_digit(text_[std::min(at_ + 1, text_.size() - 1)]));
  if (octal || kind == 'N') fail(fmt::format("the escape \"\\{}\" is not supported", kind));
  const std::size_t known = kFrom.find(kind);
  if (kind == '\n') {
    ++at_;
  } else if (known == std::string_view::npos) {
    to += '\\';
  } else {
    to += kTo[known];
    ++at_;
  }
}

void TemplateLexer::read_number() {
  std::size_t end = at_;
  std::string digits;
  const auto take = [&] {
    while (end < text_.size() && (is_digit(text_[end]) || text_[end] == '_')) {
      if (text_[end] != '_') digits += text_[end];
      ++end;
    }
  };
  take();
  bool fraction = false;
  if (end + 1 < text_.size() && text_[end] == '.' && is_digit(text_[end + 1])) {
    fraction = true;
    digits += text_[end++];
    take();
  }
  if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
    std::size_t exponent = end + 1;
    if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
    if (exponent < text_.size() && is_digit(text_[exponent])) {
      fraction = true;
      digits += text_.substr(end, exponent - end);
      end = exponent;
      take();
    }
  }
  if (end < text_.size() && is_name_begin(text_[end])) fail("a number is followed by a name");
  at_ = end;
  add(fraction ? Kind::kFloat : Kind::kInteger, std::move(digits));
}

}  // namespace

std::vector<TemplateWord> template_words(std::string_view text) {
  return TemplateLexer(with_plain_lines(text)).read();
}

}  // namespace orrery
