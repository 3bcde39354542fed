// simulate_replicas --seeds A..B | --seed N [--trace] [--once]
//
// Runs seeds of several controllers on one log under faults (twin/replicas/replica_run.hpp), each
// twice, unless --once is given: both runs must have the same history. Prints a line for each seed
// that fails, with the command that repeats it, then a summary. The exit status is 1 if any seed
// failed.
#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <span>

#include "perf/facts.hpp"
#include "seed_range.hpp"
#include "twin/replicas/replica_run.hpp"

namespace orrery {
namespace {

struct Asked {
  std::uint64_t first = 1;
  std::uint64_t last = 200;
  bool once = false;
  ReplicaWorld::Trace trace;
};

void print_line(Instant at, const std::string& what) {
  fmt::print("{} {}\n", at.text().substr(11, 12), what);
  std::fflush(stdout);
}

/// Returns why the seed failed; empty: it did not.
std::string run_seed(const Facts& facts, std::uint64_t seed, const Asked& asked, ReplicaRun& sum) {
  const ReplicaRun first = run_replicas(facts, seed, asked.trace);
  sum.faults += first.faults;
  sum.terms += first.terms;
  sum.jobs += first.jobs;
  sum.refusals += first.refusals;
  sum.reads += first.reads;
  if (!first.failure.empty()) return first.failure;
  if (asked.once) return "";
  return run_replicas(facts, seed).history == first.history ? "" : "two runs differ";
}

int run(const Asked& asked) {
  const Result<Facts> facts = Facts::load({});
  if (!facts) return fmt::print(stderr, "{}\n", facts.error().text()), 2;
  ReplicaRun sum;
  std::uint64_t failed = 0;
  for (std::uint64_t seed = asked.first; seed <= asked.last; ++seed) {
    const std::string failure = run_seed(*facts, seed, asked, sum);
    if (failure.empty()) continue;
    ++failed;
    fmt::print("seed {} failed: {}; replay: build/dev/bin/simulate_replicas --seed {} --trace\n",
               seed, failure, seed);
    std::fflush(stdout);
  }
  fmt::print(
      "{} seeds, {} faults, {} terms, {} jobs, {} reads, {} starts refused, {} seeds failed\n",
      asked.last - asked.first + 1, sum.faults, sum.terms, sum.jobs, sum.reads, sum.refusals,
      failed);
  return failed == 0 ? 0 : 1;
}

int run(std::span<char*> arguments) {
  Asked asked;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view option = arguments[i];
    const bool has_value = (option == "--seeds" || option == "--seed") && i + 1 < arguments.size();
    const auto seeds = has_value ? seeds_in(arguments[++i]) : std::nullopt;
    if (seeds) {
      asked.first = seeds->first;
      asked.last = seeds->last;
    } else if (option == "--once") {
      asked.once = true;
    } else if (option == "--trace") {
      asked.trace = print_line;
    } else {
      fmt::print(stderr, "usage: simulate_replicas --seeds A..B | --seed N [--trace] [--once]\n");
      return 2;
    }
  }
  return run(asked);
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  return orrery::run(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
}
