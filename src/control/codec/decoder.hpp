// control/codec/decoder.hpp - reads the primitives of a record (control/codec/encoder.hpp) from
// untrusted bytes.
//
// Used for one record. The first error is kept and ends the reading: every later field is read as
// zero or empty, so the caller checks once, at the end. Memory is allocated only for bytes that are
// known to be there. Only the encoding that an Encoder writes is accepted: a number in more bytes
// than it needs is an error.
// Invariant: never reads outside the bytes. Cost: O(bytes).
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/format/little_endian.hpp"
#include "control/codec/field_walk.hpp"
#include "control/core/plan_digest.hpp"
#include "control/setup.hpp"

namespace orrery {

inline constexpr std::size_t kTextMax = std::size_t{1} << 26;   ///< bytes of a text in a record
inline constexpr std::size_t kCountMax = std::size_t{1} << 24;  ///< elements of a list in a record

/// Why bytes are not a record.
struct DecodingFault {
  std::size_t offset = 0;
  std::string what;  ///< "expected .., found .."
};

class Decoder : public FieldWalk<Decoder> {
 public:
  /// The bytes and `plans` outlive the decoder. `plans` supplies the plan entries that records
  /// leave out; none: they stay empty.
  explicit Decoder(std::string_view bytes, const PlanSource* plans = nullptr)
      : bytes_(bytes), plans_(plans) {}

  /// The form of a snapshot (control/state/snapshot.cpp), which decides about some of its fields.
  [[nodiscard]] std::uint32_t form() const { return form_; }
  void read_as(std::uint32_t form) { form_ = form; }

  [[nodiscard]] bool good() const { return wrong_.empty(); }
  /// The number of bytes read.
  [[nodiscard]] std::size_t offset() const { return at_; }
  /// Returns the first error, including bytes that are left over; none: the record is good.
  [[nodiscard]] std::optional<DecodingFault> finish();

  std::uint64_t natural(std::uint64_t, std::uint64_t max) {
    if (at_ < bytes_.size()) {
      const auto byte = static_cast<unsigned char>(bytes_[at_]);
      if (byte < 0x80 && byte <= max) {
        ++at_;
        return byte;
      }
    }
    return long_natural(max);
  }
  std::int64_t integer(std::int64_t, SignedRange range);
  std::uint8_t choice(std::uint8_t, std::uint8_t last) {
    if (!has(1)) return 0;
    const auto value = static_cast<std::uint8_t>(bytes_[at_]);
    if (value > last) return no_choice(value, last);
    ++at_;
    return value;
  }
  double real(double) { return std::bit_cast<double>(fixed<std::uint64_t>()); }
  float real(float) { return std::bit_cast<float>(fixed<std::uint32_t>()); }
  std::size_t count(std::size_t);
  void text(std::string& out);
  [[nodiscard]] std::shared_ptr<const PlanEntry> plan(const PlanKey& key, const PlanDigest& logged);

  template <std::unsigned_integral Word>
  Word fixed() {
    if (!has(sizeof(Word))) return 0;
    const auto value = load_little_endian<Word>(bytes_.data() + at_);
    at_ += sizeof value;
    return value;
  }

 private:
  [[nodiscard]] std::size_t left() const { return bytes_.size() - at_; }
  /// After an error no bytes are left.
  [[nodiscard]] bool has(std::size_t bytes) { return left() >= bytes || lacks(bytes); }
  bool lacks(std::size_t bytes);
  std::uint64_t long_natural(std::uint64_t max);
  std::uint8_t no_choice(std::uint8_t value, std::uint8_t last);
  [[nodiscard]] std::uint64_t varint();
  void fail(std::size_t offset, std::string what);

  std::string_view bytes_;
  const PlanSource* plans_;
  std::uint32_t form_ = 0;
  std::size_t at_ = 0;
  std::size_t wrong_at_ = 0;
  std::string wrong_;
};

}  // namespace orrery
