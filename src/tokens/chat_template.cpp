#include "tokens/chat_template.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/text/utf8.hpp"
#include "tokens/chat/template_fault.hpp"
#include "tokens/chat/template_node.hpp"
#include "tokens/chat/template_renderer.hpp"
#include "tokens/chat/template_value.hpp"

namespace orrery {
namespace {

constexpr std::size_t kTextMax = std::size_t{1} << 20;  ///< bytes

TemplateValue value_of(const nlohmann::ordered_json& json, int depth) {
  if (depth > TemplateValue::kDepthMax / 2) template_fault("the variables are nested too deep");
  if (json.is_null()) return {};
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_string()) return TemplateValue::text(json.get<std::string>());
  if (json.is_number_float()) return json.get<double>();
  if (json.is_number_unsigned() &&
      json.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
    template_fault("a number of the variables is too large");
  }
  if (json.is_number()) return json.get<std::int64_t>();
  if (json.is_array()) {
    std::vector<TemplateValue> items;
    for (const auto& item : json) items.push_back(value_of(item, depth + 1));
    return TemplateValue::list(std::move(items));
  }
  MappingValue mapping;
  for (const auto& [key, value] : json.items()) {
    mapping.entries.emplace_back(TemplateValue::text(key), value_of(value, depth + 1));
    mapping.depth = std::max(mapping.depth, mapping.entries.back().second.depth() + 1);
  }
  return TemplateValue::Mapping(std::make_shared<const MappingValue>(std::move(mapping)));
}

tl::unexpected<Error> template_error(const std::string& name, std::string_view why) {
  return input_error({}, fmt::format("chat template \"{}\": {}", name, why));
}

}  // namespace

Result<ChatTemplate> ChatTemplate::of(std::string_view text, const std::string& name) {
  if (text.size() > kTextMax) {
    return template_error(name,
                          fmt::format("{} bytes, expected at most {}", text.size(), kTextMax));
  }
  try {
    return ChatTemplate(name, parse_template(text));
  } catch (const TemplateFault& fault) {
    return input_error({name, fault.line, fault.line > 0 ? 1 : 0}, fault.message);
  }
}

Result<ChatTemplate> ChatTemplate::of_config(std::string_view json, const std::string& name,
                                             std::string_view wanted) {
  const auto config = nlohmann::json::parse(json, nullptr, false);
  if (!config.is_object() || !config.contains("chat_template")) {
    return template_error(name, "expected an object with \"chat_template\"");
  }
  const auto& field = config["chat_template"];
  if (field.is_string()) return of(field.get<std::string>(), name);
  std::optional<std::string> text;
  for (const auto& each : field.is_array() ? field : nlohmann::json::array()) {
    const bool good = each.is_object() && each.contains("name") && each["name"].is_string() &&
                      each.contains("template") && each["template"].is_string();
    if (!good) return template_error(name, "expected templates of the form {name, template}");
    if (each["name"] == wanted || (each["name"] == "default" && !text)) {
      text = each["template"].get<std::string>();
      if (each["name"] == wanted) break;
    }
  }
  if (!text) {
    return template_error(name, fmt::format("has no template \"{}\" and none named \"default\"",
                                            printable(wanted, 60)));
  }
  return of(*text, name);
}

ChatTemplate::ChatTemplate(std::string name, std::unique_ptr<const TemplateNode> tree)
    : name_(std::move(name)), tree_(std::move(tree)) {}

ChatTemplate::ChatTemplate(ChatTemplate&& other) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&& other) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<std::string> ChatTemplate::render(const Rendering& rendering) const {
  try {
    TemplateRenderer renderer({rendering.limits.steps, rendering.limits.bytes}, rendering.now);
    if (!rendering.variables.is_object()) template_fault("expected an object of variables");
    for (const auto& [key, value] : rendering.variables.items()) {
      renderer.set(key, value_of(value, 0));
    }
    return renderer.render(*tree_);
  } catch (const TemplateFault& fault) {
    return input_error({name_, fault.line, fault.line > 0 ? 1 : 0}, fault.message);
  }
}

}  // namespace orrery
