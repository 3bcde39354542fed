// scheduler/forecast/forecast_setup.hpp - the common start of all futures of a forecast: waiting
// jobs, running jobs, jobs that are likely to come, and the fleet in numbers.
//
// Made once a forecast from a situation that must outlive it; immutable. Times are seconds from the
// situation's `now`.
#pragma once

#include <limits>
#include <vector>

#include "base/numbers/rng.hpp"
#include "scheduler/forecast/start_forecast.hpp"
#include "scheduler/place/counted_fleet.hpp"
#include "scheduler/price/run_time.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {

inline constexpr double kNeverEnds = std::numeric_limits<double>::infinity();

struct ForecastOption {
  const GangRequest* gang = nullptr;
  double seconds = kNeverEnds;  ///< expected run time that is left
};

struct ForecastRole {
  std::uint32_t gangs = 1;
  std::vector<ForecastOption> options;  ///< in the order in which they are tried
};

/// A job that waits or comes later.
struct ForecastJob {
  WaitingJob job;
  OrderKey key;
  bool serves = false;
  double limit = kNeverEnds;          ///< time limit of its run
  std::uint32_t placement_class = 0;  ///< jobs with the same number fit in the same places
  std::uint32_t stratum = 0;          ///< stratum of its run time in the first future
  std::uint32_t stride = 1;           ///< step of the stratum from one future to the next
  std::vector<ForecastRole> roles;
};

struct ForecastRun {
  UncertainRun length;
  double limit = kNeverEnds;     ///< seconds until its time limit
  double believed = kNeverEnds;  ///< seconds until the end that the scheduler expects
  std::uint32_t first_piece = 0;
  std::uint32_t pieces = 0;
  TenantId tenant;
  std::int32_t rank = 0;
  bool awaited = false;
  bool resumes = false;  ///< it is preemptible and goes on from a checkpoint
  std::uint32_t stratum = 0;
  std::uint32_t stride = 1;
};

class ForecastSetup {
 public:
  /// The most jobs of the queue that are considered.
  static constexpr std::size_t kJobsMost = 8192;

  ForecastSetup(const Situation& situation, const Policy& policy, const PlaceTree& tree,
                const ForecastAsk& ask);

  [[nodiscard]] const Situation& situation() const { return s_; }
  [[nodiscard]] const Policy& policy() const { return policy_; }
  [[nodiscard]] const ForecastAsk& ask() const { return ask_; }
  [[nodiscard]] const CountedFleet& fleet() const { return fleet_; }
  [[nodiscard]] const std::vector<ForecastJob>& queue() const { return queue_; }
  /// The jobs present that came last, the latest first: they stand for jobs to come.
  [[nodiscard]] const std::vector<ForecastJob>& newcomers() const { return newcomers_; }
  [[nodiscard]] const std::vector<ForecastRun>& runs() const { return runs_; }
  [[nodiscard]] const std::vector<CountedPiece>& pieces() const { return pieces_; }
  [[nodiscard]] std::uint32_t placement_classes() const { return placement_classes_; }
  /// The number of futures: a prime, so that strides permute the strata.
  [[nodiscard]] std::uint32_t futures() const { return futures_; }
  /// Whether queue() has the job of the forecast.
  [[nodiscard]] bool sees_job() const { return sees_job_; }

 private:
  void add_queue();
  void add_runs();
  void add_newcomers();
  void open_shared();
  void choose_awaited();
  [[nodiscard]] ForecastJob of(const WaitingJob& job);
  [[nodiscard]] std::vector<ForecastOption> options_of(const WaitingJob& job, std::uint32_t role);
  [[nodiscard]] double expected_of(const JobRequest& job) const;

  const Situation& s_;
  const Policy& policy_;
  const ForecastAsk& ask_;
  CountedFleet fleet_;
  Rng rng_;
  std::vector<ForecastJob> queue_;
  std::vector<ForecastJob> newcomers_;
  std::vector<ForecastRun> runs_;
  std::vector<CountedPiece> pieces_;
  std::vector<std::uint32_t> placement_class_of_;
  std::uint32_t placement_classes_ = 0;
  std::uint32_t futures_ = 0;
  bool sees_job_ = false;
};

}  // namespace orrery
