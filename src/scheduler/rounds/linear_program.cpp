#include "scheduler/rounds/linear_program.hpp"

#include <glpk.h>

#include <algorithm>
#include <memory>

#include "base/assert.hpp"

namespace orrery {
namespace {

/// The bound of steps x (rows + columns) of a program, about 2 s, and the steps that any program
/// may take.
constexpr double kWorkMost = 1e8;
constexpr double kStepsOfAny = 1000;

}  // namespace

std::uint32_t LinearProgram::add_column(double gain) {
  gains_.push_back(gain);
  return static_cast<std::uint32_t>(gains_.size() - 1);
}

void LinearProgram::add_row(std::span<const Term> terms, double most) {
  ORRERY_ASSERT(most >= 0, "a bound is at least 0");
  rows_.push_back({{terms.begin(), terms.end()}, most});
}

std::optional<std::vector<double>> LinearProgram::solve() const {
  const std::unique_ptr<glp_prob, decltype(&glp_delete_prob)> program(glp_create_prob(),
                                                                      &glp_delete_prob);
  glp_prob* const p = program.get();
  glp_set_obj_dir(p, GLP_MAX);
  if (!gains_.empty()) glp_add_cols(p, static_cast<int>(gains_.size()));
  if (!rows_.empty()) glp_add_rows(p, static_cast<int>(rows_.size()));
  for (std::size_t i = 0; i < gains_.size(); ++i) {
    const int column = static_cast<int>(i) + 1;
    glp_set_obj_coef(p, column, gains_[i]);
    glp_set_col_bnds(p, column, GLP_LO, 0, 0);
  }
  std::vector<int> columns;
  std::vector<double> factors;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    columns.assign(1, 0);  // GLPK counts from 1
    factors.assign(1, 0);
    for (const Term& term : rows_[i].terms) {
      columns.push_back(static_cast<int>(term.column) + 1);
      factors.push_back(term.factor);
    }
    const int row = static_cast<int>(i) + 1;
    glp_set_row_bnds(p, row, GLP_UP, 0, rows_[i].most);
    glp_set_mat_row(p, row, static_cast<int>(columns.size()) - 1, columns.data(), factors.data());
  }
  glp_smcp control;
  glp_init_smcp(&control);
  control.msg_lev = GLP_MSG_OFF;
  const double size = static_cast<double>(gains_.size() + rows_.size());
  control.it_lim = static_cast<int>(std::max(kStepsOfAny, kWorkMost / std::max(size, 100.0)));
  if (glp_simplex(p, &control) != 0 || glp_get_status(p) != GLP_OPT) return std::nullopt;
  std::vector<double> values;
  values.reserve(gains_.size());
  for (std::size_t i = 0; i < gains_.size(); ++i) {
    values.push_back(glp_get_col_prim(p, static_cast<int>(i) + 1));
  }
  return values;
}

}  // namespace orrery
