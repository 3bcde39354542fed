// base/format/yaml_writer.hpp - a described struct as the YAML a person would write.
//
// Fields that are as in a new struct are left out, and a mapping of which only its sole field
// remains is that field's value. Quantities keep their unit. What is written,
// base/format/field_reader.hpp reads back to the same struct (quantities: but for the last bits).
// Cost: O(fields), each of a nested struct once more for every struct around it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/format/field_writer.hpp"

namespace orrery {

/// Collects a tree whose leaves are YAML scalars.
class YamlSink final : public FieldSink {
 public:
  void open_mapping() override;
  void field(std::string_view key) override;
  void sole_field(std::string_view key) override;
  bool open_defaults() override;
  void close_mapping() override;
  void open_list() override;
  void close_list() override;
  void absent() override;
  void truth(bool value) override { put(value ? "true" : "false"); }
  void integer(std::int64_t value) override;
  void number(double value) override;
  void text(std::string_view value) override;
  void quantity(double value, const QuantityKind& kind, double bare_factor) override;

  /// What was written. Precondition: everything opened is closed.
  [[nodiscard]] std::string take();

 private:
  struct Open {
    enum class Kind { kMapping, kDefaults, kList } kind;
    Json value;
    std::string key;   ///< of the next value of a mapping
    std::string sole;  ///< the key whose value may stand for the mapping
  };
  void open(Open::Kind kind, Json value);
  Open pop();
  void put(Json value);

  std::vector<Open> open_;
  Json done_;
};

template <class T>
[[nodiscard]] std::string write_yaml(const T& value) {
  YamlSink sink;
  write_value(sink, value);
  return sink.take();
}

}  // namespace orrery
