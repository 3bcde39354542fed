// perf/calibration.hpp - the constants of the cost model: few, named, each with a physical meaning,
// a prior and what it was fitted on.
//
// Read from catalog/calibration*.yaml (compiled in; files of those names in an overlay directory
// patch constants by id), written by scripts/calibrate. A constant's id is a path,
// "matmul.hopper.fp8"; readers ask for the most specific id first and fall back to a more general
// one, so an unmeasured accelerator still gets a figure. Immutable in use; only the fitting program
// changes values. Cost: a look-up is O(log constants); hot code resolves its constants once.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/format/embedded_file.hpp"
#include "base/format/field_reader.hpp"
#include "hardware/fact_overlay.hpp"

namespace orrery {

/// One constant. The fit minimises the rows' residuals plus ((value - prior) / spread)^2.
struct CalibrationConstant {
  std::string id;
  double value = 0;
  double prior = 0;
  double spread = 0;  ///< standard deviation of the prior, in the unit of the value; 0: not fitted
  double low = 0;     ///< bounds, in which the fit stays
  double high = 0;
  std::int64_t rows = 0;  ///< measured rows whose prediction it moves
  std::string meaning;
  std::string source;  ///< of the prior
  SourcePosition where;
};

template <class Visitor, SameStruct<CalibrationConstant> Self>
void describe(Visitor& visitor, Self& c) {
  visitor.required("id", c.id);
  visitor.required("value", c.value);
  visitor.required("prior", c.prior);
  visitor.required("spread", c.spread);
  visitor.required("low", c.low);
  visitor.required("high", c.high);
  visitor.optional("rows", c.rows);
  visitor.optional("meaning", c.meaning);
  visitor.optional("source", c.source);
}

/// The errors of predictions of one kind on rows that were not used to fit them.
struct ResidualKind {
  std::string kind;
  std::int64_t rows = 0;
  double mape = 0;  ///< mean absolute error, as a fraction of the measured value
  double low = 1;   ///< 10th percentile of measured / predicted
  double high = 1;  ///< 90th percentile of measured / predicted
};

template <class Visitor, SameStruct<ResidualKind> Self>
void describe(Visitor& visitor, Self& r) {
  visitor.required("kind", r.kind);
  visitor.required("rows", r.rows);
  visitor.required("mape", r.mape);
  visitor.required("low", r.low);
  visitor.required("high", r.high);
}

struct CalibrationHeader {
  std::int64_t version = 0;
  std::string command;    ///< that wrote the file
  std::string fitted_on;  ///< the rows, in words
};

template <class Visitor, SameStruct<CalibrationHeader> Self>
void describe(Visitor& visitor, Self& h) {
  visitor.required("version", h.version);
  visitor.required("command", h.command);
  visitor.required("fitted_on", h.fitted_on);
}

class Calibration {
 public:
  /// Reads `sources` (compiled in), then `overlays`, whose constants replace those of the same id.
  /// Errors: anything wrong in a file; a constant that an overlay has twice, or that does not
  /// exist; a value outside its bounds.
  [[nodiscard]] static Result<Calibration> load(std::span<const EmbeddedFile> sources,
                                                std::span<const FactOverlay> overlays);

  /// Returns one entry per file, in the order read.
  [[nodiscard]] const std::vector<CalibrationHeader>& headers() const { return headers_; }
  [[nodiscard]] const std::vector<CalibrationConstant>& constants() const { return constants_; }
  [[nodiscard]] const std::vector<ResidualKind>& residuals() const { return residuals_; }

  /// Position in constants(), or none.
  [[nodiscard]] std::optional<std::size_t> position(std::string_view id) const;

  /// Value of the constant, or none.
  [[nodiscard]] std::optional<double> find(std::string_view id) const;

  /// Value of the first of `ids` that exists. Precondition: one does.
  [[nodiscard]] double first_of(std::initializer_list<std::string_view> ids) const;

  /// The residuals of the first of `kinds` that exists; the widest interval there is otherwise.
  [[nodiscard]] ResidualKind residual_of(std::initializer_list<std::string_view> kinds) const;

  /// The residuals for a kind of question that resembles none of the known kinds.
  [[nodiscard]] static ResidualKind unknown_kind();

  /// For the fitting program alone.
  void set_value(std::size_t constant, double value) { constants_[constant].value = value; }
  void set_residuals(std::vector<ResidualKind> residuals) { residuals_ = std::move(residuals); }

 private:
  /// Layer 0 is built in, the others are overlays.
  [[nodiscard]] Status add(const Document& document, int layer);
  [[nodiscard]] Status patch(const CalibrationConstant& constant, int layer);

  std::vector<CalibrationHeader> headers_;
  std::vector<CalibrationConstant> constants_;              ///< in the order of the file
  std::vector<int> layers_;                                 ///< of each constant's value
  std::vector<std::pair<std::string, std::size_t>> names_;  ///< sorted
  std::vector<ResidualKind> residuals_;
};

}  // namespace orrery
