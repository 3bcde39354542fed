// twin/study/study_figures.hpp - the figures a study can show: their names, units, and whether more
// is better.
//
// A figure is found by its place in the list of its kind of run. Values; NaN is a figure that
// cannot be known here: a price that is not published, goodput without a failure rate.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/format/field_reader.hpp"
#include "report/plot/axis.hpp"

namespace orrery {

struct PlanAnswer;
struct PlanQuestion;
struct PolicyRun;
struct ServiceFigures;

/// What every cell of a study does: the verb of the command line.
enum class StudyRun : std::uint8_t {
  kSimulate,
  kPlan,
  kServe,  ///< `simulate --serve`
};

inline std::array<EnumWord<StudyRun>, 3> enum_words(StudyRun) {
  return {
      {{"simulate", StudyRun::kSimulate}, {"plan", StudyRun::kPlan}, {"serve", StudyRun::kServe}}};
}

enum class Better : std::uint8_t { kLess, kMore, kNeither };

struct StudyFigure {
  std::string name;
  Axis axis;  ///< base units: seconds, joules, watts, dollars, shares of 1
  Better better = Better::kNeither;
};

/// The figures in the order of figures_of. Made once a call.
[[nodiscard]] std::vector<StudyFigure> study_figures(StudyRun run);

/// The values of the figures of kSimulate.
[[nodiscard]] std::vector<double> figures_of(const PolicyRun& run);

/// The values of the figures of kServe.
[[nodiscard]] std::vector<double> figures_of(const ServiceFigures& figures);

/// The values of the figures of kPlan: those of the best plan. Precondition: the answer has one.
[[nodiscard]] std::vector<double> figures_of(const PlanAnswer& answer,
                                             const PlanQuestion& question);

}  // namespace orrery
