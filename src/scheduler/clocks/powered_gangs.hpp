// scheduler/clocks/powered_gangs.hpp - the gangs of a pass whose clocks can be set, each at a step
// of its ladder: those that run and those that the pass starts.
//
// Made by a pass once it has to consider clocks, and used by that pass alone. Invariant: at its
// step an entry draws what the power budget of the pass holds for it. Cost: the nodes of all gangs;
// gangs with the same devices and plan share a ladder.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "scheduler/power/gang_power.hpp"
#include "scheduler/power/power_relief.hpp"

namespace orrery {

/// Gangs of one job that run alike.
struct PoweredGang {
  enum class Source : std::uint8_t { kRuns, kStarts };

  Source source = Source::kRuns;
  std::uint32_t job = 0;             ///< position among the running jobs, or the starts of the pass
  std::vector<std::uint32_t> gangs;  ///< positions among the gangs of the job
  std::vector<NodeShare> nodes;
  std::span<const ClockStep> ladder;
  std::size_t was = 0;   ///< the step before the pass
  std::size_t told = 0;  ///< the step that a decision of the pass has set, else `was`
  std::size_t step = 0;  ///< the step now
  std::size_t kept = 0;  ///< the last step at which the job keeps what it was promised
  double value = 0;      ///< value of a second of its work at the first step
  double stop_loss = 0;  ///< see RunningGang::stop_loss
  bool preemptible = false;

  /// Value of a second of work at a step.
  [[nodiscard]] double work(std::size_t at) const { return value * ladder[at].throughput; }
  [[nodiscard]] std::size_t steps_kept() const { return std::max(kept, step) + 1; }
};

class PoweredGangs {
 public:
  explicit PoweredGangs(const Situation& situation) : s_(situation) {}

  /// The gangs of a job as they run or will run. Gangs whose devices have no power model are left
  /// out.
  struct Work {
    PoweredGang::Source source = PoweredGang::Source::kRuns;
    std::uint32_t job = 0;
    const JobRequest* request = nullptr;
    std::span<const PlacedGang> gangs;
    std::span<const GangTerms> terms;
    double stop_loss = 0;
    double slowest =
        std::numeric_limits<double>::infinity();  ///< the job may take so many times as long
  };
  void add(const Work& work);
  /// Removes the entries from position `size` on.
  void cut(std::size_t size) { list_.resize(size); }

  [[nodiscard]] std::vector<PoweredGang>& list() { return list_; }

 private:
  using LadderKey = std::tuple<const PowerModel*, double, double, double>;

  [[nodiscard]] std::span<const ClockStep> ladder(const GangClocks& clocks, const GangTerms& terms);

  const Situation& s_;
  std::vector<PoweredGang> list_;
  std::map<LadderKey, std::vector<ClockStep>> ladders_;
};

/// The step whose clock is nearest; the first of equals.
[[nodiscard]] std::size_t nearest_step(std::span<const ClockStep> ladder, double clock);

/// Value of a second of a job's work, for each of its devices: largest for a service, least for
/// preemptible batch jobs.
[[nodiscard]] double work_weight(const JobRequest& job);

}  // namespace orrery
