// A spec as the YAML a person would write, or as JSON.
#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <utility>

#include "base/field_writer.hpp"
#include "fleet/spec.hpp"

namespace orrery {
namespace {

// Four digits where they are the value, else one digit less than a double has: the rounding of
// the unit's factor stays invisible.
std::string exact(double value, const QuantityKind& kind) {
  std::string shown = print_quantity(value, kind);
  const Result<double> back = parse_quantity(shown, kind);
  if (back && std::abs(*back - value) <= 1e-12 * std::abs(value)) return shown;
  const UnitSymbol& unit = kind.units.front();
  const std::string number = fmt::format("{:.15g}", value / unit.factor);
  if (unit.symbol.starts_with('$')) return fmt::format("${}{}", number, unit.symbol.substr(1));
  return fmt::format("{} {}", number, unit.symbol);
}

/// A spec as JSON that reads back: quantities keep their unit, absent keys stay away.
class SpecJsonSink final : public JsonSink {
 public:
  void absent() override {}
  void quantity(double value, const QuantityKind& kind, double) override {
    put(exact(value, kind));
  }
};

/// Collects a spec as a tree whose leaves are YAML scalars, without the optional keys that say what
/// is so anyway: nothing, or a count or factor of 1.
class SpecSink final : public JsonSink {
 public:
  void field(std::string_view key, Presence presence) override {
    JsonSink::field(key, presence);
    presence_ = presence;
  }
  void open_mapping() override {
    presence_ = Presence::kRequired;
    JsonSink::open_mapping();
  }
  void open_list() override {
    skip_list_ = presence_ == Presence::kEmpty;
    presence_ = Presence::kRequired;
    JsonSink::open_list();
  }
  void absent() override { presence_ = Presence::kRequired; }
  void truth(bool value) override { scalar(value ? "true" : "false"); }
  void integer(std::int64_t value) override { plain_number(static_cast<double>(value)); }
  void number(double value) override { plain_number(value); }
  void text(std::string_view value) override { scalar(quoted_where_needed(value)); }
  void quantity(double value, const QuantityKind& kind, double) override {
    scalar(exact(value, kind));
  }

 protected:
  void put(Json value) override {
    if (value.is_array() && value.empty() && skip_list_) return;
    JsonSink::put(std::move(value));
  }

 private:
  void scalar(const std::string& text) {
    const Presence presence = std::exchange(presence_, Presence::kRequired);
    if (presence != Presence::kEmpty) put(text);
  }

  void plain_number(double value) {
    if (presence_ == Presence::kOptional && value == 1) presence_ = Presence::kEmpty;
    scalar(fmt::format("{}", value));
  }

  static std::string quoted_where_needed(std::string_view text) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+";
    const bool plain = !text.empty() && text.find_first_not_of(kPlain) == text.npos &&
                       std::isalpha(static_cast<unsigned char>(text.front())) != 0 &&
                       text != "null" && text != "Null" && text != "true" && text != "false";
    return plain ? std::string(text) : quoted(text);
  }

  // In double quotes; what YAML takes for a control character or a line break is escaped.
  static std::string quoted(std::string_view text) {
    const auto byte = [&](std::size_t at) {
      return at < text.size() ? static_cast<unsigned>(static_cast<unsigned char>(text[at])) : 0u;
    };
    std::string out = "\"";
    for (std::size_t i = 0; i < text.size(); ++i) {
      const unsigned three = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
      if (text[i] == '"' || text[i] == '\\') {
        out += {'\\', text[i]};
      } else if (byte(i) < 0x20 || byte(i) == 0x7F) {
        out += fmt::format("\\x{:02x}", byte(i));
      } else if (byte(i) == 0xC2 && byte(i + 1) < 0xA0) {
        out += fmt::format("\\u{:04x}", byte(++i));
      } else if (three == 0xE280A8 || three == 0xE280A9 || three == 0xEFBBBF || three == 0xEFBFBE ||
                 three == 0xEFBFBF) {
        const unsigned point =
            (three >> 16 & 0xF) << 12 | (three >> 8 & 0x3F) << 6 | (three & 0x3F);
        out += fmt::format("\\u{:04x}", point);
        i += 2;
      } else {
        out += text[i];
      }
    }
    return out + "\"";
  }

  Presence presence_ = Presence::kRequired;
  bool skip_list_ = false;
};

std::string inline_list(const Json& list) {
  std::string text = "[";
  for (const Json& item : list) {
    text += text.size() == 1 ? "" : ", ";
    text += item.is_array() ? inline_list(item) : item.get<std::string>();
  }
  return text + "]";
}

void print_mapping(const Json& mapping, std::size_t indent, std::string& out) {
  for (const auto& [key, value] : mapping.items()) {
    out += std::string(indent, ' ') + key + ":";
    if (value.is_string()) {
      out += " " + value.get<std::string>() + "\n";
    } else if (value.is_object()) {
      out += "\n";
      print_mapping(value, indent + 2, out);
    } else if (value.empty() || !value.front().is_object()) {
      out += " " + inline_list(value) + "\n";
    } else {
      out += "\n";
      for (const Json& item : value) {
        const std::size_t dash = out.size() + indent;
        print_mapping(item, indent + 2, out);
        out[dash] = '-';
      }
    }
  }
}

}  // namespace

Json fleet_spec_json(const FleetSpec& spec) {
  SpecJsonSink sink;
  write_value(sink, spec);
  return sink.take();
}

std::string write_fleet_spec(const FleetSpec& spec) {
  SpecSink sink;
  write_value(sink, spec);
  std::string out;
  print_mapping(sink.take(), 0, out);
  return out;
}

}  // namespace orrery
