// inference/hugging_face/json_fields.hpp - reads some fields of a JSON object with many, such as
// the config.json of a model.
//
// Made while a model is loaded, used by one thread; borrows the object. The first error is kept and
// names the file, the key, what was expected and what was found; after it, fields read as absent.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace orrery {

/// Reads a file with a JSON object of at most 64 MB. Errors name the file.
[[nodiscard]] Result<nlohmann::json> read_json_object(const std::string& path);
/// Parses a JSON object. Errors name `file`.
[[nodiscard]] Result<nlohmann::json> parse_json_object(std::string_view text,
                                                       const std::string& file);

class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, std::string file)
      : object_(object), file_(std::move(file)) {}

  /// Returns a field that is there and not null, else nullptr.
  [[nodiscard]] const nlohmann::json* find(const std::string& key) const;

  struct Range {
    double low = 0;
    double high = 0;
  };
  /// A number in a range; `absent` where it is not there, an error if that is nothing.
  [[nodiscard]] std::int64_t whole(const std::string& key, Range range,
                                   std::optional<std::int64_t> absent);
  [[nodiscard]] double number(const std::string& key, Range range, std::optional<double> absent);
  /// A truth value; nothing where it is not there.
  [[nodiscard]] std::optional<bool> flag(const std::string& key);
  [[nodiscard]] std::string text(const std::string& key, std::string absent);
  /// One token or a list of them, of `vocab`; none where it is not there.
  [[nodiscard]] std::vector<std::int32_t> tokens(const std::string& key, std::int64_t vocab);

  /// Keeps the error that a field is not as it must be.
  void refuse(const std::string& key, std::string_view expectation);
  [[nodiscard]] Status& status() { return status_; }
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  const nlohmann::json& object_;
  std::string file_;
  Status status_;
};

}  // namespace orrery
