// orrery design
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "base/text/terminal_text.hpp"
#include "planner/job_defaults.hpp"
#include "twin/design/design_html.hpp"
#include "verbs/option_text.hpp"
#include "verbs/output_file.hpp"
#include "verbs/simulate/design_text.hpp"

namespace orrery {
namespace {

/// The options as typed; empty: not given.
struct DesignOptions {
  std::string file;
  std::string candidates;
  std::string precision;  ///< number format of the services
  std::string span = "7 days";
  std::string out;
  std::uint64_t seed = 1;
  enum class Twin : std::uint8_t { kPlays, kSkipped } twin = Twin::kPlays;
};

/// A line on a terminal, written over and over.
void say(const std::string& what) {
  if (::isatty(2) != 0) print_progress("\r\x1b[K" + terminal_text(what, Newlines::kKept));
}

void set_candidates(DesignSpec& spec, const std::string& list) {
  if (list.empty()) return;
  spec.candidates.clear();
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    spec.candidates.push_back({list.substr(begin, end - begin), {.file = "--candidates"}});
    begin = end + 1;
  }
}

Status set_precision(DesignSpec& spec, const std::string& word) {
  if (word.empty()) return {};
  const Result<TrainingPrecision> precision = precision_named(word);
  if (!precision) return input_error({}, "--precision: " + precision.error().message);
  for (DesignWork& work : spec.workload) {
    if (work.serves()) work.work.precision = word;
  }
  return {};
}

Status write_results(const std::string& out, const Design& design,
                     const std::optional<Rehearsal>& played) {
  if (out.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(out, error);
  if (error) return environment_error(fmt::format("{}: {}", out, error.message()));
  Status done = write_output_file(out + "/fleet.yaml", write_fleet_spec(design.site.fleet));
  if (done)
    done = write_output_file(out + "/design.json", design_json(design, played).dump(2) + "\n");
  if (done) done = write_output_file(out + "/design.html", design_html(design, played));
  return done;
}

Status run_design(const CommandOptions& options, const DesignOptions& asked) {
  const Result<Facts> known = load_facts(options);
  if (!known) return tl::unexpected(known.error());
  Result<DesignSpec> spec = load_design_spec(asked.file);
  if (!spec) return forward_error(spec);
  set_candidates(*spec, asked.candidates);
  if (Status set = set_precision(*spec, asked.precision); !set) return set;
  Result<Seconds> span = quantity_option<Seconds>("span", asked.span);
  if (!span) return forward_error(span);
  const FactsView facts = known->view();
  Result<Design> design = design_fleet(facts, *spec, [](const DesignCandidate& candidate) {
    say("planning for " + candidate.accelerator->id);
  });
  say("");
  if (!design) return forward_error(design);
  std::optional<Rehearsal> played;
  if (asked.twin == DesignOptions::Twin::kPlays) {
    say(fmt::format("simulating {} accelerators for {}", print_count(design->accelerators()),
                    print(*span)));
    Result<Rehearsal> run =
        rehearse(facts, *design, {Duration::from_seconds(span->value()), asked.seed});
    say("");
    if (!run) return forward_error(run);
    played = *run;
  }
  if (Status written = write_results(asked.out, *design, played); !written) return written;
  if (options.output == OutputFormat::kJson) {
    print_json(design_json(*design, played));
  } else {
    print_text(design_text(*design, played));
  }
  if (!played || confirmed(*design, *played)) return {};
  return infeasible(fmt::format("the twin does not confirm the goodput: {:+.1f} %",
                                difference(*design, *played) * 100));
}

}  // namespace

void add_design_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<DesignOptions>();
  CLI::App& verb = *app.add_subcommand(
      "design",
      "design a fleet with its bill of materials, for given power, budget and mix of work");
  verb.footer(
      "Examples:\n"
      "  orrery design examples/designs/university-lab.yaml\n"
      "  orrery design examples/designs/forty-megawatts.yaml --candidates h100,b200 --out results");
  DesignOptions& a = *asked;
  verb.add_option("file", a.file, "design spec (kind: Design)")->required();
  verb.add_option("--candidates", a.candidates,
                  "accelerators to consider: TYPE[,TYPE..] (default: all)");
  verb.add_option(
      "--precision", a.precision,
      "number format of every service, instead of that in the design: bf16, fp8, fp4, ..");
  verb.add_option("--span", a.span, "simulated time")->capture_default_str();
  verb.add_option("--seed", a.seed, "seed of the simulated faults")->capture_default_str();
  verb.add_flag_callback(
      "--no-twin", [asked] { asked->twin = DesignOptions::Twin::kSkipped; },
      "do not simulate the fleet; its goodput remains a prediction");
  verb.add_option("--out", a.out, "directory for fleet.yaml, design.json, design.html");
  verb.callback([&options, &chosen, asked] {
    chosen = [&options, asked] { return run_design(options, *asked); };
  });
}

}  // namespace orrery
