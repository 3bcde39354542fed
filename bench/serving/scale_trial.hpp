// bench/serving/scale_trial.hpp - a service in virtual time under one rule of scaling, with its
// orders, and figures of several such trials that were played alike.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "twin/serving/service_run.hpp"

namespace orrery {

/// A way to change the number of replicas; none: it stays.
struct ScaleRule {
  std::string name;
  std::function<ServiceScaler(const ServiceSetup&, const RequestTrace&)> make;
};

struct NotedOrder {
  Duration at;
  std::uint32_t before = 0;
  std::uint32_t after = 0;
};

/// What a trial came to.
struct Trial {
  ServiceFigures figures;
  std::vector<NotedOrder> orders;

  /// Orders within a minute of one of the other direction.
  [[nodiscard]] std::uint32_t reversed() const {
    std::uint32_t count = 0;
    for (std::size_t i = 1; i < orders.size(); ++i) {
      const bool more = orders[i].after > orders[i].before;
      const bool more_before = orders[i - 1].after > orders[i - 1].before;
      const Duration apart = orders[i].at - orders[i - 1].at;
      if (more != more_before && apart < Duration::seconds(60)) ++count;
    }
    return count;
  }
  /// The first order for more replicas at or after a time.
  [[nodiscard]] std::optional<Duration> more_after(Duration time) const {
    for (const NotedOrder& each : orders) {
      if (each.at >= time && each.after > each.before) return each.at;
    }
    return std::nullopt;
  }
};

inline Trial play_trial(const RequestTrace& trace, ServiceSetup setup, const ScaleRule& rule) {
  Trial trial;
  if (rule.make) {
    setup.scaler = [&trial, made = rule.make(setup, trace)](const ServiceWindow& window) {
      std::vector<std::uint32_t> wanted = made(window);
      std::uint32_t there = 0;
      std::uint32_t sum = 0;
      for (std::size_t group = 0; group < wanted.size(); ++group) {
        there += window.ready[group] + window.starting[group];
        sum += wanted[group];
      }
      if (sum != there) trial.orders.push_back({window.begin + window.length, there, sum});
      return wanted;
    };
  }
  trial.figures = run_service(trace, setup);
  return trial;
}

/// Trials of one rule, one a trace.
struct Trials {
  std::string name;
  std::vector<Trial> all;

  [[nodiscard]] double attained() const {
    double within = 0;
    double requests = 0;
    for (const Trial& each : all) {
      within += static_cast<double>(each.figures.all.within);
      requests += static_cast<double>(each.figures.all.requests);
    }
    return within / requests;
  }
  [[nodiscard]] double usd() const {
    double sum = 0;
    for (const Trial& each : all) sum += each.figures.replicas.usd;
    return sum;
  }
  /// The share of the replicas' time in which steps ran.
  [[nodiscard]] double busy() const {
    double busy = 0;
    double alive = 0;
    for (const Trial& each : all) {
      busy += each.figures.replicas.busy_s;
      alive += each.figures.replicas.alive_s;
    }
    return busy / alive;
  }
  [[nodiscard]] double joules() const {
    double sum = 0;
    for (const Trial& each : all) sum += each.figures.replicas.joules;
    return sum;
  }
  [[nodiscard]] std::size_t orders() const {
    std::size_t sum = 0;
    for (const Trial& each : all) sum += each.orders.size();
    return sum;
  }
  [[nodiscard]] std::uint32_t reversed() const {
    std::uint32_t sum = 0;
    for (const Trial& each : all) sum += each.reversed();
    return sum;
  }
};

/// A mean and the half-width of its 95 % interval.
struct PairedMean {
  double mean = 0;
  double width = 0;
};

/// Student's interval of the mean. Precondition: 2 to 11 values.
inline PairedMean paired_mean(std::span<const double> values) {
  constexpr double kStudent[] = {12.706, 4.303, 3.182, 2.776, 2.571,
                                 2.447,  2.365, 2.306, 2.262, 2.228};
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  for (const double each : values) sum += each;
  const double mean = sum / count;
  double squares = 0;
  for (const double each : values) squares += (each - mean) * (each - mean);
  return {mean, kStudent[values.size() - 2] * std::sqrt(squares / (count - 1) / count)};
}

}  // namespace orrery
