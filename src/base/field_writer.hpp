// base/field_writer.hpp - writes the structs of base/field_reader.hpp back: as JSON for programs,
// as "key  value with unit" rows for people.
//
// JSON keeps bare numbers in the unit the key names; empty optionals become null, empty lists [].
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/field_reader.hpp"

namespace orrery {

using Json = nlohmann::ordered_json;

template <WordedEnum T>
[[nodiscard]] std::string_view word_of(T value) {
  for (const auto& entry : enum_words(T{})) {
    if (entry.value == value) return entry.word;
  }
  return "";
}

/// A number as JSON: whole ones up to 2^53 as integers, so that "8" does not become "8.0".
[[nodiscard]] Json json_number(double value);

class JsonWriter {
 public:
  template <class T>
  void required(std::string_view key, const T& value) {
    json_[std::string(key)] = to_json(value);
  }
  template <class T>
  void optional(std::string_view key, const T& value) {
    required(key, value);
  }
  void elsewhere(std::string_view) {}

  [[nodiscard]] Json take() { return std::move(json_); }

  template <class T>
  [[nodiscard]] static Json to_json(const T& value);

 private:
  Json json_ = Json::object();
};

namespace detail {

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

}  // namespace detail

template <class T>
Json JsonWriter::to_json(const T& value) {
  if constexpr (detail::IsOptional<T>::value) {
    return value.has_value() ? to_json(*value) : Json(nullptr);
  } else if constexpr (detail::IsPairs<T>::value) {
    Json object = Json::object();
    for (const auto& [key, item] : value) object[key] = to_json(item);
    return object;
  } else if constexpr (detail::IsVector<T>::value) {
    Json array = Json::array();
    for (const auto& item : value) array.push_back(to_json(item));
    return array;
  } else if constexpr (detail::IsQuantity<T>::value) {
    return json_number(value.value());
  } else if constexpr (detail::IsInUnit<T>::value) {
    // Rounded to 15 digits: the division must not turn 2.95 $/h into 2.9500000000000002.
    return json_number(std::stod(fmt::format("{:.15g}", value.quantity.value() / T::kBaseUnits)));
  } else if constexpr (std::floating_point<T>) {
    return json_number(value);
  } else if constexpr (WordedEnum<T>) {
    return Json(word_of(value));
  } else if constexpr (std::same_as<T, std::string> || std::integral<T>) {
    return Json(value);
  } else {
    JsonWriter writer;
    describe(writer, value);
    return writer.take();
  }
}

/// Rows of a struct for a person; absent values are left out, nested keys joined with a dot.
class TextWriter {
 public:
  struct Row {
    std::string key;
    std::string value;
  };

  explicit TextWriter(std::string prefix = "") : prefix_(std::move(prefix)) {}

  template <class T>
  void required(std::string_view key, const T& value) {
    add(prefix_ + std::string(key), value);
  }
  template <class T>
  void optional(std::string_view key, const T& value) {
    required(key, value);
  }
  void elsewhere(std::string_view) {}

  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }

 private:
  template <class T>
  void add(const std::string& key, const T& value);
  void row(const std::string& key, std::string value) {
    if (!value.empty()) rows_.push_back({key, std::move(value)});
  }

  std::string prefix_;
  std::vector<Row> rows_;
};

template <class T>
void TextWriter::add(const std::string& key, const T& value) {
  if constexpr (detail::IsOptional<T>::value) {
    if (value.has_value()) add(key, *value);
  } else if constexpr (detail::IsPairs<T>::value) {
    for (const auto& [name, item] : value) add(key + "." + name, item);
  } else if constexpr (detail::IsVector<T>::value) {
    std::string joined;
    for (std::size_t i = 0; i < value.size(); ++i) {
      using Item = typename T::value_type;
      if constexpr (Describable<Item> || detail::IsVector<Item>::value) {
        add(key + "[" + std::to_string(i) + "]", value[i]);
      } else {
        TextWriter item;
        item.add("", value[i]);
        joined += (joined.empty() ? "" : ", ") + (item.rows_.empty() ? "" : item.rows_[0].value);
      }
    }
    row(key, std::move(joined));
  } else if constexpr (detail::IsQuantity<T>::value) {
    row(key, print(value));
  } else if constexpr (detail::IsInUnit<T>::value) {
    row(key, print(value.quantity));
  } else if constexpr (WordedEnum<T>) {
    row(key, std::string(word_of(value)));
  } else if constexpr (std::same_as<T, std::string>) {
    row(key, value);
  } else if constexpr (std::same_as<T, bool>) {
    row(key, value ? "yes" : "no");
  } else if constexpr (std::integral<T> || std::floating_point<T>) {
    row(key, fmt::format("{}", value));
  } else {
    TextWriter nested(key + ".");
    describe(nested, value);
    for (const Row& inner : nested.rows_) rows_.push_back(inner);
  }
}

}  // namespace orrery
