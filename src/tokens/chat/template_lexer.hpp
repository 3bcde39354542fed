// tokens/chat/template_lexer.hpp - the words of a Jinja template, with trim_blocks and
// lstrip_blocks on, as chat templates are read.
//
// A function of the text. Invariant: words are Jinja 3.1's; text between tags is one word. Cost:
// O(bytes).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

struct TemplateWord {
  enum class Kind : std::uint8_t {
    kText,
    kBlockBegin,
    kBlockEnd,
    kPrintBegin,
    kPrintEnd,
    kName,
    kString,
    kInteger,
    kFloat,
    kSign,  ///< an operator or a bracket
    kEnd
  };

  Kind kind = Kind::kEnd;
  std::string text;  ///< strings without quotes and escapes
  int line = 0;
};

/// Throws TemplateFault. The last word is kEnd.
[[nodiscard]] std::vector<TemplateWord> template_words(std::string_view text);

}  // namespace orrery
