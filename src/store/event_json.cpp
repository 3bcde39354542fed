// store/event_json.cpp - walks the fields of an event (control/codec/event_fields.hpp) into JSON.
#include "store/event_json.hpp"

#include <string>
#include <type_traits>

#include "control/codec/codec.hpp"
#include "control/codec/event_fields.hpp"

namespace orrery {
namespace {

/// A codec in the sense of control/codec/field_walk.hpp that makes JSON.
class JsonCodec {
 public:
  /// Makes an object of the fields of a struct. A struct whose fields have no names does not
  /// compile.
  template <class... Fields>
  void named(FieldNames<sizeof...(Fields)> names, const Fields&... fields) {
    std::size_t next = 0;
    // A nested struct replaces object_, so the fields are collected first.
    Json object = Json::object();
    ((object[std::string(names[next++])] = value(fields)), ...);
    object_ = std::move(object);
  }

  template <class T>
  [[nodiscard]] Json value(const T& it) {
    return of(std::type_identity<T>{}, it);
  }

 private:
  template <class T>
  Json of(std::type_identity<T>, const T& it) {
    if constexpr (WordedEnum<T>) {
      for (const auto& [word, each] : enum_words(T{})) {
        if (each == it) return std::string(word);
      }
      return static_cast<std::uint64_t>(it);
    } else if constexpr (std::is_enum_v<T>) {
      return static_cast<std::uint64_t>(it);
    } else if constexpr (std::is_arithmetic_v<T>) {
      return it;
    } else {
      code(*this, it);
      return std::move(object_);
    }
  }
  static Json of(std::type_identity<std::monostate>, std::monostate) { return nullptr; }
  static Json of(std::type_identity<std::string>, const std::string& it) { return it; }
  static Json of(std::type_identity<Duration>, Duration it) {
    return it == Duration::max() ? Json(nullptr) : Json(it.count_seconds());
  }
  static Json of(std::type_identity<Instant>, Instant it) {
    return it == Instant::max() ? Json(nullptr) : Json(it.text());
  }
  template <class Tag>
  static Json of(std::type_identity<Id<Tag>>, Id<Tag> it) {
    return it.valid() ? Json(it.value()) : Json(nullptr);
  }
  template <class Dimension>
  static Json of(std::type_identity<Quantity<Dimension>>, Quantity<Dimension> it) {
    return it.value();
  }
  template <class T, std::size_t N>
  Json of(std::type_identity<std::array<T, N>>, const std::array<T, N>& it) {
    return list(it);
  }
  template <class T>
  Json of(std::type_identity<std::vector<T>>, const std::vector<T>& it) {
    return list(it);
  }
  template <class T>
  Json of(std::type_identity<std::optional<T>>, const std::optional<T>& it) {
    return it ? value(*it) : Json(nullptr);
  }
  template <class T>
  Json of(std::type_identity<std::unique_ptr<const T>>, const std::unique_ptr<const T>& it) {
    return it ? value(*it) : Json(nullptr);
  }
  template <class... T>
  Json of(std::type_identity<std::variant<T...>>, const std::variant<T...>& it) {
    return std::visit([this](const auto& each) -> Json { return this->value(each); }, it);
  }
  template <class Range>
  Json list(const Range& range) {
    Json array = Json::array();
    for (const auto& each : range) array.push_back(value(each));
    return array;
  }

  Json object_;  ///< result for the struct that was walked last
};

}  // namespace

Json event_json(const TimedEvent& event) {
  JsonCodec codec;
  Json json = {{"at", event.at.text()}, {"event", event_name(event.what.index())}};
  Json fields = codec.value(event.what);
  json.update(fields);
  return json;
}

}  // namespace orrery
