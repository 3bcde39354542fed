// base/format/field_reader.hpp - fills typed structs from a Document, and names what is wrong in
// it.
//
// A struct that can be read (and written, base/format/field_writer.hpp) says so once, with
//
//   template <class Visitor, SameStruct<Rack> Self>
//   void describe(Visitor& visitor, Self& rack) {
//     visitor.required("nodes", rack.nodes);
//     visitor.optional("cooling", rack.cooling);
//   }
//
// The reader reports the first thing wrong with its position: a missing key, an unknown key (with
// the nearest known one), a wrong type, a quantity without unit or of the wrong one, a number out
// of range. A struct may have a member `SourcePosition where`, which is set to the mapping's
// position. A struct that says `visitor.sole("type", s.type)` may be written as that value alone:
// `h100` is `{type: h100}`.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/format/document.hpp"
#include "base/test_hooks.hpp"
#include "base/text/quantity_text.hpp"
#include "base/time.hpp"

namespace orrery {

/// Self is Struct or const Struct: one describe() serves reading and writing.
template <class Self, class Struct>
concept SameStruct = std::same_as<std::remove_const_t<Self>, Struct>;

/// Whether a quantity must carry its unit, or may be a bare number in base units because the key
/// itself names the unit ("hbm_bytes: 85899345920"), as in the catalog.
enum class Units { kInText, kInTextOrKey };

/// A word of a file and the enumerator it stands for; read through `enum_words(Enum{})`.
template <class Enum>
struct EnumWord {
  std::string_view word;
  Enum value;
};

class FieldReader;

template <class T>
concept Describable = requires(FieldReader& reader, T& value) { describe(reader, value); };

template <class T>
concept WordedEnum = std::is_enum_v<T> && requires { enum_words(T{}); };

/// Returns the error of an unexpected node: "expected a list, found \"x\"".
[[nodiscard]] Status unexpected_node(const DocumentNode& node, std::string_view expected);

[[nodiscard]] Result<std::string> read_string(const DocumentNode& node);
[[nodiscard]] Result<bool> read_truth(const DocumentNode& node);
[[nodiscard]] Result<double> read_number(const DocumentNode& node);
/// `bare_factor`: base units per unit of a bare number, where `units` allows one.
[[nodiscard]] Result<double> read_quantity(const DocumentNode& node, const QuantityKind& kind,
                                           Units units, double bare_factor = 1);
/// A whole number in [low, high]; "1e3" and "4.0" are whole.
[[nodiscard]] Result<std::int64_t> read_integer(const DocumentNode& node, std::int64_t low,
                                                std::int64_t high);
/// Returns the position in `words` of the node's text.
[[nodiscard]] Result<std::size_t> read_word(const DocumentNode& node,
                                            std::span<const std::string_view> words);

/// Reads one mapping, key by key; call finish() after the last key, which also refuses a node that
/// is no mapping.
class FieldReader {
 public:
  /// `patch`: required keys may be absent and then keep what the struct already holds.
  struct Options {
    Units units = Units::kInText;
    enum class Mode { kWhole, kPatch } mode = Mode::kWhole;
  };

  FieldReader(const DocumentNode& node, Options options);

  template <class T>
  void required(std::string_view key, T& out) {
    const DocumentNode* value = find(key);
    if (value == nullptr) {
      missing(key);
    } else {
      store(*value, out);
    }
  }

  /// A required key whose value may stand for the whole mapping. At most one a struct.
  template <class T>
  void sole(std::string_view key, T& out) {
    sole_ = true;
    if (node_.kind() == NodeKind::kScalar) {
      if (!ignores(key)) store(node_, out);
    } else {
      required(key, out);
    }
  }

  /// Absent or null leaves `out` as it is (null empties an optional).
  template <class T>
  void optional(std::string_view key, T& out) {
    if (const DocumentNode* value = find(key); value != nullptr) store(*value, out);
  }

  template <class T>
  void optional(std::string_view key, std::optional<T>& out) {
    const DocumentNode* value = find_even_null(key);
    if (value == nullptr) return;
    if (value->kind() == NodeKind::kNull) {
      out.reset();
      return;
    }
    // A patch of a present struct keeps its other fields.
    T read = out.value_or(T{});
    out.reset();
    store(*value, read);
    out = std::move(read);
  }

  /// Marks a known key whose value other code reads.
  void elsewhere(std::string_view key) { find_even_null(key); }

  /// Notes a failure found by the caller; the first one stays.
  void fail(Status status);

  [[nodiscard]] bool ok() const { return status_.has_value(); }

#ifdef ORRERY_TEST_HOOKS
  /// The struct whose keys these are, for the key audit.
  void belongs_to(std::string_view type) { type_ = type; }
  /// The keys that were asked for.
  [[nodiscard]] std::vector<std::string_view> known() const { return known_; }
#endif

  /// Returns the first failure, or an error for a key that was never asked for.
  [[nodiscard]] Status finish();

 private:
  template <class T>
  void store(const DocumentNode& value, T& out);

  const DocumentNode* find(std::string_view key);
  const DocumentNode* find_even_null(std::string_view key);
  void missing(std::string_view key);
  [[nodiscard]] bool ignores(std::string_view key) const;

  DocumentNode node_;
  Options options_;
  std::vector<DocumentNode::Entry> entries_;
  std::vector<bool> used_;
  std::vector<std::string_view> known_;
  bool sole_ = false;  ///< whether a scalar is accepted
  Status status_;
#ifdef ORRERY_TEST_HOOKS
  std::string_view type_;
#endif
};

namespace detail {

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsQuantity : std::false_type {};
template <class Dim>
struct IsQuantity<Quantity<Dim>> : std::true_type {};
template <class T>
struct IsInUnit : std::false_type {};
template <class Q, long Num, long Den>
struct IsInUnit<InUnit<Q, Num, Den>> : std::true_type {};
template <class T>
struct IsPairs : std::false_type {};
template <class T>
struct IsPairs<std::vector<std::pair<std::string, T>>> : std::true_type {};

/// Where a number goes, and what it may be.
struct QuantitySlot {
  const QuantityKind& kind;
  Units units;
  double bare_factor;
  double& out;
};
struct IntegerSlot {
  std::int64_t low;
  std::int64_t high;
  std::int64_t& out;
};

// The leaves of read_value, out of line: every struct of every file is read through them.
[[nodiscard]] Status read_leaf(const DocumentNode& node, QuantitySlot slot);
[[nodiscard]] Status read_leaf(const DocumentNode& node, IntegerSlot slot);
[[nodiscard]] Status read_leaf(const DocumentNode& node, std::string& out);
[[nodiscard]] Status read_leaf(const DocumentNode& node, bool& out);
[[nodiscard]] Status read_leaf(const DocumentNode& node, double& out);
[[nodiscard]] Status read_leaf(const DocumentNode& node, Instant& out);
[[nodiscard]] Status read_leaf(const DocumentNode& node, std::span<const std::string_view> words,
                               std::size_t& out);

}  // namespace detail

template <class T>
[[nodiscard]] Status read_value(const DocumentNode& node, T& out, FieldReader::Options options);

#ifdef ORRERY_TEST_HOOKS
namespace detail {

template <class T>
std::string_view type_name() {
  return test_hooks::type_in(__PRETTY_FUNCTION__);
}

template <class T>
std::vector<std::string_view> keys_of() {
  const Result<Document> empty = Document::parse("{}", "");
  FieldReader reader(empty->root(), {});
  T value{};
  describe(reader, value);
  return reader.known();
}

/// Initialised before main() for each T that read_struct() is compiled for.
template <class T>
inline const bool kListed = test_hooks::add_struct({type_name<T>(), &keys_of<T>});

}  // namespace detail
#endif

/// Gives `reader` the name of the struct it reads, where the key audit asks for it.
template <Describable T>
void name_struct([[maybe_unused]] FieldReader& reader) {
#ifdef ORRERY_TEST_HOOKS
  if (detail::kListed<T>) reader.belongs_to(detail::type_name<T>());
#endif
}

/// The value of a key that describe() of T leaves to its caller (FieldReader::elsewhere), if any.
template <Describable T>
[[nodiscard]] std::optional<DocumentNode> read_elsewhere(const DocumentNode& mapping,
                                                         std::string_view key) {
  for (const DocumentNode::Entry& entry : mapping.entries()) {
    if (entry.key.text() != key) continue;
#ifdef ORRERY_TEST_HOOKS
    if (test_hooks::ignores_key(detail::type_name<T>(), key)) return std::nullopt;
#endif
    return entry.value;
  }
  return std::nullopt;
}

template <Describable T>
[[nodiscard]] Status read_struct(const DocumentNode& node, T& out, FieldReader::Options options) {
  FieldReader reader(node, options);
  name_struct<T>(reader);
  if constexpr (requires { out.where; }) out.where = node.position();
  describe(reader, out);
  return reader.finish();
}

template <class T>
[[nodiscard]] Status read_list(const DocumentNode& node, std::vector<T>& out,
                               FieldReader::Options options) {
  if (node.kind() != NodeKind::kSequence) return unexpected_node(node, "a list");
  out.clear();
  options.mode = FieldReader::Options::Mode::kWhole;
  for (const DocumentNode& item : node.items()) {
    T value{};
    if (Status status = read_value(item, value, options); !status) return status;
    out.push_back(std::move(value));
  }
  return {};
}

template <class T>
[[nodiscard]] Status read_pairs(const DocumentNode& node,
                                std::vector<std::pair<std::string, T>>& out,
                                FieldReader::Options options) {
  if (node.kind() != NodeKind::kMapping) return unexpected_node(node, "a mapping");
  out.clear();
  for (const auto& [key, item] : node.entries()) {
    T value{};
    if (Status status = read_value(item, value, options); !status) return status;
    out.emplace_back(std::string(key.text()), std::move(value));
  }
  return {};
}

template <WordedEnum T>
[[nodiscard]] Status read_enum(const DocumentNode& node, T& out) {
  const auto table = enum_words(T{});
  std::array<std::string_view, std::tuple_size_v<decltype(table)>> words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = table[i].word;
  std::size_t at = 0;
  Status status = detail::read_leaf(node, words, at);
  if (status) out = table[at].value;
  return status;
}

template <class T>
Status read_value(const DocumentNode& node, T& out, FieldReader::Options options) {
  if constexpr (detail::IsPairs<T>::value) {
    return read_pairs(node, out, options);
  } else if constexpr (detail::IsVector<T>::value) {
    return read_list(node, out, options);
  } else if constexpr (detail::IsQuantity<T>::value) {
    double value = 0;
    Status status =
        detail::read_leaf(node, detail::QuantitySlot{kind_of<T>(), options.units, 1, value});
    if (status) out = T(value);
    return status;
  } else if constexpr (detail::IsInUnit<T>::value) {
    using Q = decltype(out.quantity);
    double value = 0;
    Status status = detail::read_leaf(
        node, detail::QuantitySlot{kind_of<Q>(), options.units, T::kBaseUnits, value});
    if (status) out.quantity = Q(value);
    return status;
  } else if constexpr (std::same_as<T, std::string> || std::same_as<T, bool> ||
                       std::same_as<T, double> || std::same_as<T, Instant>) {
    return detail::read_leaf(node, out);
  } else if constexpr (std::integral<T>) {
    constexpr auto kHigh = static_cast<std::int64_t>(
        std::min<std::uint64_t>(std::numeric_limits<T>::max(), std::uint64_t{1} << 53));
    std::int64_t value = 0;
    Status status = detail::read_leaf(
        node, detail::IntegerSlot{std::is_signed_v<T> ? -kHigh : 0, kHigh, value});
    if (status) out = static_cast<T>(value);
    return status;
  } else if constexpr (WordedEnum<T>) {
    return read_enum(node, out);
  } else {
    return read_struct(node, out, options);
  }
}

template <class T>
void FieldReader::store(const DocumentNode& value, T& out) {
  fail(read_value(value, out, options_));
}

}  // namespace orrery
