// twin/world/sampler.hpp - time series for a report, sampled while a simulation runs.
//
// Called through SimulationHooks::tick. Keeps at most kSamplesMax instants: when they are full it
// drops every other one and samples half as often, so a minute and a year cost the same.
// Cost: O(racks) a sample.
#pragma once

#include <vector>

#include "control/state/state.hpp"
#include "twin/figures/report_data.hpp"

namespace orrery {

class Sampler {
 public:
  static constexpr std::size_t kSamplesMax = 2048;
  static constexpr std::size_t kRowsMax = 256;

  explicit Sampler(const Topology& topology);

  void look(Instant now, const State& state);

  [[nodiscard]] FleetSamples samples() const;
  /// Rows are racks, or pods where the fleet has more than kRowsMax racks.
  [[nodiscard]] RowMap fragmentation() const;
  /// The planned draw by row. Empty where power is not tracked.
  [[nodiscard]] RowMap power() const;

 private:
  struct Sample {
    Instant at;
    std::vector<double> busy;  ///< by type
    double free = 0;
    double down = 0;
    double watts = 0;
    double cap = 0;  ///< infinite: a part of the fleet has no limit
    double queue = 0;
    std::vector<float> stranded;  ///< by row; NaN: nothing free
    std::vector<float> draw;      ///< by row, share of its racks' limits or ratings
  };
  [[nodiscard]] Sample take(Instant now, const State& state) const;
  [[nodiscard]] float stranded_in(const State& state, DomainId domain) const;
  void add_power(Sample& sample, const Situation& situation) const;
  [[nodiscard]] RowMap map_of(std::vector<float> Sample::* shares) const;

  const Topology* topology_;
  std::vector<DomainId> rows_;
  std::vector<std::uint32_t> row_of_;  ///< by power domain: the row of a rack
  std::vector<Sample> samples_;
  Duration every_;
};

}  // namespace orrery
