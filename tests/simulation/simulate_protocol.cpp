// simulate_protocol --seeds A..B | --seed N [--trace]
//
// Runs seeds of the protocol under faults (twin/protocol_run.hpp), each twice: both runs must have
// the same history. Prints a line for each seed that fails, with the command that shows it again,
// then what was run. The exit status is 1 if any seed failed.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <span>

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

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
}

/// "A..B" or "A".
std::optional<Seeds> seeds_in(std::string_view text) {
  const std::size_t dots = text.find("..");
  const auto first = number(text.substr(0, dots));
  const auto last = dots == std::string_view::npos ? first : number(text.substr(dots + 2));
  if (!first || !last) return std::nullopt;
  return Seeds{*first, *last};
}

int run(std::span<char*> arguments) {
  Seeds seeds;
  ProtocolWorld::Trace trace;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    if (name == "--trace") {
      trace = print_line;
      continue;
    }
    const bool known = name == "--seeds" || name == "--seed";
    const auto read = known && i + 1 < arguments.size() ? seeds_in(arguments[++i]) : std::nullopt;
    if (!read) {
      fmt::print(stderr, "usage: simulate_protocol --seeds A..B | --seed N [--trace]\n");
      return 2;
    }
    seeds = *read;
  }
  return run(seeds, trace);
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  return orrery::run(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
}
