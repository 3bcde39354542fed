// api/agents/proto_writer.hpp - writes a described struct as its protobuf message
// (api/agents/proto_fields.hpp).
//
// In texts, bytes that are not UTF-8 become '?'. An invalid id is left out where its field may be
// absent. Cost: a call of protobuf's reflection for each field, and what the message allocates.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/agents/proto_fields.hpp"

namespace orrery {

/// Returns the text with '?' for each byte that is not UTF-8.
[[nodiscard]] std::string valid_utf8(std::string text);

/// Adds the fields of a struct, or the alternative of a message that is nothing but a oneof.
template <class T>
void write_proto(const T& value, google::protobuf::Message& out);

/// A field of a message that is being written.
class ProtoTarget {
 public:
  ProtoTarget(google::protobuf::Message& message, const google::protobuf::Reflection& reflection,
              const ProtoField& field)
      : message_(message), reflection_(reflection), field_(field) {}

  void put(std::same_as<bool> auto value) const {
    if (!implied(value)) reflection_.SetBool(&message_, field_.descriptor, value);
  }
  void put(double value) const { reflection_.SetDouble(&message_, field_.descriptor, value); }
  template <std::unsigned_integral Number>
    requires(!std::same_as<Number, bool>)
  void put(Number value) const {
    if (implied(value)) return;
    if (field_.wide) {
      reflection_.SetUInt64(&message_, field_.descriptor, value);
    } else {
      reflection_.SetUInt32(&message_, field_.descriptor, static_cast<std::uint32_t>(value));
    }
  }
  template <class Enum>
    requires std::is_enum_v<Enum>
  void put(Enum value) const {
    if (implied(value)) return;
    if (field_.descriptor->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_ENUM) {
      reflection_.SetEnumValue(&message_, field_.descriptor, static_cast<int>(value));
    } else {
      reflection_.SetUInt32(&message_, field_.descriptor, static_cast<std::uint32_t>(value));
    }
  }
  template <class Tag>
  void put(Id<Tag> id) const {
    if (id.valid() || !field_.optional) put(id.value());
  }
  void put(Duration value) const { put_signed(value.count_ns()); }
  void put(Instant value) const { put_signed(value.ns()); }
  void put(const std::string& text) const {
    if (!text.empty()) reflection_.SetString(&message_, field_.descriptor, allowed(text));
  }
  template <class T>
  void put(const std::optional<T>& value) const {
    if constexpr (HasProtoForm<std::optional<T>>) {
      write_proto(value, message_);
    } else if (value) {
      put(*value);
    }
  }
  template <class T>
  void put(const std::vector<T>& list) const {
    for (const T& each : list) add(each);
  }
  template <class... T>
  void put(const std::variant<T...>& value) const {
    const auto* field =
        field_.descriptor->containing_oneof()->field(static_cast<int>(value.index()));
    auto& out = *reflection_.MutableMessage(&message_, field);
    std::visit([&](const auto& alternative) { write_proto(alternative, out); }, value);
  }
  template <class T>
    requires std::is_class_v<T>
  void put(const T& value) const {
    write_proto(value, field_.descriptor == nullptr
                           ? message_
                           : *reflection_.MutableMessage(&message_, field_.descriptor));
  }

 private:
  /// Whether the field reads as this value without being set.
  template <class T>
  [[nodiscard]] bool implied(T value) const {
    return value == T{} && !field_.optional;
  }
  void put_signed(std::int64_t value) const {
    if (!implied(value)) reflection_.SetInt64(&message_, field_.descriptor, value);
  }
  void add(std::uint32_t value) const {
    reflection_.AddUInt32(&message_, field_.descriptor, value);
  }
  void add(double value) const { reflection_.AddDouble(&message_, field_.descriptor, value); }
  void add(const std::string& text) const {
    reflection_.AddString(&message_, field_.descriptor, allowed(text));
  }
  template <class T>
  void add(const T& value) const {
    write_proto(value, *reflection_.AddMessage(&message_, field_.descriptor));
  }
  [[nodiscard]] std::string allowed(const std::string& text) const {
    const bool bytes = field_.descriptor->type() == google::protobuf::FieldDescriptor::TYPE_BYTES;
    return bytes ? text : valid_utf8(text);
  }

  google::protobuf::Message& message_;
  const google::protobuf::Reflection& reflection_;
  const ProtoField& field_;
};

/// A codec in the sense of control/codec/field_walk.hpp that writes the fields of one struct.
template <class Struct>
class ProtoWriter {
 public:
  explicit ProtoWriter(google::protobuf::Message& out) : out_(out) {}

  template <class... Fields>
  void named(FieldNames<sizeof...(Fields)> names, const Fields&... fields) {
    static const ProtoFields<Fields...> kFields(out_, names);
    std::size_t next = 0;
    (ProtoTarget(out_, kFields.reflection(), kFields[next++]).put(fields), ...);
  }

 private:
  google::protobuf::Message& out_;
};

template <class T>
void write_proto(const T& value, google::protobuf::Message& out) {
  ProtoWriter<T> writer(out);
  if constexpr (HasProtoForm<T>) {
    ProtoForm<T>::write(value, out);
  } else if constexpr (std::same_as<T, std::pair<std::string, std::string>>) {
    writer.named("name value", value.first, value.second);
  } else if constexpr (detail::kAlternatives<T> > 0) {
    writer.named("what", value);
  } else {
    code(writer, value);
  }
}

}  // namespace orrery
