// orrery calibrate-node
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "verbs/training/calibration_answer.hpp"

namespace orrery {
namespace {

constexpr std::uint32_t kRanksMax = 64;

}  // namespace

void add_calibrate_node_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto wanted = std::make_shared<CalibrateCall>();
  CLI::App& verb =
      *app.add_subcommand("calibrate-node", "measure the training speed of this machine's CPUs");
  verb.add_option("--ranks", wanted->ranks,
                  "largest number of busy ranks; 1, 2, 4 .. up to this number are measured")
      ->check(CLI::Range(1U, kRanksMax))
      ->capture_default_str();
  verb.add_option("--precision", wanted->precision,
                  "precision of matrix products: float32 or bfloat16")
      ->check(CLI::IsMember({"float32", "bfloat16"}))
      ->capture_default_str();
  verb.add_flag_callback(
      "--quick", [wanted] { wanted->effort = ProbeEffort::kQuick; },
      "measure roughly, within two seconds");
  verb.add_option("--directory", wanted->directory, "directory on the disk to measure")
      ->capture_default_str();
  verb.add_option("--out", wanted->out, "file for the calibration (YAML)")->type_name("FILE");
  verb.footer(
      "The measurement takes about 20 s. Run no other work on the machine during that "
      "time.\n\nExamples:\n"
      "  orrery calibrate-node --ranks 4 --out node.yaml\n"
      "  orrery predict examples/training/gpt-small.yaml --calibration node.yaml");
  verb.callback([&options, &chosen, wanted] {
    chosen = [&options, wanted] {
      return print_answer(options, report_calibration(options, *wanted));
    };
  });
}

}  // namespace orrery
