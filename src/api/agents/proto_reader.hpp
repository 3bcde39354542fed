// api/agents/proto_reader.hpp - reads a described struct from its protobuf message
// (api/agents/proto_fields.hpp).
//
// Bytes from a network may have any content. Checked are here: the range of the struct's type for a
// number, the enumerators for an enum, an id for not being the invalid one, a Duration for not
// being below 0, a oneof for having a value, and a struct by complaint(), where it has one
// (api/agents/message_checks.hpp). An absent field reads as protobuf's default; an optional or an
// id whose field may be absent stays empty.
// Cost: a call of protobuf's reflection for each field, and what the struct allocates.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/agents/message_checks.hpp"
#include "api/agents/proto_fields.hpp"

namespace orrery {

/// What is wrong in a message: the first complaint stays.
class ProtoFault {
 public:
  void complain(std::string what) {
    if (what_.empty()) what_ = std::move(what);
  }
  /// Empty: nothing.
  [[nodiscard]] const std::string& what() const { return what_; }

 private:
  std::string what_;
};

/// Whether a value that only a newer sender knows reads as the first enumerator.
template <class Enum>
inline constexpr bool kIgnoresNewerValues = false;

/// Reads the fields of a struct, or the alternative of a message that is nothing but a oneof.
template <class T>
void read_proto(T& value, const google::protobuf::Message& in, ProtoFault& fault);

/// A field of a message that is being read.
class ProtoSource {
 public:
  ProtoSource(const google::protobuf::Message& message,
              const google::protobuf::Reflection& reflection, const ProtoField& field,
              ProtoFault& fault)
      : message_(message), reflection_(reflection), field_(field), fault_(fault) {}

  void get(bool& value) const { value = reflection_.GetBool(message_, field_.descriptor); }
  void get(double& value) const { value = reflection_.GetDouble(message_, field_.descriptor); }
  template <std::unsigned_integral Number>
  void get(Number& value) const {
    value = static_cast<Number>(natural(std::numeric_limits<Number>::max()));
  }
  template <class Enum>
    requires std::is_enum_v<Enum>
  void get(Enum& value) const {
    constexpr auto kLast = static_cast<std::uint32_t>(last_of(Enum{}));
    const std::uint32_t number = choice();
    value = number <= kLast ? static_cast<Enum>(number) : Enum{};
    if (number > kLast && !kIgnoresNewerValues<Enum>) complain(number, kLast);
  }
  template <class Tag>
  void get(Id<Tag>& id) const {
    const bool absent = field_.optional && !reflection_.HasField(message_, field_.descriptor);
    id = absent ? Id<Tag>() : Id<Tag>(static_cast<std::uint32_t>(natural(kIdMax)));
  }
  void get(Duration& value) const;
  void get(Instant& value) const {
    value = Instant::from_ns(reflection_.GetInt64(message_, field_.descriptor));
  }
  void get(std::string& text) const {
    std::string scratch;
    text = reflection_.GetStringReference(message_, field_.descriptor, &scratch);
  }
  template <class T>
  void get(std::optional<T>& value) const {
    if constexpr (HasProtoForm<std::optional<T>>) {
      read_proto(value, message_, fault_);
    } else if (reflection_.HasField(message_, field_.descriptor)) {
      get(value.emplace());
    } else {
      value.reset();
    }
  }
  template <class T>
  void get(std::vector<T>& list) const {
    list.resize(static_cast<std::size_t>(reflection_.FieldSize(message_, field_.descriptor)));
    for (std::size_t i = 0; i < list.size(); ++i) get(list[i], static_cast<int>(i));
  }
  template <class... T>
  void get(std::variant<T...>& value) const {
    const auto* oneof = field_.descriptor->containing_oneof();
    const auto* chosen = reflection_.GetOneofFieldDescriptor(message_, oneof);
    if (chosen == nullptr) return fault_.complain(no_content(*oneof));
    const auto& in = reflection_.GetMessage(message_, chosen);
    int next = 0;
    ((next++ == chosen->index_in_oneof() ? read_proto(value.template emplace<T>(), in, fault_)
                                         : static_cast<void>(0)),
     ...);
  }
  template <class T>
    requires std::is_class_v<T>
  void get(T& value) const {
    read_proto(value,
               field_.descriptor == nullptr ? message_
                                            : reflection_.GetMessage(message_, field_.descriptor),
               fault_);
  }

 private:
  /// The highest number means no id.
  static constexpr std::uint32_t kIdMax = std::numeric_limits<std::uint32_t>::max() - 1;

  [[nodiscard]] std::uint64_t natural(std::uint64_t max) const {
    const std::uint64_t value = field_.wide ? reflection_.GetUInt64(message_, field_.descriptor)
                                            : reflection_.GetUInt32(message_, field_.descriptor);
    return value <= max ? value : too_large(value, max);
  }
  [[nodiscard]] std::uint64_t too_large(std::uint64_t value, std::uint64_t max) const;
  [[nodiscard]] std::uint32_t choice() const;
  void complain(std::uint32_t number, std::uint32_t last) const;

  void get(std::uint32_t& value, int at) const {
    value = reflection_.GetRepeatedUInt32(message_, field_.descriptor, at);
  }
  void get(double& value, int at) const {
    value = reflection_.GetRepeatedDouble(message_, field_.descriptor, at);
  }
  void get(std::string& text, int at) const {
    text = reflection_.GetRepeatedString(message_, field_.descriptor, at);
  }
  template <class T>
  void get(T& value, int at) const {
    read_proto(value, reflection_.GetRepeatedMessage(message_, field_.descriptor, at), fault_);
  }

  const google::protobuf::Message& message_;
  const google::protobuf::Reflection& reflection_;
  const ProtoField& field_;
  ProtoFault& fault_;
};

/// A codec in the sense of control/codec/field_walk.hpp that reads the fields of one struct.
template <class Struct>
class ProtoReader {
 public:
  ProtoReader(const google::protobuf::Message& in, ProtoFault& fault) : in_(in), fault_(fault) {}

  template <class... Fields>
  void named(FieldNames<sizeof...(Fields)> names, Fields&... fields) {
    static const ProtoFields<Fields...> kFields(in_, names);
    std::size_t next = 0;
    (ProtoSource(in_, kFields.reflection(), kFields[next++], fault_).get(fields), ...);
  }

 private:
  const google::protobuf::Message& in_;
  ProtoFault& fault_;
};

template <class T>
void read_proto(T& value, const google::protobuf::Message& in, ProtoFault& fault) {
  ProtoReader<T> reader(in, fault);
  if constexpr (HasProtoForm<T>) {
    ProtoForm<T>::read(value, in, fault);
  } else if constexpr (std::same_as<T, std::pair<std::string, std::string>>) {
    reader.named("name value", value.first, value.second);
  } else if constexpr (detail::kAlternatives<T> > 0) {
    reader.named("what", value);
  } else {
    code(reader, value);
  }
  if constexpr (requires { complaint(value); }) fault.complain(complaint(value));
}

}  // namespace orrery
