// http/web_request.hpp - a whole HTTP request as a server received it.
//
// Filled by the parser, lent to a handler by its WebExchange. Plain value. `target` is not decoded;
// query_value() decodes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/web_headers.hpp"

namespace orrery {

struct WebRequest {
  std::string method;  ///< "GET", "POST", ..: as received
  std::string target;  ///< "/path?query", without scheme and host
  WebHeaders headers;
  std::string body;  ///< whole, without its transfer encoding

  /// The target up to its '?'.
  [[nodiscard]] std::string_view path() const {
    return std::string_view(target).substr(0, target.find('?'));
  }
  /// The target behind its '?', or nothing.
  [[nodiscard]] std::string_view query() const {
    const std::size_t mark = target.find('?');
    return mark == target.npos ? std::string_view() : std::string_view(target).substr(mark + 1);
  }
};

/// Replaces %XX and '+' by what they stand for; malformed escapes are kept as they are.
[[nodiscard]] std::string decode_query_text(std::string_view text);

/// The decoded value of the first "name=value" of a query; a name without '=' has an empty value.
[[nodiscard]] std::optional<std::string> query_value(std::string_view query, std::string_view name);

}  // namespace orrery
