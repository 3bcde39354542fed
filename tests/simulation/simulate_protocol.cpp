// simulate_protocol --seeds A..B | --seed N [--trace]
//
// Runs seeds of the protocol under faults (twin/protocol_run.hpp), each twice: both runs must have
// the same history. Prints a line for each seed that fails, with the command that shows it again,
// then what was run. The exit status is 1 if any seed failed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "hardware/builtin_catalog.hpp"
#include "hardware/catalog.hpp"
#include "twin/protocol_run.hpp"

namespace orrery {
namespace {

struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t last = 200;
};

struct Sum {
  std::uint64_t seeds = 0;
  std::uint64_t faults = 0;
  std::uint64_t crashes = 0;
  std::uint64_t failures = 0;
};

void print_line(Instant at, const std::string& what) {
  fmt::print("{} {}\n", at.text().substr(11, 12), what);
  std::fflush(stdout);
}

void run_seed(const ProtocolSites& sites, std::uint64_t seed, const ProtocolWorld::Trace& trace,
              Sum& sum) {
  const ProtocolRun first = run_protocol(sites, seed, trace);
  const ProtocolRun second = run_protocol(sites, seed);
  std::string failure = first.failure;
  if (failure.empty() && first.history != second.history) failure = "two runs differ";
  ++sum.seeds;
  sum.faults += first.faults;
  sum.crashes += first.crashes;
  if (failure.empty()) return;
  ++sum.failures;
  fmt::print("seed {} failed: {}; replay: build/dev/bin/simulate_protocol --seed {} --trace\n",
             seed, failure, seed);
  std::fflush(stdout);
}

int run(const Seeds& seeds, const ProtocolWorld::Trace& trace) {
  const Result<Catalog> catalog = Catalog::load(builtin_catalog(), "");
  if (!catalog) return fmt::print(stderr, "{}\n", catalog.error().text()), 2;
  const Result<ProtocolSites> sites = ProtocolSites::make(*catalog);
  if (!sites) return fmt::print(stderr, "{}\n", sites.error().text()), 2;
  Sum sum;
  for (std::uint64_t seed = seeds.first; seed <= seeds.last; ++seed) {
    run_seed(*sites, seed, trace, sum);
  }
  fmt::print("{} seeds, {} faults, {} crashes of the controller, {} seeds failed\n", sum.seeds,
             sum.faults, sum.crashes, sum.failures);
  return sum.failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  CLI::App app("Runs the protocol of control, agents and keepers under faults.");
  std::string range = "1..200";
  std::uint64_t seed = 0;
  app.add_option("--seeds", range, "first and last seed: 1..200");
  const CLI::Option* one = app.add_option("--seed", seed, "one seed alone");
  const CLI::Option* trace = app.add_flag("--trace", "print what happens");
  CLI11_PARSE(app, argc, argv);
  orrery::Seeds seeds{seed, seed};
  if (one->empty()) {
    const std::size_t dots = range.find("..");
    const bool read = dots != std::string::npos &&
                      CLI::detail::lexical_cast(range.substr(0, dots), seeds.first) &&
                      CLI::detail::lexical_cast(range.substr(dots + 2), seeds.last);
    if (!read) return fmt::print(stderr, "--seeds: expected A..B, found '{}'\n", range), 2;
  }
  return orrery::run(seeds, trace->empty() ? orrery::ProtocolWorld::Trace()
                                           : orrery::ProtocolWorld::Trace(orrery::print_line));
}
