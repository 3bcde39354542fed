#include "base/format/field_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text/nearest_name.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

std::optional<double> plain_number(const DocumentNode& node) {
  if (node.kind() != NodeKind::kScalar || node.quoted()) return std::nullopt;
  const std::string_view text = node.text();
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace

Status unexpected_node(const DocumentNode& node, std::string_view expected) {
  return input_error(node.position(), fmt::format("expected {}, found {}", expected, node.shown()));
}

Result<std::string> read_string(const DocumentNode& node) {
  if (node.kind() != NodeKind::kScalar) {
    Status status = unexpected_node(node, "text");
    return forward_error(status);
  }
  return std::string(node.text());
}

Result<bool> read_truth(const DocumentNode& node) {
  if (node.kind() == NodeKind::kScalar && !node.quoted()) {
    if (node.text() == "true" || node.text() == "True") return true;
    if (node.text() == "false" || node.text() == "False") return false;
  }
  Status status = unexpected_node(node, "true or false");
  return forward_error(status);
}

Result<double> read_number(const DocumentNode& node) {
  const std::optional<double> number = plain_number(node);
  if (!number || !std::isfinite(*number)) {
    Status status = unexpected_node(node, "a number");
    return forward_error(status);
  }
  return *number;
}

Result<double> read_quantity(const DocumentNode& node, const QuantityKind& kind, Units units,
                             double bare_factor) {
  if (node.kind() != NodeKind::kScalar) {
    Status status =
        unexpected_node(node, fmt::format("a {} such as \"{}\"", kind.name, kind.example));
    return forward_error(status);
  }
  const std::optional<double> bare = plain_number(node);
  if (units == Units::kInTextOrKey && bare) {
    const double value = *bare * bare_factor;
    if (Status plausible = check_plausible(value, kind); !plausible) {
      return input_error(node.position(), plausible.error().message);
    }
    return value;
  }
  Result<double> value = parse_quantity(node.text(), kind);
  if (!value) return input_error(node.position(), value.error().message);
  return value;
}

Result<std::int64_t> read_integer(const DocumentNode& node, std::int64_t low, std::int64_t high) {
  const std::optional<double> number = plain_number(node);
  if (!number || !std::isfinite(*number) || *number != std::floor(*number)) {
    Status status = unexpected_node(node, "a whole number");
    return forward_error(status);
  }
  if (*number < static_cast<double>(low) || *number > static_cast<double>(high)) {
    return input_error(node.position(), fmt::format("{} is out of range, expected {} to {}",
                                                    node.text(), low, high));
  }
  return static_cast<std::int64_t>(*number);
}

Result<std::size_t> read_word(const DocumentNode& node, std::span<const std::string_view> words) {
  const auto found = std::find(words.begin(), words.end(), node.text());
  if (node.kind() == NodeKind::kScalar && found != words.end()) {
    return static_cast<std::size_t>(found - words.begin());
  }
  return input_error(node.position(),
                     fmt::format("unknown value {}{}; expected one of: {}", node.shown(),
                                 did_you_mean(node.text(), words), fmt::join(words, ", ")));
}

namespace detail {
namespace {

template <class T, class U>
Status keep(Result<U> read, T& out) {
  if (!read) return forward_error(read);
  out = *std::move(read);
  return {};
}

}  // namespace

Status read_leaf(const DocumentNode& node, QuantitySlot slot) {
  return keep(read_quantity(node, slot.kind, slot.units, slot.bare_factor), slot.out);
}
Status read_leaf(const DocumentNode& node, IntegerSlot slot) {
  return keep(read_integer(node, slot.low, slot.high), slot.out);
}
Status read_leaf(const DocumentNode& node, std::string& out) {
  return keep(read_string(node), out);
}
Status read_leaf(const DocumentNode& node, bool& out) { return keep(read_truth(node), out); }
Status read_leaf(const DocumentNode& node, double& out) { return keep(read_number(node), out); }
Status read_leaf(const DocumentNode& node, Instant& out) {
  Result<std::string> text = read_string(node);
  if (!text) return forward_error(text);
  const Result<Instant> read = Instant::parse(*text);
  if (!read) return input_error(node.position(), read.error().message);
  out = *read;
  return {};
}
Status read_leaf(const DocumentNode& node, std::span<const std::string_view> words,
                 std::size_t& out) {
  return keep(read_word(node, words), out);
}

}  // namespace detail

FieldReader::FieldReader(const DocumentNode& node, Options options)
    : node_(node), options_(options), entries_(node.entries()), used_(entries_.size(), false) {}

const DocumentNode* FieldReader::find_even_null(std::string_view key) {
  known_.push_back(key);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].key.text() != key) continue;
    used_[i] = true;
    return ignores(key) ? nullptr : &entries_[i].value;
  }
  return nullptr;
}

const DocumentNode* FieldReader::find(std::string_view key) {
  const DocumentNode* value = find_even_null(key);
  return value != nullptr && value->kind() == NodeKind::kNull ? nullptr : value;
}

bool FieldReader::ignores([[maybe_unused]] std::string_view key) const {
#ifdef ORRERY_TEST_HOOKS
  return test_hooks::ignores_key(type_, key);
#else
  return false;
#endif
}

void FieldReader::missing(std::string_view key) {
  if (options_.mode == Options::Mode::kPatch) return;
  // What is given all the same is ignored by the key audit; the struct keeps its default.
  for (const DocumentNode::Entry& entry : entries_) {
    if (entry.key.text() == key && entry.value.kind() != NodeKind::kNull) return;
  }
  fail(input_error(node_.position(), fmt::format("the key \"{}\" is missing", key)));
}

void FieldReader::fail(Status status) {
  if (status_ && !status) status_ = std::move(status);
}

Status FieldReader::finish() {
  if (node_.kind() != NodeKind::kMapping && !(sole_ && node_.kind() == NodeKind::kScalar)) {
    return unexpected_node(node_, sole_ ? "text or a mapping" : "a mapping");
  }
  // An unknown key explains a missing one, so it is told first.
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (used_[i]) continue;
    const DocumentNode& key = entries_[i].key;
    return input_error(
        key.position(),
        fmt::format("unknown key \"{}\"{}; known here: {}", printable(key.text(), 60),
                    did_you_mean(key.text(), known_), fmt::join(known_, ", ")));
  }
  return status_;
}

}  // namespace orrery
