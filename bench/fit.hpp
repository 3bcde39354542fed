// bench/fit.hpp - fits the constants of a calibration to measured rows: least squares of the
// logarithm of predicted over measured, with priors, bounds and a loss that forgives outliers.
//
// Levenberg-Marquardt with a numerical Jacobian; Huber's loss by iterated weights. Linear algebra
// is Eigen's. Cost of an iteration: an evaluation of every row, and one for each constant of the
// rows it can move.
#pragma once

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "perf/calibration.hpp"

namespace orrery {

/// Rows to fit to.
struct FitRows {
  std::size_t count = 0;
  /// log(predicted / measured) of a row; finite.
  std::function<double(const Calibration&, std::size_t row)> residual;
};

struct FitOptions {
  int iterations = 80;
  double noise = 0.04;          ///< standard deviation of a row that nothing explains
  double huber = 2;             ///< residuals beyond so many of it count linearly
  std::vector<double> weights;  ///< of the rows; empty: 1
};

class Fit {
 public:
  /// Fits the constants with a spread.
  Fit(Calibration& calibration, FitRows rows, FitOptions options)
      : calibration_(calibration), rows_(std::move(rows)), options_(std::move(options)) {}

  /// Returns the cost reached. Only constants that move a row are changed; `rows_moved` tells how
  /// many each moves, by position in Calibration::constants().
  double run() {
    choose_constants();
    double cost = cost_of(residuals());
    double damping = 1e-3;
    for (int i = 0; i < options_.iterations; ++i) {
      const double before = cost;
      if (!step(cost, damping)) break;
      if (before - cost < 1e-5 * before) break;
    }
    return cost;
  }

  [[nodiscard]] const std::vector<std::int64_t>& rows_moved() const { return rows_moved_; }

 private:
  [[nodiscard]] std::vector<double> residuals() const {
    std::vector<double> result(rows_.count);
    for (std::size_t r = 0; r < rows_.count; ++r) result[r] = rows_.residual(calibration_, r);
    return result;
  }

  void choose_constants() {
    const std::vector<double> base = residuals();
    rows_moved_.assign(calibration_.constants().size(), 0);
    for (std::size_t i = 0; i < calibration_.constants().size(); ++i) {
      const CalibrationConstant c = calibration_.constants()[i];
      if (c.spread <= 0) continue;
      std::vector<std::size_t> moved = moved_by(i, base);
      rows_moved_[i] = static_cast<std::int64_t>(moved.size());
      if (moved.empty()) continue;
      free_.push_back(i);
      reach_.push_back(std::move(moved));
    }
  }

  /// Rows that a nudge of a constant or its going to a bound moves.
  std::vector<std::size_t> moved_by(std::size_t constant, const std::vector<double>& base) {
    const CalibrationConstant c = calibration_.constants()[constant];
    std::vector<bool> moves(base.size());
    for (const double value : {nudged(c), c.low, c.high}) {
      calibration_.set_value(constant, value);
      for (std::size_t r = 0; r < base.size(); ++r) {
        if (!moves[r]) moves[r] = std::abs(rows_.residual(calibration_, r) - base[r]) > 1e-5;
      }
    }
    calibration_.set_value(constant, c.value);
    std::vector<std::size_t> rows;
    for (std::size_t r = 0; r < base.size(); ++r) {
      if (moves[r]) rows.push_back(r);
    }
    return rows;
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
    const std::vector<double> base = residuals();
    const auto m = static_cast<Eigen::Index>(base.size());
    Eigen::MatrixXd jacobian = Eigen::MatrixXd::Zero(m, n);
    Eigen::VectorXd error(m);
    std::vector<double> scale;
    for (std::size_t r = 0; r < base.size(); ++r) {
      const double z = std::abs(base[r]) / options_.noise;
      scale.push_back(std::sqrt(weight(r) * (z <= options_.huber ? 1 : options_.huber / z)) /
                      options_.noise);
      error(static_cast<Eigen::Index>(r)) = scale[r] * base[r];
    }
    for (Eigen::Index k = 0; k < n; ++k) {
      const auto at = static_cast<std::size_t>(k);
      const CalibrationConstant c = calibration_.constants()[free_[at]];
      const double value = nudged(c);
      calibration_.set_value(free_[at], value);
      for (const std::size_t r : reach_[at]) {
        const double moved = rows_.residual(calibration_, r) - base[r];
        jacobian(static_cast<Eigen::Index>(r), k) = scale[r] * moved / (value - c.value) * c.spread;
      }
      calibration_.set_value(free_[at], c.value);
    }
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
      const double tried = cost_of(residuals());
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
  FitRows rows_;
  FitOptions options_;
  std::vector<std::size_t> free_;
  std::vector<std::vector<std::size_t>> reach_;  ///< rows each of them can move
  std::vector<std::int64_t> rows_moved_;
};

}  // namespace orrery
