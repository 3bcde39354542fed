// http/web_headers.hpp - the header fields of an HTTP message: WebHeader to send, WebHeaders as
// received.
//
// A WebHeader borrows its texts. WebHeaders owns the bytes of all its fields in one string, in the
// order of the message. Names compare without regard to ASCII case. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

struct WebHeader {
  std::string_view name;
  std::string_view value;
};

/// Whether two names of fields, or tokens, are the same but for ASCII case.
[[nodiscard]] bool same_token(std::string_view a, std::string_view b);
/// Whether a comma-separated list, such as the value of Connection, holds the token.
[[nodiscard]] bool lists_token(std::string_view list, std::string_view token);

class WebHeaders {
 public:
  void add(std::string_view name, std::string_view value);
  /// Keeps the memory for the next message.
  void clear();

  [[nodiscard]] std::size_t size() const { return fields_.size(); }
  /// Field `index` of the message. Precondition: index < size(). The views live until a change.
  [[nodiscard]] WebHeader at(std::size_t index) const;
  /// The value of the first field of that name. O(size).
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;

 private:
  struct Field {
    std::uint32_t begin = 0;  ///< of the name in text_; the value follows it
    std::uint32_t name_size = 0;
    std::uint32_t value_size = 0;
  };

  std::string text_;
  std::vector<Field> fields_;
};

}  // namespace orrery
