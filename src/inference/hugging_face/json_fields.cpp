#include "inference/hugging_face/json_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/format/document.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

constexpr std::size_t kFileMax = std::size_t{64} << 20;
constexpr std::size_t kShownMax = 60;
constexpr int kDepthMax = 64;

std::string shown(const nlohmann::json& value) {
  return printable(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), kShownMax);
}

}  // namespace

Result<nlohmann::json> parse_json_object(std::string_view text, const std::string& file) {
  try {
    // Showing a value is recursive, and no such file is deep.
    bool deep = false;
    nlohmann::json json = nlohmann::json::parse(
        text, [&deep](int depth, nlohmann::json::parse_event_t, const nlohmann::json&) {
          deep = deep || depth > kDepthMax;
          return !deep;
        });
    if (deep) {
      return input_error({file}, fmt::format("expected a JSON object with values in at most {} "
                                             "others",
                                             kDepthMax));
    }
    if (json.is_object()) return json;
    return input_error({file}, fmt::format("expected a JSON object, found {}", shown(json)));
  } catch (const nlohmann::json::exception& error) {
    // What the library says begins with its name for the error in brackets.
    const std::string_view why = error.what();
    return input_error(
        {file}, fmt::format("expected a JSON object: {}",
                            printable(why.substr(std::min(why.size(), why.find(']') + 2)), 200)));
  }
}

Result<nlohmann::json> read_json_object(const std::string& path) {
  Result<std::string> text = read_file(path, kFileMax);
  if (!text) return forward_error(text);
  return parse_json_object(*text, path);
}

const nlohmann::json* JsonFields::find(const std::string& key) const {
  if (!status_) return nullptr;
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void JsonFields::refuse(const std::string& key, std::string_view expectation) {
  if (!status_) return;
  const auto found = object_.find(key);
  const std::string value = found == object_.end() ? "nothing" : shown(*found);
  status_ = input_error({file_}, fmt::format("\"{}\" is {}, expected {}", key, value, expectation));
}

std::int64_t JsonFields::whole(const std::string& key, Range range,
                               std::optional<std::int64_t> absent) {
  const nlohmann::json* value = find(key);
  if (value == nullptr && absent) return *absent;
  const double number = value != nullptr && value->is_number_integer() ? value->get<double>() : -1;
  if (number >= range.low && number <= range.high) return value->get<std::int64_t>();
  refuse(key, fmt::format("a whole number from {:.0f} to {:.0f}", range.low, range.high));
  return absent.value_or(static_cast<std::int64_t>(range.low));
}

double JsonFields::number(const std::string& key, Range range, std::optional<double> absent) {
  const nlohmann::json* value = find(key);
  if (value == nullptr && absent) return *absent;
  const double number = value != nullptr && value->is_number() ? value->get<double>() : -1;
  if (number >= range.low && number <= range.high) return number;
  refuse(key, fmt::format("a number from {} to {}", range.low, range.high));
  return absent.value_or(range.low);
}

std::optional<bool> JsonFields::flag(const std::string& key) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  refuse(key, "true or false");
  return std::nullopt;
}

std::string JsonFields::text(const std::string& key, std::string absent) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return absent;
  if (value->is_string()) return value->get<std::string>();
  refuse(key, "a text");
  return absent;
}

std::vector<std::int32_t> JsonFields::tokens(const std::string& key, std::int64_t vocab) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return {};
  const nlohmann::json list = value->is_array() ? *value : nlohmann::json::array({*value});
  std::vector<std::int32_t> tokens;
  for (const nlohmann::json& each : list) {
    const double token = each.is_number_integer() ? each.get<double>() : -1;
    if (!(token >= 0 && token < static_cast<double>(vocab))) {
      refuse(key, fmt::format("tokens from 0 to {}", vocab - 1));
      return {};
    }
    tokens.push_back(each.get<std::int32_t>());
  }
  return tokens;
}

}  // namespace orrery
