// control/codec/decoder.cpp - checks every length against the bytes that are left.
#include "control/codec/decoder.hpp"

#include <fmt/format.h>

namespace orrery {
std::optional<DecodingFault> Decoder::finish() {
  if (good() && left() > 0) fail(at_, fmt::format("expected the end, found {} more bytes", left()));
  if (good()) return std::nullopt;
  return DecodingFault{.offset = wrong_at_, .what = wrong_};
}

void Decoder::fail(std::size_t offset, std::string what) {
  if (good()) {
    wrong_at_ = offset;
    wrong_ = std::move(what);
  }
  at_ = bytes_.size();
}

bool Decoder::lacks(std::size_t bytes) {
  fail(at_, fmt::format("expected {} bytes, found the end after {}", bytes, left()));
  return false;
}

std::uint64_t Decoder::varint() {
  std::uint64_t value = 0;
  const std::size_t begin = at_;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (!has(1)) return 0;
    const auto byte = static_cast<unsigned char>(bytes_[at_++]);
    // The tenth byte holds the last bit of 64.
    if (shift == 63 && byte > 1) break;
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte >= 0x80) continue;
    if (byte != 0 || shift == 0) return value;
    fail(begin, "expected a number in as few bytes as it needs, found zeros at its end");
    return 0;
  }
  fail(begin, "expected a number of at most 64 bits, found a longer one");
  return 0;
}

std::uint64_t Decoder::long_natural(std::uint64_t max) {
  const std::size_t begin = at_;
  const std::uint64_t value = varint();
  if (value <= max) return value;
  fail(begin, fmt::format("expected a number of at most {}, found {}", max, value));
  return 0;
}

std::int64_t Decoder::integer(std::int64_t, SignedRange range) {
  const std::size_t begin = at_;
  const std::uint64_t zigzag = varint();
  const auto value = static_cast<std::int64_t>((zigzag >> 1) ^ (0 - (zigzag & 1)));
  if (value >= range.min && value <= range.max) return value;
  fail(begin,
       fmt::format("expected a number from {} to {}, found {}", range.min, range.max, value));
  return 0;
}

std::uint8_t Decoder::no_choice(std::uint8_t value, std::uint8_t last) {
  fail(at_, fmt::format("expected a choice of 0 to {}, found {}", last, value));
  return 0;
}

// An element has at least one byte.
std::size_t Decoder::count(std::size_t) {
  const std::size_t begin = at_;
  const std::uint64_t value = varint();
  if (!good()) return 0;
  const std::size_t max = std::min(kCountMax, left());
  if (value <= max) return static_cast<std::size_t>(value);
  fail(begin, fmt::format("expected a list of at most {} elements, found one of {}", max, value));
  return 0;
}

void Decoder::text(std::string& out) {
  const std::size_t begin = at_;
  const std::uint64_t size = varint();
  if (!good()) return;
  const std::size_t max = std::min(kTextMax, left());
  if (size > max) {
    fail(begin, fmt::format("expected a text of at most {} bytes, found one of {}", max, size));
    return;
  }
  out.assign(bytes_.substr(at_, static_cast<std::size_t>(size)));
  at_ += static_cast<std::size_t>(size);
}

std::shared_ptr<const PlanEntry> Decoder::plan(const PlanKey& key, const PlanDigest& logged) {
  if (!good() || plans_ == nullptr || std::holds_alternative<std::monostate>(logged))
    return nullptr;
  std::shared_ptr<const PlanEntry> entry = (*plans_)(key);
  const PlanDigest found = digest_of(entry.get());
  if (found == logged) return entry;
  fail(at_, fmt::format("expected work {} on {} accelerators of type {} to have {}, found {}",
                        key.work.value(), key.devices, key.type.value(), print_digest(logged),
                        print_digest(found)));
  return nullptr;
}

}  // namespace orrery
