// orrery study
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "twin/study/study_spec.hpp"
#include "verbs/study/study_verb.hpp"

namespace orrery {
namespace {

void show_progress(std::size_t done, std::size_t cells) {
  if (::isatty(2) == 0) return;
  print_progress(done == cells ? "\r\x1b[K" : fmt::format("\r{} of {} cells", done, cells));
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
    chosen = [&options, call] {
      return print_answer(options, study(options, *call, show_progress));
    };
  });
}

}  // namespace orrery
