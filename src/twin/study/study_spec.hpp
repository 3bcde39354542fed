// twin/study/study_spec.hpp - a user's file of kind Study: a grid of changes to one question, and
// which figures of the answers to show.
//
//   apiVersion: orrery/v1
//   kind: Study
//   name: spares
//   run: simulate
//   base: {accelerators: "h100:1024", trace: one-large-job.yaml, failures: llama3}
//   axes:
//   - {name: spares, values: [0, 4, 16]}
//   - name: rate
//     option: failures.failures_per_1000_node_days
//     values: [3, 6, {label: as new, value: 12}]
//   seeds: 3
//   show:
//   - {figure: ettr, x: rate, series: spares}
//   - makespan
//
// Built by Study::load or Study::read; owns the documents its nodes point into, and does not move.
// Invariant: an axis has values, a plot's axes and figure exist. Cost: O(bytes).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/format/document.hpp"
#include "report/plot/axis.hpp"
#include "twin/study/study_figures.hpp"
#include "twin/study/study_patch.hpp"

namespace orrery {

/// One value of an axis: what it sets, and its position on a plot.
struct StudyValue {
  std::string label;
  std::vector<DocumentPatch> set;
  double at = 0;  ///< only for an axis of numbers
};

struct StudyAxis {
  std::string name;
  std::vector<StudyValue> values;
  Axis axis;             ///< its title, and its unit where it is one of numbers
  bool numeric = false;  ///< every value is a number
};

enum class StudyPlotKind : std::uint8_t { kLines, kBars };

inline std::array<EnumWord<StudyPlotKind>, 2> enum_words(StudyPlotKind) {
  return {{{"lines", StudyPlotKind::kLines}, {"bars", StudyPlotKind::kBars}}};
}

/// A column of the table and, with `x`, a plot. Positions among figures and axes.
struct StudyShow {
  std::size_t figure = 0;
  std::optional<std::size_t> x;
  std::optional<std::size_t> series;
  StudyPlotKind kind = StudyPlotKind::kLines;
};

inline constexpr std::size_t kStudyCellsMax = 10'000;
inline constexpr std::uint32_t kStudySeedsMax = 1000;

struct StudySpec {
  std::string name;
  std::string title;
  std::string question;  ///< question that the study answers; may be empty
  StudyRun run = StudyRun::kSimulate;
  std::vector<StudyAxis> axes;
  std::uint32_t seeds = 1;
  std::vector<StudyFigure> figures;  ///< of the kind of run
  std::vector<StudyShow> show;
};

class Study {
 public:
  /// Errors: those of the file, with the nearest name; more than kStudyCellsMax cells.
  [[nodiscard]] static Result<std::unique_ptr<Study>> load(const std::string& path);
  [[nodiscard]] static Result<std::unique_ptr<Study>> read(Document document);

  [[nodiscard]] const StudySpec& spec() const { return spec_; }
  /// The options that every cell starts from.
  [[nodiscard]] DocumentNode base() const;

  /// Content given in the study in place of a file, under the name the options have for it.
  struct InlineFile {
    std::string name;
    PatchedText text;
  };
  struct CellFiles {
    PatchedText options;  ///< of the verb, a mapping
    std::vector<InlineFile> files;
  };
  /// The files of the cell with these values, one an axis. Reads the files an axis changes, once
  /// each. Errors: those of patched_text and of these files.
  [[nodiscard]] Result<CellFiles> cell(const std::vector<std::size_t>& values);

  /// Used by load() and read().
  explicit Study(Document document) : document_(std::move(document)) {}
  Study(const Study&) = delete;
  Study& operator=(const Study&) = delete;

 private:
  [[nodiscard]] Result<DocumentNode> file_at(const DocumentNode& path);
  [[nodiscard]] DocumentNode literal(const std::string& name);
  [[nodiscard]] Status move_inline(std::string_view option, std::vector<DocumentPatch>& patches,
                                   CellFiles& cell);

  Document document_;
  StudySpec spec_;
  std::map<std::string, std::unique_ptr<const Document>> files_;     ///< by path
  std::map<std::string, std::unique_ptr<const Document>> literals_;  ///< names of inline files
};

/// The entry of a mapping under that key; none in anything else.
[[nodiscard]] std::optional<DocumentNode> entry_of(const DocumentNode& node, std::string_view key);

}  // namespace orrery
