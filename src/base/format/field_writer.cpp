#include "base/format/field_writer.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

namespace orrery {

Json json_number(double value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (value == std::floor(value) && std::abs(value) <= kExact) {
    return Json(static_cast<std::int64_t>(value));
  }
  return Json(value);
}

void JsonSink::open_mapping() { open_.push_back({Json::object(), ""}); }

void JsonSink::open_list() { open_.push_back({Json::array(), ""}); }

void JsonSink::field(std::string_view key) { open_.back().key = key; }

void JsonSink::close() {
  Json value = std::move(open_.back().value);
  open_.pop_back();
  put(std::move(value));
}

void JsonSink::put(Json value) {
  if (open_.empty()) {
    done_ = std::move(value);
  } else if (open_.back().value.is_array()) {
    open_.back().value.push_back(std::move(value));
  } else {
    open_.back().value[open_.back().key] = std::move(value);
  }
}

void JsonSink::quantity(double value, const QuantityKind&, double bare_factor) {
  if (bare_factor == 1) return put(json_number(value));
  // Rounded to 15 digits: the division must not turn 2.95 $/h into 2.9500000000000002.
  put(json_number(std::strtod(fmt::format("{:.15g}", value / bare_factor).c_str(), nullptr)));
}

std::string RowSink::next_path() {
  if (open_.empty()) return "";
  Open& parent = open_.back();
  if (parent.kind == Open::Kind::kList) return fmt::format("{}[{}]", parent.path, parent.items++);
  return parent.path.empty() ? key_ : parent.path + "." + key_;
}

void RowSink::open_mapping() { open_.push_back({next_path(), 0, "", Open::Kind::kMapping}); }

void RowSink::close_mapping() { open_.pop_back(); }

void RowSink::open_list() { open_.push_back({next_path(), 0, "", Open::Kind::kList}); }

void RowSink::close_list() {
  const Open list = std::move(open_.back());
  open_.pop_back();
  if (!list.joined.empty()) rows_.push_back({list.path, list.joined});
}

void RowSink::field(std::string_view key) { key_ = key; }

void RowSink::integer(std::int64_t value) { put(fmt::format("{}", value)); }

void RowSink::number(double value) { put(fmt::format("{}", value)); }

void RowSink::quantity(double value, const QuantityKind& kind, double) {
  put(print_quantity(value, kind));
}

void RowSink::put(std::string value) {
  if (!open_.empty() && open_.back().kind == Open::Kind::kList) {
    Open& list = open_.back();
    list.joined += (list.joined.empty() ? "" : ", ") + value;
    return;
  }
  if (!value.empty()) rows_.push_back({next_path(), std::move(value)});
}

}  // namespace orrery
