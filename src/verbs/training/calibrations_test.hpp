// verbs/training/calibrations_test.hpp - a calibration with round figures, of a machine that does
// not exist.
#pragma once

#include "workload/node_calibration.hpp"

namespace orrery {

/// Returns what one of so many busy ranks does; the optimiser is the slower the more there are.
inline BusyRanks busy_ranks(std::uint32_t ranks) {
  BusyRanks made{
      .ranks = ranks,
      .products = {{512, 64, 32, FlopsPerSecond(9e10)}, {512, 768, 768, FlopsPerSecond(1e11)}},
      .attention = {{128, 8, 32, Seconds(3e-4), Seconds(6e-4)},
                    {128, 4, 64, Seconds(2e-4), Seconds(5e-4)}},
      .optimizer = Seconds(1e-3 * ranks),
      .copy = BytesPerSecond(1e10),
      .durable_write = BytesPerSecond(5e8)};
  made.models.push_back({.shape = {.layers = 1}, .sequences = 4, .gradient = Seconds(0.03)});
  made.models.push_back({.shape = {.layers = 2}, .sequences = 4, .gradient = Seconds(0.05)});
  if (ranks > 1) {
    made.shared_memory = {Seconds(3e-6), BytesPerSecond(1e10)};
    made.sockets = {Seconds(3e-5), BytesPerSecond(2e9)};
  }
  return made;
}

/// Returns the calibration of a machine with one and with two busy ranks.
inline NodeCalibration some_calibration() {
  return {.machine = {.processor = "Some CPU",
                      .cores = 2,
                      .products = "oneDNN",
                      .precision = "float32",
                      .measured = Instant::from_ns(1'700'000'000'000'000'000)},
          .busy = {busy_ranks(1), busy_ranks(2)}};
}

}  // namespace orrery
