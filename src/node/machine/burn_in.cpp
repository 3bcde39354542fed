#include "node/machine/burn_in.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

/// splitmix64 (Steele, Lea, Flood 2014): neighbouring words have unlike bits.
std::uint64_t word_of(std::uint64_t place, std::uint64_t seed) {
  std::uint64_t word = seed + (place + 1) * 0x9e3779b97f4a7c15u;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
  return word ^ (word >> 31);
}

/// The CPUs that this process may use.
std::vector<int> own_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  cpus.reserve(static_cast<std::size_t>(CPU_COUNT(&set)));
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

void stay_on(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  (void)::sched_setaffinity(0, sizeof set, &set);
}

template <class Number>
std::string product_fault(const KnownProduct& known) {
  return known.fault(known.multiply<Number>());
}

std::string memory_fault(std::span<std::uint64_t> memory, std::uint64_t seed) {
  write_pattern(memory, seed);
  if (std::string fault = pattern_fault(memory, seed); !fault.empty()) return fault;
  // Tests every bit in its other state, too.
  for (std::uint64_t& word : memory) word = ~word;
  for (std::uint64_t& word : memory) word = ~word;
  return pattern_fault(memory, seed);
}

/// Tests one CPU until its time is over. Returns what it found wrong; empty: nothing.
std::string try_cpu(const Clock& clock, Instant until, std::span<std::uint64_t> memory) {
  constexpr int kProductsARound = 8;
  for (std::uint64_t round = 0;; ++round) {
    std::string fault = memory_fault(memory, round);
    for (std::uint64_t each = 0; each < kProductsARound && fault.empty(); ++each) {
      const KnownProduct known(round * kProductsARound + each);
      fault = product_fault<double>(known);
      if (fault.empty()) fault = product_fault<std::uint64_t>(known);
    }
    if (!fault.empty() || clock.now_monotonic() >= until) return fault;
  }
}

}  // namespace

KnownProduct::KnownProduct(std::uint64_t seed) {
  Rng rng = Rng::stream(seed, "burn-in");
  for (std::vector<std::uint64_t>* part : {&x_, &y_, &u_, &v_}) {
    part->resize(kSize);
    for (std::uint64_t& each : *part) each = rng.below(1 << 10);
  }
}

template <class Number>
std::vector<Number> KnownProduct::multiply() const {
  std::vector<Number> product(std::size_t{kSize} * kSize);
  std::vector<Number> row(kSize);  // of B
  for (std::size_t k = 0; k < kSize; ++k) {
    for (std::size_t j = 0; j < kSize; ++j) row[j] = static_cast<Number>(u_[k] + v_[j]);
    for (std::size_t i = 0; i < kSize; ++i) {
      const auto factor = static_cast<Number>(x_[i] + y_[k]);
      for (std::size_t j = 0; j < kSize; ++j) product[i * kSize + j] += factor * row[j];
    }
  }
  return product;
}

template <class Number>
std::string KnownProduct::fault(const std::vector<Number>& product) const {
  std::uint64_t sum_u = 0;
  std::uint64_t sum_y = 0;
  std::uint64_t sum_yu = 0;
  for (std::size_t k = 0; k < kSize; ++k) {
    sum_u += u_[k];
    sum_y += y_[k];
    sum_yu += y_[k] * u_[k];
  }
  for (std::size_t i = 0; i < kSize; ++i) {
    for (std::size_t j = 0; j < kSize; ++j) {
      const std::uint64_t known = kSize * x_[i] * v_[j] + x_[i] * sum_u + v_[j] * sum_y + sum_yu;
      const Number found = product[i * kSize + j];
      if (found == static_cast<Number>(known)) continue;
      return fmt::format("computed {} as a sum of products that is {}", found, known);
    }
  }
  return "";
}

template std::vector<double> KnownProduct::multiply() const;
template std::vector<std::uint64_t> KnownProduct::multiply() const;
template std::string KnownProduct::fault(const std::vector<double>& product) const;
template std::string KnownProduct::fault(const std::vector<std::uint64_t>& product) const;

void write_pattern(std::span<std::uint64_t> memory, std::uint64_t seed) {
  for (std::size_t at = 0; at < memory.size(); ++at) memory[at] = word_of(at, seed);
}

std::string pattern_fault(std::span<const std::uint64_t> memory, std::uint64_t seed) {
  for (std::size_t at = 0; at < memory.size(); ++at) {
    const std::uint64_t written = word_of(at, seed);
    if (memory[at] == written) continue;
    return fmt::format("read {:016x} from memory where {:016x} was written (bits {:016x})",
                       memory[at], written, memory[at] ^ written);
  }
  return "";
}

Status burn_in(const Clock& clock, const BurnInSize& size) {
  const std::vector<int> cpus = own_cpus();
  const Instant until = clock.now_monotonic() + size.time;
  const std::size_t words = size.memory / sizeof(std::uint64_t) / cpus.size();
  std::mutex mutex;
  std::string first;
  std::vector<std::thread> threads;
  threads.reserve(cpus.size());
  for (const int cpu : cpus) {
    threads.emplace_back([&, cpu] {
      stay_on(cpu);
      std::vector<std::uint64_t> memory(words);
      const std::string fault = try_cpu(clock, until, memory);
      const std::lock_guard<std::mutex> lock(mutex);
      if (first.empty() && !fault.empty()) first = fmt::format("CPU {} {}", cpu, fault);
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first.empty()) return {};
  return environment_error(first);
}

}  // namespace orrery
