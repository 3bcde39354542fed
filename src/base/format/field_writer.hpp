// base/format/field_writer.hpp - writes the structs of base/format/field_reader.hpp back: as JSON
// for programs, as "key  value with unit" rows for people; base/format/yaml_writer.hpp as the YAML
// they were read from.
//
// A FieldWriter walks a described value and calls a FieldSink, event by event; the sink decides
// what to do with them. The walk is a template and small, the sinks are not templates. JSON keeps
// bare numbers in the unit the key names; empty optionals become null, empty lists [].
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format/field_reader.hpp"

namespace orrery {

using Json = nlohmann::ordered_json;

template <WordedEnum T>
[[nodiscard]] std::string_view word_of(T value) {
  for (const auto& entry : enum_words(T{})) {
    if (entry.value == value) return entry.word;
  }
  return "";
}

/// Receives a described value, in order.
class FieldSink {
 public:
  virtual ~FieldSink() = default;
  virtual void open_mapping() = 0;
  /// Names the key of the next value.
  virtual void field(std::string_view key) = 0;
  /// Names a key whose value may stand for the whole mapping.
  virtual void sole_field(std::string_view key) { field(key); }
  /// Called after the last field. Returns true to have optional fields follow with their defaults.
  virtual bool open_defaults() { return false; }
  virtual void close_mapping() = 0;
  virtual void open_list() = 0;
  virtual void close_list() = 0;
  virtual void absent() = 0;
  virtual void truth(bool value) = 0;
  virtual void integer(std::int64_t value) = 0;
  virtual void number(double value) = 0;
  virtual void text(std::string_view value) = 0;
  /// `value` in base units; a bare number counts `bare_factor` of them.
  virtual void quantity(double value, const QuantityKind& kind, double bare_factor) = 0;
};

namespace detail {

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

}  // namespace detail

template <class T>
void write_value(FieldSink& sink, const T& value);

/// The visitor that describe() gets.
class FieldWriter {
 public:
  explicit FieldWriter(FieldSink& sink) : sink_(sink) {}

  template <class T>
  void required(std::string_view key, const T& value) {
    sink_.field(key);
    write_value(sink_, value);
  }
  template <class T>
  void optional(std::string_view key, const T& value) {
    sink_.field(key);
    write_value(sink_, value);
  }
  template <class T>
  void sole(std::string_view key, const T& value) {
    sink_.sole_field(key);
    write_value(sink_, value);
  }
  void elsewhere(std::string_view) {}

 private:
  FieldSink& sink_;
};

/// The visitor of a new struct: visits only optional fields.
class DefaultsWriter {
 public:
  explicit DefaultsWriter(FieldSink& sink) : sink_(sink) {}

  template <class T>
  void required(std::string_view, const T&) {}
  template <class T>
  void sole(std::string_view, const T&) {}
  template <class T>
  void optional(std::string_view key, const T& value) {
    sink_.field(key);
    write_value(sink_, value);
  }
  void elsewhere(std::string_view) {}

 private:
  FieldSink& sink_;
};

template <class T>
void write_value(FieldSink& sink, const T& value) {
  if constexpr (detail::IsOptional<T>::value) {
    value.has_value() ? write_value(sink, *value) : sink.absent();
  } else if constexpr (detail::IsPairs<T>::value) {
    sink.open_mapping();
    for (const auto& [key, item] : value) {
      sink.field(key);
      write_value(sink, item);
    }
    sink.close_mapping();
  } else if constexpr (detail::IsVector<T>::value) {
    sink.open_list();
    for (const auto& item : value) write_value(sink, item);
    sink.close_list();
  } else if constexpr (detail::IsQuantity<T>::value) {
    sink.quantity(value.value(), kind_of<T>(), 1);
  } else if constexpr (detail::IsInUnit<T>::value) {
    using Q = decltype(value.quantity);
    sink.quantity(value.quantity.value(), kind_of<Q>(), T::kBaseUnits);
  } else if constexpr (WordedEnum<T>) {
    sink.text(word_of(value));
  } else if constexpr (std::same_as<T, std::string>) {
    sink.text(value);
  } else if constexpr (std::same_as<T, Instant>) {
    sink.text(value.text());
  } else if constexpr (std::same_as<T, bool>) {
    sink.truth(value);
  } else if constexpr (std::integral<T>) {
    sink.integer(static_cast<std::int64_t>(value));
  } else if constexpr (std::floating_point<T>) {
    sink.number(value);
  } else {
    sink.open_mapping();
    FieldWriter writer(sink);
    describe(writer, value);
    if (sink.open_defaults()) {
      const T fresh{};
      DefaultsWriter defaults(sink);
      describe(defaults, fresh);
    }
    sink.close_mapping();
  }
}

/// A number as JSON: whole ones up to 2^53 as integers, so that "8" does not become "8.0".
[[nodiscard]] Json json_number(double value);

/// Builds a JSON value. Derived classes may change how single values are put.
class JsonSink : public FieldSink {
 public:
  void open_mapping() override;
  void field(std::string_view key) override;
  void close_mapping() override { close(); }
  void open_list() override;
  void close_list() override { close(); }
  void absent() override { put(nullptr); }
  void truth(bool value) override { put(value); }
  void integer(std::int64_t value) override { put(value); }
  void number(double value) override { put(json_number(value)); }
  void text(std::string_view value) override { put(value); }
  void quantity(double value, const QuantityKind& kind, double bare_factor) override;

  /// Returns what was written. Precondition: everything opened is closed.
  [[nodiscard]] Json take() { return std::move(done_); }

 protected:
  /// Adds a value to what is open.
  virtual void put(Json value);

 private:
  void close();

  struct Open {
    Json value;
    std::string key;  ///< of the next value of a mapping
  };
  std::vector<Open> open_;
  Json done_;
};

template <class T>
[[nodiscard]] Json to_json(const T& value) {
  JsonSink sink;
  write_value(sink, value);
  return sink.take();
}

/// One line for a person: nested keys joined with a dot, lists of values with commas.
struct FieldRow {
  std::string key;
  std::string value;
};

/// Builds rows; absent and empty values are left out.
class RowSink final : public FieldSink {
 public:
  void open_mapping() override;
  void field(std::string_view key) override;
  void close_mapping() override;
  void open_list() override;
  void close_list() override;
  void absent() override {}
  void truth(bool value) override { put(value ? "yes" : "no"); }
  void integer(std::int64_t value) override;
  void number(double value) override;
  void text(std::string_view value) override { put(std::string(value)); }
  void quantity(double value, const QuantityKind& kind, double bare_factor) override;

  [[nodiscard]] std::vector<FieldRow> take() { return std::move(rows_); }

 private:
  struct Open {
    std::string path;    ///< of what is open
    std::size_t items;   ///< of a list, so far
    std::string joined;  ///< plain values of a list
    enum class Kind { kMapping, kList } kind;
  };
  void put(std::string value);
  [[nodiscard]] std::string next_path();

  std::vector<Open> open_;
  std::string key_;
  std::vector<FieldRow> rows_;
};

template <class T>
[[nodiscard]] std::vector<FieldRow> rows_of(const T& value) {
  RowSink sink;
  write_value(sink, value);
  return sink.take();
}

}  // namespace orrery
