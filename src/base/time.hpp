// base/time.hpp - Instant and Duration: int64 nanoseconds, the same live and in the twin.
//
// Time is a value that reaches the core in its inputs; only an Env (base/env.hpp) reads a clock.
// Arithmetic saturates instead of overflowing: "never" (Instant::max) stays never.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace orrery {

class Duration {
 public:
  constexpr Duration() = default;
  static constexpr Duration nanoseconds(std::int64_t n) { return Duration(n); }
  static constexpr Duration milliseconds(std::int64_t n) { return Duration(n) * 1'000'000; }
  static constexpr Duration seconds(std::int64_t n) { return Duration(n) * 1'000'000'000; }
  static constexpr Duration minutes(std::int64_t n) { return seconds(n) * 60; }
  static constexpr Duration hours(std::int64_t n) { return seconds(n) * 3600; }
  /// Rounded to the nearest nanosecond; saturates; NaN gives zero.
  static Duration from_seconds(double s);
  static constexpr Duration max() { return Duration(std::numeric_limits<std::int64_t>::max()); }

  [[nodiscard]] constexpr std::int64_t count_ns() const { return ns_; }
  [[nodiscard]] constexpr double count_seconds() const { return static_cast<double>(ns_) * 1e-9; }

  friend constexpr auto operator<=>(Duration, Duration) = default;
  friend constexpr Duration operator+(Duration a, Duration b) {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(a.ns_, b.ns_, &sum)) return saturated(side_of(a.ns_));
    return Duration(sum);
  }
  friend constexpr Duration operator-(Duration a) {
    return a.ns_ == kMin ? max() : Duration(-a.ns_);
  }
  friend constexpr Duration operator-(Duration a, Duration b) {
    std::int64_t difference = 0;
    if (__builtin_sub_overflow(a.ns_, b.ns_, &difference)) return saturated(side_of(a.ns_));
    return Duration(difference);
  }
  friend constexpr Duration operator*(Duration a, std::int64_t factor) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(a.ns_, factor, &product)) {
      return saturated((a.ns_ > 0) == (factor > 0) ? Side::kHigh : Side::kLow);
    }
    return Duration(product);
  }
  Duration& operator+=(Duration other) { return *this = *this + other; }

  /// "1.5 s", "250 ms", "2 h 30 min": at most two units, the largest first.
  [[nodiscard]] std::string text() const;

 private:
  static constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr explicit Duration(std::int64_t ns) : ns_(ns) {}
  enum class Side { kLow, kHigh };
  static constexpr Duration saturated(Side side) {
    return side == Side::kHigh ? max() : Duration(kMin);
  }
  // Returns the side of the first operand of an overflowing sum or difference; 0 - min overflows
  // upwards.
  static constexpr Side side_of(std::int64_t n) { return n >= 0 ? Side::kHigh : Side::kLow; }
  std::int64_t ns_ = 0;
};

/// A point in time: nanoseconds since the epoch of its Env (Unix epoch live, 0 in the twin).
class Instant {
 public:
  constexpr Instant() = default;
  static constexpr Instant from_ns(std::int64_t ns) { return Instant(Duration::nanoseconds(ns)); }
  static constexpr Instant max() { return Instant(Duration::max()); }

  [[nodiscard]] constexpr std::int64_t ns() const { return since_epoch_.count_ns(); }

  friend constexpr auto operator<=>(Instant, Instant) = default;
  friend constexpr Instant operator+(Instant t, Duration d) { return Instant(t.since_epoch_ + d); }
  friend constexpr Instant operator-(Instant t, Duration d) { return Instant(t.since_epoch_ - d); }
  friend constexpr Duration operator-(Instant a, Instant b) {
    return a.since_epoch_ - b.since_epoch_;
  }

  /// "2026-01-31T23:59:59.123456789Z" (proleptic Gregorian, UTC; no fraction when it is zero).
  [[nodiscard]] std::string text() const;

  /// The inverse of text(): RFC 3339 with Z or an offset ("+02:00"), the fraction of up to 9 digits
  /// optional. Errors (without position): another form, no such date, outside 1677 to 2262.
  [[nodiscard]] static Result<Instant> parse(std::string_view text);

 private:
  constexpr explicit Instant(Duration since_epoch) : since_epoch_(since_epoch) {}
  Duration since_epoch_;
};

}  // namespace orrery
