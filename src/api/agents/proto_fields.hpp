// api/agents/proto_fields.hpp - which fields of a protobuf message carry the fields of a struct,
// found by the names of its description (control/codec/field_walk.hpp).
//
// 1. A field has the name of its description. A Duration or an Instant is a number of nanoseconds
//    in NAME_ns.
// 2. A variant is the oneof of its name, or the only one of a message that is nothing else. The
//    alternatives of both are in one order.
// 3. A struct without a field of its own has its fields in the message around it.
// 4. A type that differs from this, or is written too often for it, has a ProtoForm.
//
// Names are looked up once for each type of struct, when its first value is written or read.
// Invariant: a struct type has one message type. A name that is in no message ends the process.
#pragma once

#include <google/protobuf/message.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/assert.hpp"
#include "control/codec/field_walk.hpp"

namespace orrery {

/// The form of a type that is written or read in its own way, specialised with
///   static void write(const T& value, google::protobuf::Message& out);
///   static void read(T& value, const google::protobuf::Message& in, ProtoFault& fault);
/// `out` and `in` are the message that holds the fields of T. Specialised before the first use.
template <class T>
struct ProtoForm;

template <class T>
concept HasProtoForm = requires { sizeof(ProtoForm<T>); };

namespace detail {

template <class T>
inline constexpr bool kIsTime = std::is_same_v<T, Duration> || std::is_same_v<T, Instant>;
template <class T>
inline constexpr bool kIsTime<std::optional<T>> = kIsTime<T>;

/// Whether the fields of T may be in the message around it.
template <class T>
inline constexpr bool kMayBeWithin = std::is_class_v<T> && !kIsTime<T>;
template <>
inline constexpr bool kMayBeWithin<std::string> = false;
template <class Tag>
inline constexpr bool kMayBeWithin<Id<Tag>> = false;
template <class T>
inline constexpr bool kMayBeWithin<std::vector<T>> = false;
template <class T>
inline constexpr bool kMayBeWithin<std::optional<T>> = HasProtoForm<std::optional<T>>;

template <class T>
inline constexpr int kAlternatives = 0;
template <class... T>
inline constexpr int kAlternatives<std::variant<T...>> = sizeof...(T);

}  // namespace detail

/// A field of a message type. A variant has the first field of its oneof, a struct within the
/// message around it none.
struct ProtoField {
  const google::protobuf::FieldDescriptor* descriptor = nullptr;
  bool wide = false;      ///< it has 64 bits
  bool optional = false;  ///< it may be absent, which differs from zero
};

/// The fields in one message type of the fields that a struct names together.
template <class... Fields>
class ProtoFields {
 public:
  ProtoFields(const google::protobuf::Message& message, FieldNames<sizeof...(Fields)> names)
      : reflection_(*message.GetReflection()) {
    std::size_t next = 0;
    ((fields_[next] = find<Fields>(*message.GetDescriptor(), std::string(names[next])), ++next),
     ...);
  }

  [[nodiscard]] const google::protobuf::Reflection& reflection() const { return reflection_; }
  [[nodiscard]] const ProtoField& operator[](std::size_t at) const { return fields_[at]; }

 private:
  template <class T>
  static ProtoField find(const google::protobuf::Descriptor& type, const std::string& name) {
    if constexpr (detail::kAlternatives<T> > 0) {
      const auto* oneof = type.FindOneofByName(name);
      ORRERY_ASSERT(oneof != nullptr && oneof->field_count() == detail::kAlternatives<T>,
                    "a variant is a oneof with a field for each alternative");
      return {.descriptor = oneof->field(0)};
    } else {
      const auto* field = type.FindFieldByName(detail::kIsTime<T> ? name + "_ns" : name);
      ORRERY_ASSERT(field != nullptr || detail::kMayBeWithin<T>,
                    "a message has the fields of its struct");
      if (field == nullptr) return {};
      return {.descriptor = field,
              .wide = field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_UINT64,
              .optional = field->has_presence()};
    }
  }

  const google::protobuf::Reflection& reflection_;
  std::array<ProtoField, sizeof...(Fields)> fields_;
};

}  // namespace orrery
