#include "tokens/bpe/json_part.hpp"

#include <fmt/format.h>

#include "base/text/utf8.hpp"

namespace orrery {
namespace {

std::string shown(const nlohmann::json& value) {
  return printable(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), 60);
}

}  // namespace

JsonPart JsonPart::part(std::string_view key) const {
  const std::string inner = path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  if (!value_->is_object()) refuse(fmt::format("expected an object, got {}", shown(*value_)));
  const auto found = value_->find(key);
  if (found == value_->end()) throw LoadFault{fmt::format("{}: expected a value", inner)};
  return {*found, inner};
}

std::string JsonPart::text(std::string_view key) const {
  const JsonPart field = part(key);
  if (!field.value().is_string()) {
    field.refuse(fmt::format("expected a string, got {}", shown(field.value())));
  }
  return field.value().get<std::string>();
}

std::int64_t JsonPart::number(std::string_view key) const {
  const JsonPart field = part(key);
  if (!field.value().is_number_integer() || field.value() < 0 || field.value() > (1 << 30)) {
    field.refuse(fmt::format("expected a whole number from 0, got {}", shown(field.value())));
  }
  return field.value().get<std::int64_t>();
}

bool JsonPart::has(std::string_view key) const {
  if (!value_->is_object()) return false;
  const auto found = value_->find(key);
  return found != value_->end() && !found->is_null();
}

bool JsonPart::flag(std::string_view key) const {
  if (!has(key)) return false;
  const JsonPart field = part(key);
  if (!field.value().is_boolean()) {
    field.refuse(fmt::format("expected true or false, got {}", shown(field.value())));
  }
  return field.value().get<bool>();
}

bool JsonPart::flag_or_true(std::string_view key) const { return !has(key) || flag(key); }

std::vector<JsonPart> JsonPart::items(std::string_view key) const {
  const JsonPart field = part(key);
  if (!field.value().is_array()) {
    field.refuse(fmt::format("expected an array, got {}", shown(field.value())));
  }
  std::vector<JsonPart> parts;
  for (const auto& item : field.value()) {
    parts.emplace_back(item, fmt::format("{}[{}]", field.path(), parts.size()));
  }
  return parts;
}

void JsonPart::refuse(std::string_view why) const {
  throw LoadFault{fmt::format("{}: {}", path_.empty() ? "the file" : path_, why)};
}

}  // namespace orrery
