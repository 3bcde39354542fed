// orrery study
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <thread>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "twin/study/study_report.hpp"
#include "verbs/output_file.hpp"
#include "verbs/simulate/study_cell.hpp"

namespace orrery {
namespace {

struct StudyCall {
  std::string file;
  std::string out;
  std::uint32_t jobs = 0;   ///< 0: as many as there are cores
  std::uint32_t cells = 0;  ///< 0: all
};

void show_progress(std::size_t done, std::size_t cells) {
  if (::isatty(2) == 0) return;
  print_progress(done == cells ? "\r\x1b[K" : fmt::format("\r{} of {} cells", done, cells));
}

Result<std::vector<CellOutcome>> answers_of(const CommandOptions& options, const StudyCall& call,
                                            Study& study) {
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
  runner.done = [&](std::size_t done) { show_progress(done, runner.cells); };
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

Status run_study(const CommandOptions& options, const StudyCall& call) {
  Result<std::unique_ptr<Study>> study = Study::load(call.file);
  if (!study) return forward_error(study);
  Result<std::vector<CellOutcome>> outcomes = answers_of(options, call, **study);
  if (!outcomes) return forward_error(outcomes);
  const StudyAnswers answers{
      .study = **study, .outcomes = *std::move(outcomes), .command = "orrery study " + call.file};
  if (Status status = write_results(call, answers); !status) return status;
  if (options.output == OutputFormat::kJson) {
    print_json(study_json(answers));
    return {};
  }
  std::string text = study_text(answers);
  if (!call.out.empty())
    text += fmt::format("\nresults are in {0}: open {0}/study.html\n", call.out);
  print_text(text);
  return {};
}

}  // namespace

void add_study_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto call = std::make_shared<StudyCall>();
  CLI::App& verb = *app.add_subcommand(
      "study", "run `simulate` or `plan` over a grid of options and compare the results");
  verb.footer(
      "A study is a YAML file: base options, axes of values, the figures to show "
      "(docs/formats.md).\n"
      "Examples:\n"
      "  orrery study examples/studies/policies.yaml\n"
      "  orrery study examples/studies/power-cap.yaml --out power-cap   # power-cap/study.html\n"
      "  orrery study mine.yaml --jobs 4 -o json");
  verb.add_option("file", call->file, "study file")->required()->type_name("FILE");
  verb.add_option("--out", call->out, "directory for study.html, cells.csv, study.json")
      ->type_name("DIR");
  verb.add_option("--jobs", call->jobs,
                  "number of cells to run at a time (default: the number of cores)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  verb.add_option("--cells", call->cells, "run only the first N cells, to test a study")
      ->check(CLI::Range(1U, static_cast<std::uint32_t>(kStudyCellsMax)))
      ->type_name("N");
  verb.callback([&options, &chosen, call] {
    chosen = [&options, call] { return run_study(options, *call); };
  });
}

}  // namespace orrery
