// serving/admission/token_bucket.hpp - the limit of a tenant at a service: tokens a second, with
// some saved up.
//
// Each gateway has one for a tenant and service (gateway/admission/caller_accounts.hpp). Pure; time
// is a value that does not go back. Invariant: in any t seconds, no more than t x rate tokens, one
// bucket and one request are granted, corrections aside. Cost: O(1).
#pragma once

#include <cstdint>

#include "base/time.hpp"

namespace orrery {

class TokenBucket {
 public:
  /// A bucket holds what its rate gives in this time.
  static constexpr Duration kSaved = Duration::seconds(10);

  /// Sets the rate; 0: no limit. A bucket that had none is full, another one stays as full as it
  /// was.
  void set_rate(double tokens_per_s, Instant now);
  [[nodiscard]] bool limited() const { return rate_ > 0; }

  /// Takes tokens where that many are there. A request of more than a full bucket needs a full one,
  /// and is paid off afterwards. Returns whether it took them.
  [[nodiscard]] bool take(std::uint64_t tokens, Instant now);
  /// Gives tokens back, or takes more (below zero), where a request used other than was taken.
  void give_back(double tokens, Instant now);

  /// Tokens of a full bucket.
  [[nodiscard]] double size() const { return rate_ * kSaved.count_seconds(); }
  /// Tokens that are there; 0 while a request is paid off.
  [[nodiscard]] double left(Instant now) const;
  /// Time until take() grants so many.
  [[nodiscard]] Duration time_until(std::uint64_t tokens, Instant now) const;
  [[nodiscard]] Duration time_until_full(Instant now) const;

 private:
  [[nodiscard]] double level_at(Instant now) const;
  [[nodiscard]] Duration time_to(double level, Instant now) const;

  double rate_ = 0;
  double level_ = 0;
  Instant time_;  ///< of level_
};

}  // namespace orrery
