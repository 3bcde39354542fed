// inference/gguf/gguf_fields.hpp - reads entries of the metadata of a GGUF file.
//
// Made while a model is loaded, used by one thread; borrows the file. The first error is kept and
// names the file, the key, its byte and what was expected; after it, entries read as absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "inference/gguf/gguf_file.hpp"

namespace orrery {

class GgufFields {
 public:
  explicit GgufFields(const GgufFile& file) : file_(file) {}

  [[nodiscard]] const GgufFile& file() const { return file_; }
  [[nodiscard]] bool has(std::string_view key) const { return file_.find(key) != nullptr; }

  struct Range {
    double low = 0;
    double high = 0;
  };
  /// A number in a range; `absent` where it is not there, an error if that is nothing.
  [[nodiscard]] std::int64_t whole(std::string_view key, Range range,
                                   std::optional<std::int64_t> absent);
  [[nodiscard]] double number(std::string_view key, Range range, std::optional<double> absent);
  /// A truth value; nothing where it is not there.
  [[nodiscard]] std::optional<bool> flag(std::string_view key);
  /// A text of UTF-8.
  [[nodiscard]] std::string text(std::string_view key, std::optional<std::string> absent);
  /// Texts that may be no UTF-8, and numbers; none where the key is not there.
  [[nodiscard]] std::vector<std::string_view> texts(std::string_view key);
  [[nodiscard]] std::vector<double> numbers(std::string_view key);

  /// Keeps the error that an entry is not as it must be.
  void refuse(std::string_view key, std::string_view expectation);
  [[nodiscard]] Status& status() { return status_; }

 private:
  /// Returns the value of a key that is there, before any error; else nullptr.
  [[nodiscard]] const GgufValue* find(std::string_view key) const;

  const GgufFile& file_;
  Status status_;
};

}  // namespace orrery
