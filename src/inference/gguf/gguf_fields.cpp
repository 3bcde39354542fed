#include "inference/gguf/gguf_fields.hpp"

#include <fmt/format.h>

#include "base/text/utf8.hpp"

namespace orrery {
namespace {

constexpr std::size_t kShownMax = 60;

std::string shown(const GgufValue& value) {
  if (const auto* text = std::get_if<std::string_view>(&value)) {
    return fmt::format("\"{}\"", printable(*text, kShownMax));
  }
  if (const auto* whole = std::get_if<std::uint64_t>(&value)) return fmt::format("{}", *whole);
  if (const auto* number = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *number);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  return fmt::format("an array of {}", std::get<GgufArray>(value).count);
}

}  // namespace

const GgufValue* GgufFields::find(std::string_view key) const {
  const GgufEntry* entry = status_ ? file_.find(key) : nullptr;
  return entry == nullptr ? nullptr : &entry->value;
}

void GgufFields::refuse(std::string_view key, std::string_view expectation) {
  if (!status_) return;
  const GgufEntry* entry = file_.find(key);
  const std::string found =
      entry == nullptr ? "is not there"
                       : fmt::format("(byte {}) is {}", entry->offset, shown(entry->value));
  status_ = input_error({file_.file()}, fmt::format("{} {}, expected {}", key, found, expectation));
}

std::int64_t GgufFields::whole(std::string_view key, Range range,
                               std::optional<std::int64_t> absent) {
  const GgufValue* value = find(key);
  if (value == nullptr && absent) return *absent;
  double number = -1;
  if (value != nullptr) {
    if (const auto* natural = std::get_if<std::uint64_t>(value)) {
      number = static_cast<double>(*natural);
    } else if (const auto* whole = std::get_if<std::int64_t>(value)) {
      number = static_cast<double>(*whole);
    }
  }
  if (number >= range.low && number <= range.high) return static_cast<std::int64_t>(number);
  refuse(key, fmt::format("a whole number from {:.0f} to {:.0f}", range.low, range.high));
  return absent.value_or(static_cast<std::int64_t>(range.low));
}

double GgufFields::number(std::string_view key, Range range, std::optional<double> absent) {
  const GgufValue* value = find(key);
  if (value == nullptr && absent) return *absent;
  const auto* number = value == nullptr ? nullptr : std::get_if<double>(value);
  if (number != nullptr && *number >= range.low && *number <= range.high) return *number;
  refuse(key, fmt::format("a float from {} to {}", range.low, range.high));
  return absent.value_or(range.low);
}

std::optional<bool> GgufFields::flag(std::string_view key) {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* truth = std::get_if<bool>(value)) return *truth;
  refuse(key, "true or false");
  return std::nullopt;
}

std::string GgufFields::text(std::string_view key, std::optional<std::string> absent) {
  const GgufValue* value = find(key);
  if (value == nullptr && absent) return *absent;
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string_view>(value);
  if (text != nullptr && first_invalid_utf8(*text) == std::string_view::npos) {
    return std::string(*text);
  }
  refuse(key, "a text");
  return absent.value_or("");
}

std::vector<std::string_view> GgufFields::texts(std::string_view key) {
  const GgufValue* value = find(key);
  if (value == nullptr) return {};
  const auto* array = std::get_if<GgufArray>(value);
  if (array != nullptr && array->type == GgufType::kString) return strings_of(*array);
  refuse(key, "an array of texts");
  return {};
}

std::vector<double> GgufFields::numbers(std::string_view key) {
  const GgufValue* value = find(key);
  if (value == nullptr) return {};
  const auto* array = std::get_if<GgufArray>(value);
  if (array != nullptr && is_number(array->type)) return numbers_of(*array);
  refuse(key, "an array of numbers");
  return {};
}

}  // namespace orrery
