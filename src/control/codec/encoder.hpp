// control/codec/encoder.hpp - writes the primitives of a record at the end of a buffer.
//
// One encoder is kept for many records, so that the buffer's memory is reused. One thread.
// Invariant: every value has one encoding, independent of the writer. Cost: 1 to 2 ns for a
// primitive; no allocation once the buffer is as large as the largest record.
//
// Unsigned numbers are varints (7 bits a byte, lowest first; the high bit means that more bytes
// follow). Signed numbers are zigzag (0, -1, 1, -2, ..) varints. Real numbers are their 8 or 4
// bytes, lowest first. A choice is one byte. Texts and lists are preceded by their number of bytes
// or elements.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/format/little_endian.hpp"
#include "control/codec/field_walk.hpp"
#include "fleet/fleet_map.hpp"

namespace orrery {

class Encoder : public FieldWalk<Encoder> {
 public:
  /// Adds fields without changing them.
  template <class... Fields>
  void operator()(const Fields&... fields) {
    FieldWalk<Encoder>::operator()(fields...);
  }

  /// From now on, writes ids of nodes and accelerator types as those of a changed fleet. `map`
  /// outlives the encoder.
  void translate(const FleetMap& map) { map_ = &map; }
  template <class Tag>
  [[nodiscard]] Id<Tag> translated(Id<Tag> id) const {
    if (map_ == nullptr || !id.valid()) return id;
    if constexpr (std::same_as<Id<Tag>, NodeId>) return map_->nodes[id.value()];
    if constexpr (std::same_as<Id<Tag>, FleetTypeId>) return map_->types[id.value()];
    return id;
  }

  void clear() { at_ = buffer_.get(); }
  /// Valid until something is added or the encoder is cleared.
  [[nodiscard]] std::string_view bytes() const { return {buffer_.get(), size()}; }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(at_ - buffer_.get()); }

  std::uint64_t natural(std::uint64_t value, std::uint64_t = 0) {
    char* at = room(kVarintMax);
    std::uint64_t rest = value;
    while (rest >= 0x80) [[unlikely]] {
      *at++ = static_cast<char>(rest | 0x80);
      rest >>= 7;
    }
    *at++ = static_cast<char>(rest);
    at_ = at;
    return value;
  }

  std::int64_t integer(std::int64_t value, SignedRange = {}) {
    const auto doubled = static_cast<std::uint64_t>(value) << 1;
    natural(value < 0 ? ~doubled : doubled);
    return value;
  }

  std::uint8_t choice(std::uint8_t value, std::uint8_t = 0) {
    char* at = room(1);
    *at = static_cast<char>(value);
    at_ = at + 1;
    return value;
  }

  template <std::floating_point Real>
  Real real(Real value) {
    if constexpr (sizeof(Real) == 8) {
      fixed(std::bit_cast<std::uint64_t>(value));
    } else {
      fixed(std::bit_cast<std::uint32_t>(value));
    }
    return value;
  }

  std::size_t count(std::size_t value) { return natural(value); }

  void text(std::string_view value) {
    natural(value.size());
    raw(value);
  }

  /// Adds bytes without a length before them.
  void raw(std::string_view value) {
    if (value.empty()) return;
    std::memcpy(room(value.size()), value.data(), value.size());
    at_ += value.size();
  }

  /// Adds all bytes of an unsigned number, lowest first.
  template <std::unsigned_integral Word>
  void fixed(Word value) {
    char* at = room(sizeof value);
    store_little_endian(value, at);
    at_ = at + sizeof value;
  }

  /// Overwrites earlier bytes. Precondition: at + sizeof value <= size().
  template <std::unsigned_integral Word>
  void overwrite(std::size_t at, Word value) {
    store_little_endian(value, buffer_.get() + at);
  }

 private:
  static constexpr std::size_t kVarintMax = 10;

  /// Returns where the next bytes go. The buffer doubles, so a byte is moved at most twice on
  /// average.
  char* room(std::size_t bytes) {
    if (static_cast<std::size_t>(end_ - at_) < bytes) [[unlikely]]
      grow(bytes);
    return at_;
  }
  void grow(std::size_t bytes);

  std::unique_ptr<char[]> buffer_;
  const FleetMap* map_ = nullptr;  ///< none: ids are written as they are
  char* at_ = nullptr;             ///< end of the content
  char* end_ = nullptr;            ///< end of the buffer
};

}  // namespace orrery
