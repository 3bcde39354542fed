#include <fmt/format.h>

#include <algorithm>

#include "tokens/chat/template_call.hpp"
#include "tokens/text/python_text.hpp"
#include "tokens/text/unicode_class.hpp"

namespace orrery {
namespace {

struct JsonStyle {
  std::string indent;  ///< of a level
  bool has_lines = false;
  std::string between = ", ";
  std::string behind_key = ": ";
  bool sorts = false;
  bool only_ascii = false;
};

JsonStyle style_of(const CallArguments& arguments) {
  arguments.require(4, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  const TemplateValue* ascii = arguments.find(0, "ensure_ascii");
  const TemplateValue* indent = arguments.find(1, "indent");
  const TemplateValue* separators = arguments.find(2, "separators");
  const TemplateValue* sorts = arguments.find(3, "sort_keys");
  style.only_ascii = ascii != nullptr && is_true(*ascii);
  style.sorts = sorts != nullptr && is_true(*sorts);
  if (indent != nullptr && !indent->is_none()) {
    style.has_lines = true;
    style.between = ",";
    if (indent->as_text() != nullptr) {
      style.indent = *indent->as_text();
    } else {
      style.indent.assign(
          static_cast<std::size_t>(std::clamp<std::int64_t>(whole_argument(*indent), 0, 64)), ' ');
    }
  }
  if (separators != nullptr && !separators->is_none()) {
    const ListValue* pair = separators->as_list();
    if (pair == nullptr || pair->items.size() != 2) template_fault("separators must be two texts");
    style.between = text_argument(pair->items[0]);
    style.behind_key = text_argument(pair->items[1]);
  }
  return style;
}

class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, TemplateBudget& budget) : style_(style), budget_(budget) {}

  void write(const TemplateValue& value, std::size_t level) {
    budget_.step();
    if (const std::string* text = value.as_text()) {
      write_text(*text);
    } else if (const ListValue* list = value.as_list(); list != nullptr && list->view.empty()) {
      write_list(*list, level);
    } else if (const MappingValue* mapping = value.as_mapping()) {
      write_mapping(*mapping, level);
    } else {
      json_ += scalar(value);
    }
  }
  std::string take() {
    budget_.charge_bytes(json_.size());
    return std::move(json_);
  }

 private:
  static std::string scalar(const TemplateValue& value) {
    if (value.is_none()) return "null";
    if (const bool* truth = value.get<bool>()) return *truth ? "true" : "false";
    if (const auto* whole = value.get<std::int64_t>()) return fmt::format("{}", *whole);
    if (const double* real = value.get<double>()) {
      if (*real != *real) return "NaN";
      const std::string shown = python_repr(*real);
      return shown == "inf" ? "Infinity" : shown == "-inf" ? "-Infinity" : shown;
    }
    template_fault(fmt::format("Object of type {} is not JSON serializable", type_of(value)));
  }
  void write_unit(char32_t unit) { json_ += fmt::format("\\u{:04x}", +unit); }
  void write_text(std::string_view text) {
    constexpr std::string_view kFrom = "\"\\\n\r\t\b\f";
    constexpr std::string_view kTo = "\"\\nrtbf";
    budget_.charge_bytes(text.size());
    json_ += '"';
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint point = code_point_at(text, at);
      const std::size_t known =
          point.value < 128 ? kFrom.find(static_cast<char>(point.value)) : std::string_view::npos;
      if (known != std::string_view::npos) {
        json_ += '\\';
        json_ += kTo[known];
      } else if (point.value < 0x20 || (style_.only_ascii && point.value >= 0x7F &&
                                        point.value != 0x7F && point.value < 0x10000)) {
        write_unit(point.value);
      } else if (style_.only_ascii && point.value >= 0x10000 && point.value != kNoCodePoint) {
        write_unit(0xD800 + ((point.value - 0x10000) >> 10));
        write_unit(0xDC00 + ((point.value - 0x10000) & 0x3FF));
      } else {
        json_ += text.substr(at, point.size);
      }
      at += point.size;
    }
    json_ += '"';
  }
  void end_line(std::size_t level) {
    if (!style_.has_lines) return;
    json_ += '\n';
    for (std::size_t i = 0; i < level; ++i) json_ += style_.indent;
    budget_.charge_bytes(level * style_.indent.size());
  }
  void write_list(const ListValue& list, std::size_t level) {
    json_ += '[';
    bool first = true;
    for (const TemplateValue& item : list.items) {
      if (!first) json_ += style_.between;
      first = false;
      end_line(level + 1);
      write(item, level + 1);
    }
    if (!first) end_line(level);
    json_ += ']';
  }
  void write_mapping(const MappingValue& mapping, std::size_t level) {
    auto entries = mapping.entries;
    if (style_.sorts) {
      std::ranges::stable_sort(entries, [&](const auto& a, const auto& b) {
        return is_less(a.first, b.first, budget_);
      });
    }
    json_ += '{';
    bool first = true;
    for (const auto& [key, value] : entries) {
      if (!first) json_ += style_.between;
      first = false;
      end_line(level + 1);
      write_text(key.as_text() != nullptr ? *key.as_text() : scalar(key));
      json_ += style_.behind_key;
      write(value, level + 1);
    }
    if (!first) end_line(level);
    json_ += '}';
  }

  const JsonStyle& style_;
  TemplateBudget& budget_;
  std::string json_;
};

}  // namespace

std::string json_of(const TemplateValue& value, const CallArguments& arguments,
                    TemplateBudget& budget) {
  const JsonStyle style = style_of(arguments);
  JsonWriter writer(style, budget);
  writer.write(value, 0);
  return writer.take();
}

}  // namespace orrery
