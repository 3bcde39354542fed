// bench/figure.hpp - one figure of a benchmark as the JSON line scripts/bench reads, a stopwatch,
// and the end of a benchmark that lacks what it needs.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/format/field_writer.hpp"
#include "base/system/real_clock.hpp"

namespace orrery {

struct Figure {
  std::string bench;
  std::string name;
  double value = 0;
  std::string unit;
  std::optional<double> target;  ///< at most this
  std::string peer;              ///< what peer_value was measured on, in the same run
  std::optional<double> peer_value;
};

inline void print_figure(const Figure& figure) {
  Json json;
  json["bench"] = figure.bench;
  json["name"] = figure.name;
  json["value"] = figure.value;
  json["unit"] = figure.unit;
  json["target"] = figure.target ? Json(*figure.target) : Json(nullptr);
  json["met"] = figure.target ? Json(figure.value <= *figure.target) : Json(nullptr);
  json["peer"] = figure.peer.empty() ? Json(nullptr) : Json(figure.peer);
  json["peer_value"] = figure.peer_value ? Json(*figure.peer_value) : Json(nullptr);
  json["ratio"] = figure.peer_value ? Json(*figure.peer_value / figure.value) : Json(nullptr);
  fmt::print("{}\n", json.dump());
}

/// Returns the value; without one the benchmark prints the error and ends.
template <class T>
T must(Result<T> result) {
  if (result) return *std::move(result);
  fmt::print(stderr, "benchmark: {}\n", result.error().text());
  std::exit(1);
}

/// Seconds a call takes.
template <class Call>
double seconds_of(Call&& call) {
  const RealClock clock;
  const Instant begin = clock.now_monotonic();
  call();
  return (clock.now_monotonic() - begin).count_seconds();
}

}  // namespace orrery
