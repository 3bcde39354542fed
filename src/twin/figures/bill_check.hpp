// twin/figures/bill_check.hpp - compares what jobs were expected to be billed when they started
// with what they were billed.
//
// Observes a simulation and changes nothing. Attempts that end before their work does, run on other
// devices or at another clock are not compared: they did not run as they were started. Cost: a
// price for each start.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "control/event.hpp"
#include "control/state/state.hpp"
#include "scheduler/price/expected_bill.hpp"

namespace orrery {

/// One term of a bill: expected and billed.
struct BilledTerm {
  double expected = 0;
  double billed = 0;

  /// |billed - expected| / expected; 0 where both are 0.
  [[nodiscard]] double error() const;
};

/// An attempt that ran to its end as it was started.
struct BilledAttempt {
  JobId job;
  std::uint32_t attempt = 0;
  BilledTerm seconds;
  BilledTerm dollars;
  BilledTerm electricity;  ///< of the dollars
  BilledTerm egress;       ///< of the dollars
  BilledTerm joules;
  BilledTerm co2_grams;

  /// The greatest error of its terms.
  [[nodiscard]] double error() const;
};

/// How many of the attempts were billed as expected.
struct BillFigures {
  std::uint64_t compared = 0;
  std::uint64_t not_compared = 0;  ///< ended early, resized, slowed down or still running
  double within = 0;               ///< share of the compared whose greatest error is at most 5 %
  double error_p50 = 0;            ///< of the greatest errors
  double error_p95 = 0;
};

class BillCheck {
 public:
  static constexpr double kTolerance = 0.05;
  using Observer = std::function<void(const BilledAttempt&)>;

  /// `each` gets every attempt that is compared; it may be empty.
  explicit BillCheck(Observer each) : each_(std::move(each)) {}

  /// Must be called after the events were applied.
  void note(Instant now, std::span<const Event> events, const State& state);

  [[nodiscard]] BillFigures figures() const;

 private:
  /// What earlier attempts of a job were billed.
  struct Before {
    JobUsage usage;
    SiteSet data_at = 0;
  };
  struct Open {
    std::uint32_t attempt = 0;
    Instant started;
    ExpectedBill expected;
    bool as_started = true;
  };

  void begin(const JobStarted& event, const State& state, Instant now);
  void end(const JobEnded& event, const State& state);
  void leave(JobId job, const State& state);
  void change(JobId job);

  std::map<JobId, Open> open_;
  Observer each_;
  std::map<JobId, Before> before_;
  std::vector<float> errors_;
  std::uint64_t not_compared_ = 0;
};

}  // namespace orrery
