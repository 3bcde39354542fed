#include "api/agents/proto_writer.hpp"

#include "base/text/utf8.hpp"

namespace orrery {

std::string valid_utf8(std::string text) {
  std::size_t from = 0;
  while (true) {
    const std::size_t bad = first_invalid_utf8(std::string_view(text).substr(from));
    if (bad == text.npos) return text;
    text[from + bad] = '?';
    from += bad + 1;
  }
}

}  // namespace orrery
