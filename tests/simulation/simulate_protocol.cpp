// simulate_protocol --seeds A..B | --seed N [--trace] [--once] [--lenders none|some|all]
//
// Runs seeds of the protocol under faults (twin/protocol/protocol_run.hpp), each twice: both runs
// must have the same history. With --once the second run is left to another process, which gets the
// same seeds and must print the same digest of all histories. Prints a line for each seed that
// fails, with the command that repeats it, then a summary. The exit status is 1 if any seed failed.
// One seed in three has a resource manager that lends nodes, or none, or all, as --lenders says.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <span>

#include "base/format/checksum.hpp"
#include "hardware/builtin_catalog.hpp"
#include "hardware/catalog.hpp"
#include "seed_range.hpp"
#include "twin/protocol/protocol_run.hpp"

namespace orrery {
namespace {

struct Sum {
  std::uint64_t seeds = 0;
  std::uint64_t faults = 0;
  std::uint64_t crashes = 0;
  std::uint64_t failures = 0;
  std::uint64_t digest = 0;  ///< of the histories, in order
};

constexpr std::array<std::string_view, 3> kLenders{"none", "some", "all"};

enum class Runs : std::uint8_t { kOne, kTwo };

struct Asked {
  SeedRange seeds;
  Runs runs = Runs::kTwo;
  Lenders lenders = Lenders::kSome;
  ProtocolWorld::Trace trace;
};

void print_line(Instant at, const std::string& what) {
  fmt::print("{} {}\n", at.text().substr(11, 12), what);
  std::fflush(stdout);
}

void run_seed(const ProtocolSites& sites, std::uint64_t seed, const Asked& asked, Sum& sum) {
  const ProtocolRun first = run_protocol(sites, seed, asked.lenders, asked.trace);
  std::string failure = first.failure;
  if (asked.runs == Runs::kTwo && failure.empty() &&
      run_protocol(sites, seed, asked.lenders).history != first.history) {
    failure = "two runs differ";
  }
  sum.digest = checksum(fmt::format("{:016x}", first.history), sum.digest);
  ++sum.seeds;
  sum.faults += first.faults;
  sum.crashes += first.crashes;
  if (failure.empty()) return;
  ++sum.failures;
  fmt::print(
      "seed {} failed: {}; replay: build/dev/bin/simulate_protocol --seed {} --lenders {} "
      "--trace\n",
      seed, failure, seed, kLenders[static_cast<std::size_t>(asked.lenders)]);
  std::fflush(stdout);
}

int run(const Asked& asked) {
  const Result<Catalog> catalog = Catalog::load(builtin_catalog(), {});
  if (!catalog) return fmt::print(stderr, "{}\n", catalog.error().text()), 2;
  const Result<ProtocolSites> sites = ProtocolSites::make(*catalog);
  if (!sites) return fmt::print(stderr, "{}\n", sites.error().text()), 2;
  Sum sum;
  for (std::uint64_t seed = asked.seeds.first; seed <= asked.seeds.last; ++seed) {
    run_seed(*sites, seed, asked, sum);
  }
  fmt::print("{} seeds, {} faults, {} crashes of the controller, {} seeds failed\n", sum.seeds,
             sum.faults, sum.crashes, sum.failures);
  if (asked.runs == Runs::kOne) fmt::print("digest {:016x}\n", sum.digest);
  return sum.failures == 0 ? 0 : 1;
}

int run(std::span<char*> arguments) {
  Asked asked;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    if (name == "--trace") {
      asked.trace = print_line;
      continue;
    }
    if (name == "--once") {
      asked.runs = Runs::kOne;
      continue;
    }
    if (name == "--lenders" && i + 1 < arguments.size()) {
      const auto word = std::find(kLenders.begin(), kLenders.end(), arguments[++i]);
      if (word != kLenders.end()) {
        asked.lenders = static_cast<Lenders>(word - kLenders.begin());
        continue;
      }
    }
    const bool known = name == "--seeds" || name == "--seed";
    const auto read = known && i + 1 < arguments.size() ? seeds_in(arguments[++i]) : std::nullopt;
    if (!read) {
      fmt::print(stderr,
                 "usage: simulate_protocol --seeds A..B | --seed N [--trace] [--once] "
                 "[--lenders none|some|all]\n");
      return 2;
    }
    asked.seeds = *read;
  }
  return run(asked);
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  return orrery::run(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
}
