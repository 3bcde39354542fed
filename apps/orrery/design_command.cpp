// orrery design
#include <unistd.h>

#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "base/text/terminal_text.hpp"
#include "verbs/design/design_verb.hpp"

namespace orrery {
namespace {

/// A line on a terminal, written over and over.
void say(const std::string& what) {
  if (::isatty(2) != 0) print_progress("\r\x1b[K" + terminal_text(what, Newlines::kKept));
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
    chosen = [&options, asked] { return print_answer(options, design(options, *asked, say)); };
  });
}

}  // namespace orrery
