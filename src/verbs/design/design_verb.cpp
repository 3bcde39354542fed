#include "verbs/design/design_verb.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/text/count_text.hpp"
#include "planner/job_defaults.hpp"
#include "twin/design/design_html.hpp"
#include "verbs/design/design_text.hpp"
#include "verbs/option_text.hpp"
#include "verbs/output_file.hpp"

namespace orrery {
namespace {

void set_candidates(DesignSpec& spec, const std::string& list) {
  if (list.empty()) return;
  spec.candidates.clear();
  for (std::string& name : pieces(list)) {
    spec.candidates.push_back({std::move(name), {.file = "--candidates"}});
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

}  // namespace

Result<JudgedAnswer> design(const CommandOptions& options, const DesignOptions& asked,
                            const DesignSay& say) {
  const Result<Facts> known = load_facts(options);
  if (!known) return tl::unexpected(known.error());
  Result<DesignSpec> spec = load_design_spec(asked.file);
  if (!spec) return forward_error(spec);
  set_candidates(*spec, asked.candidates);
  if (Status set = set_precision(*spec, asked.precision); !set) return forward_error(set);
  Result<Seconds> span = quantity_option<Seconds>("span", asked.span);
  if (!span) return forward_error(span);
  const FactsView facts = known->view();
  Result<Design> designed = design_fleet(facts, *spec, [&](const DesignCandidate& candidate) {
    say("planning for " + candidate.accelerator->id);
  });
  say("");
  if (!designed) return forward_error(designed);
  std::optional<Rehearsal> played;
  if (asked.twin == DesignOptions::Twin::kPlays) {
    say(fmt::format("simulating {} accelerators for {}", print_count(designed->accelerators()),
                    print(*span)));
    Result<Rehearsal> run =
        rehearse(facts, *designed, {Duration::from_seconds(span->value()), asked.seed});
    say("");
    if (!run) return forward_error(run);
    played = *run;
  }
  if (Status written = write_results(asked.out, *designed, played); !written) {
    return forward_error(written);
  }
  JudgedAnswer answer{{design_text(*designed, played), design_json(*designed, played)}};
  if (played && !confirmed(*designed, *played)) {
    answer.verdict = infeasible(fmt::format("the twin does not confirm the goodput: {:+.1f} %",
                                            difference(*designed, *played) * 100));
  }
  return answer;
}

}  // namespace orrery
