#include "verbs/study/study_verb.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "twin/study/study_report.hpp"
#include "verbs/output_file.hpp"
#include "verbs/study/study_cell.hpp"

namespace orrery {
namespace {

Result<std::vector<CellOutcome>> answers_of(const CommandOptions& options, const StudyCall& call,
                                            Study& study, const StudyProgress& progress) {
  const std::vector<StudyCell> cells = study_cells(study.spec());
  std::vector<Study::CellFiles> files;
  files.reserve(cells.size() / study.spec().seeds);
  for (std::size_t i = 0; i < cells.size(); i += study.spec().seeds) {
    Result<Study::CellFiles> of = study.cell(cells[i].values);
    if (!of) return forward_error(of);
    files.push_back(*std::move(of));
  }
  CellRunner runner{.cells = cells.size()};
  if (call.cells > 0) runner.cells = std::min<std::size_t>(runner.cells, call.cells);
  runner.threads = call.jobs > 0 ? call.jobs : std::thread::hardware_concurrency();
  runner.run = [&](std::size_t i) {
    return run_cell(options, {.run = study.spec().run,
                              .file = call.file,
                              .asked = &files[i / study.spec().seeds],
                              .repeat = cells[i].repeat});
  };
  runner.done = [&](std::size_t done) {
    if (progress) progress(done, runner.cells);
  };
  Result<std::vector<CellOutcome>> outcomes = run_cells(runner);
  if (outcomes) outcomes->resize(cells.size(), {.figures = {}, .failure = "not run"});
  return outcomes;
}

Status write_results(const StudyCall& call, const StudyAnswers& answers) {
  if (call.out.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(call.out, error);
  if (error) return environment_error(fmt::format("{}: {}", call.out, error.message()));
  Status status = write_output_file(call.out + "/cells.csv", study_csv(answers));
  if (status) {
    status = write_output_file(call.out + "/study.json", study_json(answers).dump(2) + "\n");
  }
  return status ? write_output_file(call.out + "/study.html", study_html(answers)) : status;
}

}  // namespace

Result<VerbAnswer> study(const CommandOptions& options, const StudyCall& call,
                         const StudyProgress& progress) {
  Result<std::unique_ptr<Study>> loaded = Study::load(call.file);
  if (!loaded) return forward_error(loaded);
  Result<std::vector<CellOutcome>> outcomes = answers_of(options, call, **loaded, progress);
  if (!outcomes) return forward_error(outcomes);
  const StudyAnswers answers{
      .study = **loaded, .outcomes = *std::move(outcomes), .command = "orrery study " + call.file};
  if (Status status = write_results(call, answers); !status) return forward_error(status);
  VerbAnswer answer{study_text(answers), study_json(answers)};
  if (!call.out.empty()) {
    answer.text += fmt::format("\nresults are in {0}: open {0}/study.html\n", call.out);
  }
  return answer;
}

}  // namespace orrery
