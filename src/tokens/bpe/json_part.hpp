// tokens/bpe/json_part.hpp - one object of a tokenizer.json with its path, for reading its fields.
//
// Made while a file is loaded; borrows the parsed file. Errors are thrown as a LoadFault, which
// never leaves the module: BpeTokenizer turns it into an Error.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// What a file has that is refused: "pre_tokenizer.type: ...".
struct LoadFault {
  std::string message;
};

class JsonPart {
 public:
  JsonPart(const nlohmann::json& value, std::string path)
      : value_(&value), path_(std::move(path)) {}

  [[nodiscard]] const nlohmann::json& value() const { return *value_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// The field "type".
  [[nodiscard]] std::string type() const { return text("type"); }
  /// A field that must be there.
  [[nodiscard]] JsonPart part(std::string_view key) const;
  [[nodiscard]] std::string text(std::string_view key) const;
  [[nodiscard]] std::int64_t number(std::string_view key) const;
  /// Whether a field is there and not null.
  [[nodiscard]] bool has(std::string_view key) const;
  /// A truth value; false if it is absent or null.
  [[nodiscard]] bool flag(std::string_view key) const;
  /// A truth value; true if it is absent or null.
  [[nodiscard]] bool flag_or_true(std::string_view key) const;
  /// The elements of an array that must be there.
  [[nodiscard]] std::vector<JsonPart> items(std::string_view key) const;
  /// Throws "path: why".
  [[noreturn]] void refuse(std::string_view why) const;

 private:
  const nlohmann::json* value_;
  std::string path_;
};

}  // namespace orrery
