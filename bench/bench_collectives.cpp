// All-reduce of float among ranks of one machine, compared with Open MPI and with copying the
// bytes.
//
//   bench_collectives            two processes, over shared memory and over loopback sockets
//
// The peer over shared memory is `mpirun -n 2 peer_mpi`, over sockets `peer_gloo`, if Open MPI and
// Gloo were present at build time (versions and settings are printed); otherwise the rows have no
// peer and a note is printed. Figures are medians of the rounds of the fastest of five turns.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/figure.hpp"
#include "runtime/elastic/member_group.hpp"

namespace orrery {
namespace {

constexpr std::array<std::size_t, 5> kSizes{1 << 10, 16 << 10, 256 << 10, 4 << 20, 64 << 20};
constexpr std::uint32_t kRanks = 2;

int rounds_of(std::size_t bytes) { return bytes >= (4 << 20) ? 15 : 2000; }

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

enum class Path { kMemory, kSockets };

GroupSettings settings_of(std::uint32_t rank, std::uint16_t port, Path path) {
  GroupSettings settings;
  settings.gang = "bench";
  settings.rank = rank;
  settings.world = kRanks;
  settings.port = port;
  settings.ports = 16;
  settings.workspace_bytes = kSizes.back();
  settings.cookie = rank + 1;
  settings.share_memory = path == Path::kMemory;
  return settings;
}

/// Seconds a round of rank 0, by size.
std::vector<double> measure(MemberGroup& group) {
  std::vector<double> seconds;
  for (const std::size_t bytes : kSizes) {
    const Elements in_out(group.workspace().first(bytes), SumType::kFloat32);
    const int rounds = rounds_of(bytes);
    std::vector<double> each;
    each.reserve(static_cast<std::size_t>(rounds));
    for (int round = 0; round < rounds; ++round) {
      each.push_back(seconds_of([&] {
        if (!group.communicator().all_reduce(in_out)) std::abort();
      }));
    }
    seconds.push_back(median(std::move(each)));
  }
  return seconds;
}

/// Runs each rank in its own process; returns the result of rank 0.
std::vector<double> run_ranks(Path path, std::uint16_t port) {
  std::array<pid_t, kRanks> children{};
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) std::abort();
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    children[rank] = ::fork();
    if (children[rank] != 0) continue;
    const RealClock clock;
    auto group = MemberGroup::found(clock, settings_of(rank, port, path), 0);
    if (!group || (*group)->shares_memory() != (path == Path::kMemory)) ::_exit(1);
    const std::vector<double> seconds = measure(**group);
    const std::size_t size = seconds.size() * sizeof(double);
    if (rank == 0 && ::write(ends[1], seconds.data(), size) < 0) ::_exit(1);
    (*group)->farewell();
    ::_exit(0);
  }
  ::close(ends[1]);
  std::vector<double> seconds(kSizes.size());
  const auto size = static_cast<ssize_t>(seconds.size() * sizeof(double));
  const bool whole = ::read(ends[0], seconds.data(), static_cast<std::size_t>(size)) == size;
  ::close(ends[0]);
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  if (!whole) {
    fmt::print(stderr, "bench_collectives: the ranks did not come through\n");
    std::exit(1);
  }
  return seconds;
}

/// The least an all-reduce between two can move: each rank reads its half of the other's data and
/// writes it to both, as much as copying the bytes once.
double copy_seconds(std::size_t bytes) {
  std::vector<char> from(bytes, 1);
  std::vector<char> to(bytes, 2);
  std::vector<double> each;
  for (int round = 0; round < rounds_of(bytes); ++round) {
    each.push_back(seconds_of([&] { std::memcpy(to.data(), from.data(), bytes); }));
    from[0] = to[bytes - 1];
  }
  return median(std::move(each));
}

/// What a peer measured, in seconds by bytes.
struct Peer {
  std::string name;
  std::map<std::size_t, double> seconds;
};

/// Lines "bytes seconds" of the peer's program.
Peer run_peer(const std::string& name, const std::string& command) {
  Peer peer{name, {}};
  FILE* output = ::popen(command.c_str(), "r");
  std::size_t bytes = 0;
  double value = 0;
  while (output != nullptr && std::fscanf(output, "%zu %lf", &bytes, &value) == 2) {
    peer.seconds[bytes] = value;
  }
  const int status = output == nullptr ? -1 : ::pclose(output);
  if (status != 0 || peer.seconds.size() != kSizes.size()) {
    fmt::print(stderr, "bench_collectives: {} failed (status {})\n", name, status);
    std::exit(1);
  }
  return peer;
}

/// Copies of Open MPI: its default, or through memory of its own instead of the kernel's copies
/// between processes (CMA), which is faster for some sizes.
enum class MpiCopies { kDefault, kOwn };

Peer run_mpi([[maybe_unused]] MpiCopies copies) {
#ifdef ORRERY_PEER_MPI
  if (copies == MpiCopies::kDefault) {
    return run_peer("Open MPI", "mpirun --allow-run-as-root -n 2 " ORRERY_PEER_MPI);
  }
  return run_peer("Open MPI, no CMA",
                  "mpirun --allow-run-as-root --mca btl_vader_single_copy_mechanism none -n "
                  "2 " ORRERY_PEER_MPI);
#else
  return {};
#endif
}

Peer run_gloo() {
#ifdef ORRERY_PEER_GLOO
  return run_peer("Gloo", ORRERY_PEER_GLOO);
#else
  return {};
#endif
}

void print_peers() {
#ifdef ORRERY_PEER_MPI
  (void)std::system("mpirun --version | head -n 1 >&2");
  fmt::print(
      stderr,
      "peers: mpirun --allow-run-as-root [--mca btl_vader_single_copy_mechanism none] -n 2 {}\n",
      ORRERY_PEER_MPI);
#else
  fmt::print(stderr, "SKIPPED: Open MPI is not installed\n");
#endif
#ifdef ORRERY_PEER_GLOO
  (void)std::system("dpkg-query -W libgloo-dev >&2 || echo 'Gloo of no package' >&2");
  fmt::print(stderr, "peer: {}\n", ORRERY_PEER_GLOO);
#else
  fmt::print(stderr, "SKIPPED: Gloo is not installed\n");
#endif
}

/// From 16 KiB on, the target is `times` the peer's time.
void report(const std::string& name, const std::vector<double>& seconds, const Peer& peer,
            double times) {
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    Figure figure{.bench = "collectives",
                  .name = fmt::format("all-reduce over {}, 2 ranks, {} KiB", name, kSizes[i] >> 10),
                  .value = seconds[i] * 1e6,
                  .unit = "us"};
    const auto other = peer.seconds.find(kSizes[i]);
    if (other != peer.seconds.end()) {
      figure.peer = peer.name;
      figure.peer_value = other->second * 1e6;
      figure.target = figure.peer_value.value() / (kSizes[i] >= (16 << 10) ? times : 1);
    }
    print_figure(figure);
  }
}

/// On a shared machine two cores are sometimes near each other and sometimes far apart: all take
/// turns, and the fastest turn of each counts.
constexpr int kTurns = 5;

void keep_fastest(const std::vector<double>& turn, std::vector<double>& best) {
  if (best.empty()) best = turn;
  for (std::size_t i = 0; i < turn.size(); ++i) best[i] = std::min(best[i], turn[i]);
}

void keep_fastest(const Peer& turn, Peer& best) {
  if (best.seconds.empty()) best = turn;
  for (const auto& [bytes, seconds] : turn.seconds) {
    best.seconds[bytes] = std::min(best.seconds[bytes], seconds);
  }
}

int run() {
  print_peers();
  Peer mpi;
  Peer mpi_own;
  Peer gloo;
  std::vector<double> memory;
  std::vector<double> sockets;
  const auto port = static_cast<std::uint16_t>(20'000 + ::getpid() % 10'000);
  for (int turn = 0; turn < kTurns; ++turn) {
    keep_fastest(run_mpi(MpiCopies::kDefault), mpi);
    keep_fastest(run_mpi(MpiCopies::kOwn), mpi_own);
    keep_fastest(run_ranks(Path::kMemory, port), memory);
    keep_fastest(run_gloo(), gloo);
    keep_fastest(run_ranks(Path::kSockets, static_cast<std::uint16_t>(port + 20)), sockets);
  }
  report("shared memory", memory, mpi, 2);
  if (!mpi_own.name.empty()) report("shared memory", memory, mpi_own, 2);
  report("loopback", sockets, gloo, 1);
  double copy = copy_seconds(kSizes.back());
  for (int turn = 1; turn < kTurns; ++turn) copy = std::min(copy, copy_seconds(kSizes.back()));
  print_figure({.bench = "collectives",
                .name = "all-reduce over shared memory, 2 ranks, 64 MiB, against one copy of it",
                .value = memory.back() * 1e6,
                .unit = "us",
                .target = copy * 1e6 / 0.85,
                .peer = "memcpy",
                .peer_value = copy * 1e6});
  return 0;
}

}  // namespace
}  // namespace orrery

int main() { return orrery::run(); }
