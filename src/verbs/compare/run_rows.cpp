#include "verbs/compare/run_rows.hpp"

#include "base/format/document.hpp"

namespace orrery {

Result<Json> run_rows(const std::string& path) {
  constexpr std::size_t kRunFileMax = std::size_t{64} << 20;
  Result<std::string> text = read_file(path, kRunFileMax);
  if (!text) return forward_error(text);
  Json json = Json::parse(*text, nullptr, false);
  if (json.is_object() && json.contains("rows")) json = json["rows"];
  if (json.is_array()) return json;
  return input_error({.file = path}, "expected a run file: {\"rows\": [...]} as JSON");
}

std::optional<double> number_in(const Json& object, const char* key) {
  if (!object.is_object()) return std::nullopt;
  const auto at = object.find(key);
  if (at == object.end() || !at->is_number()) return std::nullopt;
  return at->get<double>();
}

std::string text_in(const Json& row, const char* key) {
  if (!row.is_object()) return "";
  const auto at = row.find(key);
  return at != row.end() && at->is_string() ? at->get<std::string>() : "";
}

std::string group_in(const Json& row) { return text_in(row, "group"); }

}  // namespace orrery
