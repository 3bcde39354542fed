// bench/fit.hpp - fits the constants of a calibration to measured rows: least squares of the
// logarithm of predicted over measured, with priors, bounds and a loss that forgives outliers.
//
// Levenberg-Marquardt with a numerical Jacobian; Huber's loss by iterated weights. Linear algebra
// is Eigen's. Cost: (constants + 1) evaluations of all rows an iteration.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <eigen3/Eigen/Dense>
#include <functional>
#include <vector>

#include "perf/calibration.hpp"

namespace orrery {

/// log(predicted / measured) of every row, in a fixed order; finite.
using Residuals = std::function<std::vector<double>(const Calibration&)>;

struct FitOptions {
  int iterations = 30;
  double tolerance = 1e-4;      ///< relative gain of an iteration below which the fit ends
  double noise = 0.04;          ///< standard deviation of a row that nothing explains
  double huber = 2;             ///< residuals beyond so many of it count linearly
  std::vector<double> weights;  ///< of the rows; empty: 1
};

class Fit {
 public:
  /// Fits the constants with a spread whose id `takes` accepts.
  Fit(Calibration& calibration, const Residuals& residuals, FitOptions options)
      : calibration_(calibration), residuals_(residuals), options_(std::move(options)) {}

  /// Returns the cost reached. Only constants that move a row are changed; `rows_moved` tells how
  /// many each moves, by position in Calibration::constants().
  double run() {
    choose_constants();
    double cost = cost_of(residuals_(calibration_));
    double damping = 1e-3;
    for (int i = 0; i < options_.iterations; ++i) {
      const double before = cost;
      if (!step(cost, damping)) break;
      if (before - cost < options_.tolerance * before) break;
    }
    return cost;
  }

  [[nodiscard]] const std::vector<std::int64_t>& rows_moved() const { return rows_moved_; }

 private:
  void choose_constants() {
    const std::vector<double> base = residuals_(calibration_);
    rows_moved_.assign(calibration_.constants().size(), 0);
    for (std::size_t i = 0; i < calibration_.constants().size(); ++i) {
      const CalibrationConstant c = calibration_.constants()[i];
      if (c.spread <= 0) continue;
      calibration_.set_value(i, nudged(c));
      const std::vector<double> moved = residuals_(calibration_);
      calibration_.set_value(i, c.value);
      for (std::size_t r = 0; r < base.size(); ++r) {
        if (std::abs(moved[r] - base[r]) > 1e-5) ++rows_moved_[i];
      }
      if (rows_moved_[i] > 0) free_.push_back(i);
    }
  }

  static double nudged(const CalibrationConstant& c) {
    const double delta = 0.02 * c.spread;
    return c.value + delta <= c.high ? c.value + delta : c.value - delta;
  }

  [[nodiscard]] double weight(std::size_t row) const {
    return options_.weights.empty() ? 1 : options_.weights[row];
  }

  [[nodiscard]] double cost_of(const std::vector<double>& residuals) const {
    double cost = 0;
    for (std::size_t r = 0; r < residuals.size(); ++r) {
      const double z = std::abs(residuals[r]) / options_.noise;
      cost += weight(r) * (z <= options_.huber ? z * z : options_.huber * (2 * z - options_.huber));
    }
    for (const std::size_t i : free_) {
      const CalibrationConstant& c = calibration_.constants()[i];
      const double z = (c.value - c.prior) / c.spread;
      cost += z * z;
    }
    return cost;
  }

  bool step(double& cost, double& damping) {
    const auto n = static_cast<Eigen::Index>(free_.size());
    const std::vector<double> base = residuals_(calibration_);
    const auto m = static_cast<Eigen::Index>(base.size());
    Eigen::MatrixXd jacobian(m, n);
    Eigen::VectorXd error(m);
    for (Eigen::Index r = 0; r < m; ++r) {
      const double z = std::abs(base[static_cast<std::size_t>(r)]) / options_.noise;
      const double root = std::sqrt(weight(static_cast<std::size_t>(r)) *
                                    (z <= options_.huber ? 1 : options_.huber / z)) /
                          options_.noise;
      error(r) = root * base[static_cast<std::size_t>(r)];
      scale_.push_back(root);
    }
    for (Eigen::Index k = 0; k < n; ++k) {
      const std::size_t i = free_[static_cast<std::size_t>(k)];
      const CalibrationConstant c = calibration_.constants()[i];
      const double at = nudged(c);
      calibration_.set_value(i, at);
      const std::vector<double> moved = residuals_(calibration_);
      calibration_.set_value(i, c.value);
      for (Eigen::Index r = 0; r < m; ++r) {
        const auto row = static_cast<std::size_t>(r);
        jacobian(r, k) = scale_[row] * (moved[row] - base[row]) / (at - c.value) * c.spread;
      }
    }
    scale_.clear();
    return improve(jacobian, error, cost, damping);
  }

  bool improve(const Eigen::MatrixXd& jacobian, const Eigen::VectorXd& error, double& cost,
               double& damping) {
    const auto n = static_cast<Eigen::Index>(free_.size());
    Eigen::MatrixXd normal = jacobian.transpose() * jacobian;
    Eigen::VectorXd gradient = jacobian.transpose() * error;
    std::vector<double> old;
    for (Eigen::Index k = 0; k < n; ++k) {
      const CalibrationConstant& c = calibration_.constants()[free_[static_cast<std::size_t>(k)]];
      normal(k, k) += 1;
      gradient(k) += (c.value - c.prior) / c.spread;
      old.push_back(c.value);
    }
    for (int attempt = 0; attempt < 8; ++attempt) {
      Eigen::MatrixXd damped = normal;
      damped.diagonal() *= 1 + damping;
      const Eigen::VectorXd move = damped.ldlt().solve(gradient);
      for (Eigen::Index k = 0; k < n; ++k) {
        const auto at = static_cast<std::size_t>(k);
        const CalibrationConstant& c = calibration_.constants()[free_[at]];
        calibration_.set_value(free_[at], std::clamp(old[at] - move(k) * c.spread, c.low, c.high));
      }
      const double tried = cost_of(residuals_(calibration_));
      if (tried < cost) {
        cost = tried;
        damping = std::max(1e-6, damping / 5);
        return true;
      }
      damping *= 8;
    }
    for (std::size_t at = 0; at < free_.size(); ++at) calibration_.set_value(free_[at], old[at]);
    return false;
  }

  Calibration& calibration_;
  const Residuals& residuals_;
  FitOptions options_;
  std::vector<std::size_t> free_;
  std::vector<std::int64_t> rows_moved_;
  std::vector<double> scale_;
};

}  // namespace orrery
