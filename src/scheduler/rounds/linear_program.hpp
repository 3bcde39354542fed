// scheduler/rounds/linear_program.hpp - maximizes a weighted sum of values under upper bounds on
// other weighted sums of them.
//
// Policies that divide the fleet by a linear program make and solve it; a value of its rows and
// columns. It is solved by the simplex method of GLPK, which uses one thread and no clock: the same
// program has the same solution. Invariant: all values are at least 0, and so is each bound. Cost:
// a simplex step is O(rows x non-zero columns); there are a few times as many steps as rows, at
// most 1e8 / (rows + columns), but at least 1000 are allowed: a program that would take more has no
// solution here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace orrery {

class LinearProgram {
 public:
  struct Term {
    std::uint32_t column = 0;
    double factor = 0;
  };

  /// Adds a value to be found, which adds `gain` x itself to the sum. Returns its number, from 0.
  std::uint32_t add_column(double gain);

  /// Adds the bound that the sum of factor x value is at most `most`. Preconditions: each column
  /// stands in it once; most >= 0.
  void add_row(std::span<const Term> terms, double most);

  /// By column, a vertex at which the sum is greatest; none: there is no solution, or the steps are
  /// used up.
  [[nodiscard]] std::optional<std::vector<double>> solve() const;

 private:
  struct Row {
    std::vector<Term> terms;
    double most = 0;
  };
  std::vector<double> gains_;
  std::vector<Row> rows_;
};

}  // namespace orrery
