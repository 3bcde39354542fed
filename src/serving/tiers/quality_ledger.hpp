// serving/tiers/quality_ledger.hpp - how many answers of a service may have been worse than those
// of its large model, and whether the small model may answer one more.
//
// The service promises that at every time at most `loss_max` of its answers so far are worse than
// what the large model would have answered, with confidence 1 - `delta`. An audit asks the large
// model, too, and compares. An independent random draw selects the answers to audit, so the audited
// answers bound the number of worse answers among the rest, however requests and models change
// meanwhile:
//
//   For an answer that is worse, E[exp(-m A)] = 1 - q (1 - exp(-m)), where A is 1 with the audit's
//   probability q. So exp(f L - m K) is a martingale, L being the worse answers, K those that
//   audits found, f = -ln(1 - q (1 - exp(-m))). By Ville's inequality, with probability 1 - delta,
//   L <= (m K + ln(1 / delta)) / f holds at every time at once. The ledger takes the least of the
//   bounds for several m, each with its part of delta.
//
// Where the small model answers only while the bound, and one more, are within the promise, the
// promise is kept. No assumption about the requests is needed: not that they are alike, nor that
// they are independent. A value; pure. Cost: O(1).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace orrery {

struct QualityTerms {
  double loss_max = 0.05;  ///< share of the answers that may be worse
  double delta = 0.05;     ///< probability with which the promise may be broken
  double audit = 0.05;     ///< share of the small model's answers that are audited, 0 to 1

  friend bool operator==(const QualityTerms&, const QualityTerms&) = default;
};

/// Whether an answer of the small model is compared with the large model's.
enum class Audit : std::uint8_t { kNone, kBegun };
/// What a comparison says of the small model's answer.
enum class AnswerQuality : std::uint8_t { kAsGood, kWorse };

class QualityLedger {
 public:
  /// Precondition: each of the terms is above 0 and at most 1.
  explicit QualityLedger(const QualityTerms& terms);

  /// A client has got an answer, of either model.
  void add_answer() { ++answers_; }
  /// The small model is asked. An audit counts as lost until settle() says otherwise.
  void add_small(Audit audit);
  /// An audit has ended. Precondition: it was added and not settled.
  void settle(AnswerQuality found);

  /// Whether the small model may answer the next request.
  [[nodiscard]] bool allows() const;
  /// The number of answers that are worse, at most.
  [[nodiscard]] double bound() const;

  [[nodiscard]] std::uint64_t answers() const { return answers_; }
  [[nodiscard]] std::uint64_t small() const { return small_; }
  [[nodiscard]] std::uint64_t audited() const { return audited_; }
  /// Audits that found a worse answer, or have not ended.
  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  [[nodiscard]] const QualityTerms& terms() const { return terms_; }

 private:
  static constexpr std::size_t kBounds = 7;
  /// One of the bounds: (weight * lost + start) / slope.
  struct Line {
    double weight = 0;
    double slope = 1;
  };

  QualityTerms terms_;
  std::array<Line, kBounds> lines_;
  double start_ = 0;
  std::uint64_t answers_ = 0;
  std::uint64_t small_ = 0;
  std::uint64_t audited_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace orrery
