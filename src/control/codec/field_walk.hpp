// control/codec/field_walk.hpp - walks the fields of a struct and breaks each down to a few
// primitives: the common part of writing, reading, printing and randomly filling a record.
//
// A struct that can be walked has one such function (control/state/job_fields.hpp,
// control/codec/event_fields.hpp):
//
//   template <class Codec, SameStruct<Blame> S>
//   void code(Codec& codec, S& blame) {
//     auto& [layer, node, evidence] = blame;  // a field that is forgotten does not compile
//     codec.named("layer node evidence", layer, node, evidence);
//   }
//
// The names are those of event JSON (store/event_json.hpp) and of messages with agents
// (node/agent_fields.hpp). A struct of neither may leave them out: codec(layer, node, evidence).
//
// A codec derives from FieldWalk<itself> and has the primitives below. Each takes the present value
// and returns the new one: a writer returns its argument, a reader the value that it read.
//
//   natural(value, max)    unsigned             integer(value, range)  signed
//   choice(value, last)    one of at most 256   real(value)            double or float
//   count(value)           elements to come     text(text)             a string, in place
//
// If it has translated(id), ids are replaced by what that returns. If it reads, it also has good()
// (false ends the reading of lists) and plan(key, digest), which returns the entry that a record
// leaves out.
//
// Only .cpp files include the fields themselves: walking them costs compile time.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/format/field_reader.hpp"
#include "base/id.hpp"
#include "base/quantity.hpp"
#include "base/time.hpp"

namespace orrery {

/// Returns the largest enumerator of an enum that counts up from 0. Enums without words have their
/// own overload.
template <WordedEnum Enum>
[[nodiscard]] constexpr Enum last_of(Enum) {
  return static_cast<Enum>(std::tuple_size_v<decltype(enum_words(Enum{}))> - 1);
}

struct SignedRange {
  std::int64_t min = std::numeric_limits<std::int64_t>::min();
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
};

/// The names of N fields, separated by single blanks. Another number of names, or an empty one,
/// does not compile.
template <std::size_t N>
class FieldNames {
 public:
  consteval FieldNames(const char* text) : text_(text) {
    const auto blanks = static_cast<std::size_t>(std::count(text_.begin(), text_.end(), ' '));
    const bool has_empty = text_.empty() || text_.starts_with(' ') || text_.ends_with(' ') ||
                           text_.find("  ") != std::string_view::npos;
    if (has_empty || blanks + 1 != N) throw std::logic_error("expected a name for each field");
  }

  /// O(length of all names).
  [[nodiscard]] constexpr std::string_view operator[](std::size_t at) const {
    std::string_view rest = text_;
    for (; at > 0; --at) rest.remove_prefix(rest.find(' ') + 1);
    return rest.substr(0, rest.find(' '));
  }

 private:
  std::string_view text_;
};

template <class Derived>
class FieldWalk {
 public:
  template <class... Fields>
  void named(FieldNames<sizeof...(Fields)>, Fields&... fields) {
    (field(fields), ...);
  }
  template <class... Fields>
  void operator()(Fields&... fields) {
    (field(fields), ...);
  }

 private:
  friend Derived;
  FieldWalk() = default;

  __extension__ using Wide = __int128;
  static constexpr Wide kTwo64 = Wide{1} << 64;

  Derived& self() { return static_cast<Derived&>(*this); }

  template <class T>
  void field(T& value) {
    as(std::type_identity<std::remove_const_t<T>>{}, value);
  }

  /// Stores what a reader found; a writer's fields are const and do not change.
  template <class T, class Value>
  static void set(T& field, Value value) {
    if constexpr (!std::is_const_v<T>) field = static_cast<T>(value);
  }

  template <class Struct, class T>
  void as(std::type_identity<Struct>, T& value) {
    if constexpr (std::is_enum_v<Struct>) {
      constexpr auto kLast = static_cast<std::uint8_t>(last_of(Struct{}));
      set(value, self().choice(static_cast<std::uint8_t>(value), kLast));
    } else if constexpr (std::same_as<Struct, bool>) {
      set(value, self().choice(value ? 1 : 0, 1) != 0);
    } else if constexpr (std::floating_point<Struct>) {
      set(value, self().real(value));
    } else if constexpr (std::same_as<Struct, Wide>) {
      wide(value);
    } else if constexpr (std::unsigned_integral<Struct>) {
      set(value, self().natural(value, std::numeric_limits<Struct>::max()));
    } else if constexpr (std::signed_integral<Struct>) {
      constexpr SignedRange kRange{std::numeric_limits<Struct>::min(),
                                   std::numeric_limits<Struct>::max()};
      set(value, self().integer(value, kRange));
    } else {
      code(self(), value);
    }
  }

  /// Encodes the value plus one, so that the invalid id becomes 0.
  template <class Tag, class T>
  void as(std::type_identity<Id<Tag>>, T& id) {
    Id<Tag> is = id;
    if constexpr (requires { self().translated(is); }) is = self().translated(is);
    const auto raised = static_cast<std::uint32_t>(is.value() + 1);
    const std::uint64_t found = self().natural(raised, std::numeric_limits<std::uint32_t>::max());
    set(id, static_cast<std::uint32_t>(found) - 1);
  }

  template <class Dimension, class T>
  void as(std::type_identity<Quantity<Dimension>>, T& quantity) {
    set(quantity, self().real(quantity.value()));
  }

  template <class T>
  void as(std::type_identity<Duration>, T& duration) {
    const std::int64_t found = self().integer(duration.count_ns(), SignedRange{});
    if constexpr (!std::is_const_v<T>) duration = Duration::nanoseconds(found);
  }

  template <class T>
  void as(std::type_identity<Instant>, T& instant) {
    const std::int64_t found = self().integer(instant.ns(), SignedRange{});
    if constexpr (!std::is_const_v<T>) instant = Instant::from_ns(found);
  }

  template <class T>
  void as(std::type_identity<std::string>, T& text) {
    self().text(text);
  }

  template <class Element, std::size_t N, class T>
  void as(std::type_identity<std::array<Element, N>>, T& elements) {
    for (auto& element : elements) field(element);
  }

  template <class Element, class T>
  void as(std::type_identity<std::vector<Element>>, T& elements) {
    sequence(elements);
  }

  template <class Element, class T>
  void as(std::type_identity<std::deque<Element>>, T& elements) {
    sequence(elements);
  }

  template <class T>
  void sequence(T& elements) {
    const std::size_t count = self().count(elements.size());
    if constexpr (std::is_const_v<T>) {
      for (const auto& element : elements) field(element);
    } else {
      elements.clear();
      if constexpr (requires { elements.reserve(count); }) {
        elements.reserve(std::min(count, kReservedMax));
      }
      for (std::size_t i = 0; i < count && self().good(); ++i) field(elements.emplace_back());
    }
  }

  template <class Key, class T>
  void as(std::type_identity<std::set<Key>>, T& keys) {
    const std::size_t count = self().count(keys.size());
    if constexpr (std::is_const_v<T>) {
      for (const Key& key : keys) field(key);
    } else {
      keys.clear();
      for (std::size_t i = 0; i < count && self().good(); ++i) {
        Key key{};
        field(key);
        keys.insert(keys.end(), std::move(key));
      }
    }
  }

  template <class Key, class Value, class T>
  void as(std::type_identity<std::map<Key, Value>>, T& entries) {
    const std::size_t count = self().count(entries.size());
    if constexpr (std::is_const_v<T>) {
      for (const auto& [key, value] : entries) operator()(key, value);
    } else {
      entries.clear();
      for (std::size_t i = 0; i < count && self().good(); ++i) {
        Key key{};
        field(key);
        field(entries[std::move(key)]);
      }
    }
  }

  template <class First, class Second, class T>
  void as(std::type_identity<std::pair<First, Second>>, T& pair) {
    operator()(pair.first, pair.second);
  }

  /// Encodes whether the pointer is set, then what it points to.
  template <class Value, class T>
  void as(std::type_identity<std::shared_ptr<const Value>>, T& pointer) {
    const bool there = self().choice(pointer != nullptr ? 1 : 0, 1) != 0;
    if constexpr (std::is_const_v<T>) {
      if (there) field(*pointer);
    } else {
      pointer.reset();
      if (!there) return;
      auto value = std::make_shared<Value>();
      field(*value);
      pointer = std::move(value);
    }
  }

  /// Encodes the lower half, then the upper one.
  template <class T>
  void wide(T& value) {
    constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t low = self().natural(static_cast<std::uint64_t>(value), kMax);
    const std::int64_t high = self().integer(static_cast<std::int64_t>(value >> 64), SignedRange{});
    if constexpr (!std::is_const_v<T>) value = static_cast<Wide>(high) * kTwo64 + low;
  }

  template <class Value, class T>
  void as(std::type_identity<std::optional<Value>>, T& optional) {
    const bool there = self().choice(optional ? 1 : 0, 1) != 0;
    if constexpr (!std::is_const_v<T>) {
      optional.reset();
      if (there) optional.emplace();
    }
    if (there) field(*optional);
  }

  template <class... Alternatives, class T>
  void as(std::type_identity<std::variant<Alternatives...>>, T& variant) {
    constexpr auto kLast = static_cast<std::uint8_t>(sizeof...(Alternatives) - 1);
    const std::uint8_t chosen = self().choice(static_cast<std::uint8_t>(variant.index()), kLast);
    if constexpr (!std::is_const_v<T>) {
      std::uint8_t index = 0;
      ((index++ == chosen ? static_cast<void>(variant.template emplace<Alternatives>())
                          : static_cast<void>(0)),
       ...);
    }
    std::visit([this](auto& alternative) { this->field(alternative); }, variant);
  }

  /// Elements for which a reader reserves memory before it has read them.
  static constexpr std::size_t kReservedMax = 1024;
};

}  // namespace orrery
