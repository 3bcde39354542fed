// base/xml_test.hpp - whether a text is well-formed XML: for the tests of drawings and pages.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

inline bool begins_entity(std::string_view text) {
  for (const char* entity : {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"}) {
    if (text.starts_with(entity)) return true;
  }
  return false;
}

/// What is wrong with a document of elements, attributes in double quotes and text; "" when it is
/// well formed.
inline std::string xml_fault(std::string_view xml) {
  std::vector<std::string> open;
  std::size_t at = 0;
  while (at < xml.size()) {
    if (xml[at] == '&' && !begins_entity(xml.substr(at))) {
      return fmt::format("a bare & at {}", at);
    }
    if (xml[at] != '<') {
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    bool quoted = false;
    for (; end < xml.size() && (quoted || xml[end] != '>'); ++end) {
      if (xml[end] == '<') return fmt::format("a < inside a tag at {}", end);
      if (xml[end] == '"') quoted = !quoted;
    }
    if (end == xml.size()) return fmt::format("a tag without end at {}", at);
    const std::string tag(xml.substr(at + 1, end - at - 1));
    const std::string name = tag.substr(0, tag.find_first_of(" />", 1));
    if (tag.starts_with("/")) {
      if (open.empty() || "/" + open.back() != tag) return "unexpected <" + tag + ">";
      open.pop_back();
    } else if (!tag.ends_with("/")) {
      open.push_back(name);
    }
    at = end + 1;
  }
  return open.empty() ? "" : "<" + open.back() + "> is never closed";
}

}  // namespace orrery
