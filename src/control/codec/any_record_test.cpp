#include "control/codec/any_record_test.hpp"

#include <bit>
#include <utility>

#include "base/assert.hpp"
#include "control/codec/event_fields.hpp"

namespace orrery {
namespace {

/// "Reads" fields from random numbers: small and large ones, and those at the ends of their ranges.
class AnyFields : public FieldWalk<AnyFields> {
 public:
  explicit AnyFields(Rng& rng) : rng_(rng) {}

  std::uint64_t natural(std::uint64_t, std::uint64_t max) {
    if (rng_.below(8) == 0) return max;
    const std::uint64_t value = any_size();
    return value <= max ? value : value % (max + 1);
  }
  std::int64_t integer(std::int64_t, SignedRange range) {
    const auto value = std::bit_cast<std::int64_t>(any_size());
    if (rng_.below(8) == 0) return value < 0 ? range.min : range.max;
    const std::int64_t signed_value = rng_.below(2) == 0 ? value : ~value;
    if (signed_value >= range.min && signed_value <= range.max) return signed_value;
    return signed_value % (range.max / 2);
  }
  std::uint8_t choice(std::uint8_t, std::uint8_t last) {
    return static_cast<std::uint8_t>(rng_.below(std::uint64_t{last} + 1));
  }
  double real(double) {
    return rng_.below(2) == 0 ? rng_.uniform() : std::bit_cast<double>(rng_.next_u64());
  }
  float real(float) { return std::bit_cast<float>(static_cast<std::uint32_t>(rng_.next_u64())); }
  std::size_t count(std::size_t) { return static_cast<std::size_t>(rng_.below(3)); }
  void text(std::string& out) {
    out.assign(static_cast<std::size_t>(rng_.below(9)), '\0');
    for (char& c : out) c = static_cast<char>(rng_.below(4) == 0 ? rng_.below(256) : 'a');
  }
  [[nodiscard]] static bool good() { return true; }
  [[nodiscard]] static std::shared_ptr<const PlanEntry> plan(const PlanKey&, const PlanDigest&) {
    return nullptr;
  }

 private:
  /// Returns a number of 0 to 64 bits.
  std::uint64_t any_size() {
    const std::uint64_t bits = rng_.below(65);
    return bits == 0 ? 0 : rng_.next_u64() >> (64 - bits);
  }

  Rng& rng_;
};

template <class Variant, std::size_t... I>
Variant any_of(std::size_t type, Rng& rng, std::index_sequence<I...>) {
  ORRERY_ASSERT(type < sizeof...(I), "there is such a type");
  AnyFields fields(rng);
  Variant record;
  (static_cast<void>(type == I ? (fields(record.template emplace<I>()), 0) : 0), ...);
  return record;
}

}  // namespace

Event any_event(std::size_t type, Rng& rng) {
  return any_of<Event>(type, rng, std::make_index_sequence<std::variant_size_v<Event>>{});
}

InputKind any_input(std::size_t type, Rng& rng) {
  return any_of<InputKind>(type, rng, std::make_index_sequence<std::variant_size_v<InputKind>>{});
}

}  // namespace orrery
