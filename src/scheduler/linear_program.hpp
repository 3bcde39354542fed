// scheduler/linear_program.hpp - finds the values of which a weighted sum is greatest, where other
// weighted sums of them are bounded from above.
//
// Made and solved by policies that divide the fleet by a linear program; a value of its rows and
// columns. Solved by the simplex method of GLPK, which works in one thread and asks no clock: the
// same program has the same solution. Invariant: all values are at least 0, and so is each bound.
// Cost: a simplex step is O(rows x columns that are not 0); a few times the rows of them, and no
// more than 1e8 / (rows + columns), but at least 1000: a program that would take more has no
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

  /// Another value to be found, which adds `gain` x itself to the sum. Its number, from 0.
  std::uint32_t add_column(double gain);

  /// The sum of factor x value is at most `most`. Preconditions: each column stands in it once;
  /// most >= 0.
  void add_row(std::span<const Term> terms, double most);

  /// By column, a vertex at which the sum is greatest; none: there is none, or no steps are left.
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
