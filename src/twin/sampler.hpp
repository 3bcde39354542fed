// twin/sampler.hpp - what a report draws over time, taken while a simulation runs.
//
// Looks on through SimulationHooks::tick. Keeps at most kSamplesMax instants: when they are full it
// drops every other one and looks half as often, so a minute and a year cost the same.
// Cost: O(racks) a sample.
#pragma once

#include <vector>

#include "control/state.hpp"
#include "twin/report_data.hpp"

namespace orrery {

class Sampler {
 public:
  static constexpr std::size_t kSamplesMax = 2048;

  explicit Sampler(const Topology& topology);

  void look(Instant now, const State& state);

  [[nodiscard]] FleetSamples samples() const;
  /// Of pods where the fleet has several, else of racks; at most `rows`.
  [[nodiscard]] FragmentationMap fragmentation() const;

 private:
  struct Sample {
    Instant at;
    std::vector<double> busy;  ///< by type
    double free = 0;
    double down = 0;
    double watts = 0;
    double queue = 0;
    std::vector<float> stranded;  ///< by row; NaN: nothing free
  };
  [[nodiscard]] Sample take(Instant now, const State& state) const;
  [[nodiscard]] float stranded_in(const State& state, DomainId domain) const;

  const Topology* topology_;
  std::vector<DomainId> rows_;
  std::vector<Sample> samples_;
  Duration every_;
};

}  // namespace orrery
