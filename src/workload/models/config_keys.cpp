#include "workload/models/config_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/format/field_reader.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

// Adds the key, which the reader's own message does not name.
tl::unexpected<Error> with_key(std::string_view key, Error error) {
  error.message = fmt::format("\"{}\": {}", key, error.message);
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace

ConfigKeys::ConfigKeys(const DocumentNode& mapping, std::string_view type, Nesting nesting)
    : mapping_(mapping), type_(type), nesting_(nesting), entries_(mapping.entries()) {
  if (mapping.kind() != NodeKind::kMapping) fail(unexpected_node(mapping, "a mapping"));
}

const DocumentNode* ConfigKeys::find_even_null(std::string_view key) const {
  for (const DocumentNode::Entry& entry : entries_) {
    if (entry.key.text() == key) return &entry.value;
  }
  return nullptr;
}

std::optional<DocumentNode> ConfigKeys::node(std::string_view key) const {
  const DocumentNode* value = find_even_null(key);
  if (value == nullptr || value->kind() == NodeKind::kNull) return std::nullopt;
  return *value;
}

SourcePosition ConfigKeys::position(KeyNames names) const {
  for (const std::string_view name : names) {
    if (const std::optional<DocumentNode> value = node(name)) return value->position();
  }
  return mapping_.position();
}

std::int64_t ConfigKeys::use_default(std::string_view key, std::int64_t value) {
  std::string note = fmt::format("{} is not given; {} is the default of {}", key, value, type_);
  if (std::find(defaults_used_.begin(), defaults_used_.end(), note) == defaults_used_.end()) {
    defaults_used_.push_back(std::move(note));
  }
  return value;
}

std::optional<std::int64_t> ConfigKeys::integer(KeyNames names, IntegerRange range) {
  for (const std::string_view name : names) {
    const DocumentNode* value = find_even_null(name);
    if (value == nullptr) {
      if (const auto known = class_default(type_, name, nesting_)) return use_default(name, *known);
      continue;
    }
    if (value->kind() == NodeKind::kNull) continue;
    Result<std::int64_t> read = read_integer(*value, range.low, range.high);
    if (read) return *read;
    fail(with_key(name, std::move(read.error())));
    return std::max<std::int64_t>(1, range.low);
  }
  return std::nullopt;
}

std::int64_t ConfigKeys::required(KeyNames names, IntegerRange range) {
  if (const std::optional<std::int64_t> value = integer(names, range)) return *value;
  missing(names);
  return std::max<std::int64_t>(1, range.low);
}

std::optional<bool> ConfigKeys::truth(std::string_view key) {
  const std::optional<DocumentNode> value = node(key);
  if (!value) return std::nullopt;
  Result<bool> read = read_truth(*value);
  if (read) return *read;
  fail(with_key(key, std::move(read.error())));
  return std::nullopt;
}

std::optional<double> ConfigKeys::number(std::string_view key, double low, double high) {
  const std::optional<DocumentNode> value = node(key);
  if (!value) return std::nullopt;
  Result<double> read = read_number(*value);
  if (!read) {
    fail(with_key(key, std::move(read.error())));
    return std::nullopt;
  }
  if (*read >= low && *read <= high) return *read;
  refuse({key}, fmt::format("\"{}\": {} is out of range, expected {} to {}", key, value->text(),
                            low, high));
  return std::nullopt;
}

std::optional<std::string> ConfigKeys::text(std::string_view key) {
  const std::optional<DocumentNode> value = node(key);
  if (!value) return std::nullopt;
  Result<std::string> read = read_string(*value);
  if (read) return *std::move(read);
  fail(with_key(key, std::move(read.error())));
  return std::nullopt;
}

std::vector<std::int64_t> ConfigKeys::integers(std::string_view key, IntegerRange range) {
  std::vector<std::int64_t> numbers;
  const std::optional<DocumentNode> value = node(key);
  if (!value) return numbers;
  if (value->kind() != NodeKind::kSequence) {
    Status status = unexpected_node(*value, "a list of whole numbers");
    fail(with_key(key, std::move(status.error())));
    return numbers;
  }
  for (const DocumentNode& item : value->items()) {
    Result<std::int64_t> read = read_integer(item, range.low, range.high);
    if (!read) {
      fail(with_key(key, std::move(read.error())));
      return numbers;
    }
    numbers.push_back(*read);
  }
  return numbers;
}

void ConfigKeys::missing(KeyNames names) {
  std::string message = fmt::format("the key \"{}\" is missing", *names.begin());
  for (auto other = names.begin() + 1; other < names.end(); ++other) {
    message += fmt::format("{}\"{}\"", other == names.begin() + 1 ? "; other names for it: " : ", ",
                           *other);
  }
  if (!type_.empty() && find_model_rules(type_) == nullptr) {
    message += fmt::format(" (model_type \"{}\")", printable(type_, 60));
  }
  refuse({}, std::move(message));
}

void ConfigKeys::refuse(KeyNames names, std::string message) {
  fail(input_error(position(names), std::move(message)));
}

void ConfigKeys::fail(Status status) {
  if (status_ && !status) status_ = std::move(status);
}

}  // namespace orrery
