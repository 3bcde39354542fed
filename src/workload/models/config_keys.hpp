// workload/models/config_keys.hpp - the keys of one model configuration, looked up by need.
//
// Unlike FieldReader it ignores keys that are not looked up (a config.json has dozens), takes the
// first of several names for one thing, distinguishes an explicit null (no value, not even the
// class default) from an absent key, and records each class default it falls back on. The first
// failure is kept; after it look-ups return small valid values, so that a reader can run to its end
// and then check status(). Borrows the document. Cost: a look-up is O(keys).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/format/document.hpp"
#include "workload/models/model_rules.hpp"

namespace orrery {

/// Up to four names of one thing, the first that is given wins.
class KeyNames {
 public:
  constexpr KeyNames(std::initializer_list<std::string_view> names) : size_(names.size()) {
    std::size_t at = 0;
    for (const std::string_view name : names) names_[at++] = name;
  }
  [[nodiscard]] constexpr auto begin() const { return names_.begin(); }
  [[nodiscard]] constexpr auto end() const { return begin() + static_cast<std::ptrdiff_t>(size_); }

 private:
  std::array<std::string_view, 4> names_{};
  std::size_t size_;
};

struct IntegerRange {
  std::int64_t low = 1;
  std::int64_t high = 1 << 24;
};

/// Widths, heads, vocabularies.
inline constexpr IntegerRange kSizes{1, 1 << 24};
/// Sizes for which 0 means "none".
inline constexpr IntegerRange kSizesOrNone{0, 1 << 24};

class ConfigKeys {
 public:
  /// `mapping` may be anything; all that is not a mapping has no keys and a failed status.
  ConfigKeys(const DocumentNode& mapping, std::string_view type, Nesting nesting);

  [[nodiscard]] std::string_view type() const { return type_; }

  /// Failures: not a whole number, out of range. No value: absent without a default, or null.
  [[nodiscard]] std::optional<std::int64_t> integer(KeyNames names, IntegerRange range = kSizes);
  /// Reads like integer(), but no value is a failure.
  [[nodiscard]] std::int64_t required(KeyNames names, IntegerRange range = kSizes);
  [[nodiscard]] std::optional<bool> truth(std::string_view key);
  [[nodiscard]] std::optional<double> number(std::string_view key, double low, double high);
  [[nodiscard]] std::optional<std::string> text(std::string_view key);
  /// Empty when absent or null.
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view key, IntegerRange range);

  /// The value; none if absent or null.
  [[nodiscard]] std::optional<DocumentNode> node(std::string_view key) const;
  [[nodiscard]] bool has(std::string_view key) const { return node(key).has_value(); }
  /// Whether the key is present, even if null.
  [[nodiscard]] bool mentions(std::string_view key) const { return find_even_null(key) != nullptr; }
  /// The position of the value of the first name given, else of the mapping.
  [[nodiscard]] SourcePosition position(KeyNames names) const;

  void missing(KeyNames names);
  /// Records a failure at the position of the names.
  void refuse(KeyNames names, std::string message);
  void fail(Status status);
  [[nodiscard]] const Status& status() const { return status_; }

  /// "vocab_size is not given; 32000 is the default of llama", one for each default used.
  [[nodiscard]] const std::vector<std::string>& defaults_used() const { return defaults_used_; }

 private:
  const DocumentNode* find_even_null(std::string_view key) const;
  std::int64_t use_default(std::string_view key, std::int64_t value);

  DocumentNode mapping_;
  std::string type_;
  Nesting nesting_;
  std::vector<DocumentNode::Entry> entries_;
  Status status_;
  std::vector<std::string> defaults_used_;
};

}  // namespace orrery
