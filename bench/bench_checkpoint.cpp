// How fast a checkpoint becomes durable, compared with a plain write and fsync of the same bytes
// and with fio on the same disk; how long training waits for its snapshot, compared with a memcpy
// of the same tensors. All take turns, so that other load on the disk affects all alike; each
// figure is a median.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/format/checksum.hpp"
#include "bench/figure.hpp"
#include "runtime/checkpoint/checkpoint_directory.hpp"
#include "runtime/checkpoint/checkpoint_writer.hpp"

namespace orrery {
namespace {

constexpr int kRounds = 5;
constexpr std::size_t kTensors = 64;
constexpr std::size_t kTensorBytes = (std::size_t{16} << 20) + 4000;
constexpr std::size_t kBytes = kTensors * kTensorBytes;
constexpr double kGigabyte = 1e9;

void must_do(const Status& status) {
  if (status) return;
  fmt::print(stderr, "bench_checkpoint: {}\n", status.error().text());
  std::exit(1);
}

/// A directory on the disk of the build, gone at the end.
class BenchDirectory {
 public:
  BenchDirectory() {
    std::filesystem::create_directories("build/bench");
    std::string name = "build/bench/checkpoint-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::exit(1);
    path_ = name;
  }
  ~BenchDirectory() { std::filesystem::remove_all(path_); }
  BenchDirectory(const BenchDirectory&) = delete;
  BenchDirectory& operator=(const BenchDirectory&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// The state of a rank; no two pages of it are alike.
class State {
 public:
  State() {
    must_do(memory_.reserve(kBytes));
    std::uint64_t word = 1;
    for (std::size_t at = 0; at + sizeof word <= kBytes; at += sizeof word) {
      word = word * 6364136223846793005u + 1442695040888963407u;
      std::memcpy(memory_.data() + at, &word, sizeof word);
    }
    for (std::size_t i = 0; i < kTensors; ++i) {
      const std::span<const char> bytes(memory_.data() + i * kTensorBytes, kTensorBytes);
      pieces_.push_back(
          {{fmt::format("tensor.{}", i), ElementType::kU8, {kTensorBytes}, 0, kTensorBytes, 0},
           std::as_bytes(bytes)});
    }
  }
  [[nodiscard]] std::span<const PieceView> pieces() const { return pieces_; }
  [[nodiscard]] std::string_view bytes() const { return {memory_.data(), kBytes}; }

 private:
  PrefaultedMemory memory_;
  std::vector<PieceView> pieces_;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Seconds of write() and fsync() of all bytes into a new file.
double plain_seconds(const std::string& path, std::string_view bytes) {
  const double seconds = seconds_of([&] {
    const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600));
    while (!bytes.empty()) {
      const ssize_t wrote = ::write(file.get(), bytes.data(), bytes.size());
      if (wrote <= 0) std::exit(1);
      bytes.remove_prefix(static_cast<std::size_t>(wrote));
    }
    if (::fsync(file.get()) != 0) std::exit(1);
  });
  std::filesystem::remove(path);
  return seconds;
}

std::string output_of(const std::string& command) {
  std::string output;
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  char part[4096];
  while (const std::size_t got = std::fread(part, 1, sizeof part, pipe)) output.append(part, got);
  return ::pclose(pipe) == 0 ? output : "";
}

/// Seconds of fio for as many bytes into a new file; none without fio.
std::optional<double> fio_seconds(const std::string& path) {
  const std::string output =
      output_of(fmt::format("fio --name=bench --ioengine=io_uring --direct=1 --iodepth=4 --bs=1M "
                            "--end_fsync=1 --rw=write --size={} --filename={} --output-format=json "
                            "2>/dev/null",
                            aligned_bytes(kBytes), path));
  std::filesystem::remove(path);
  const Json json = Json::parse(output, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return std::nullopt;
  const double rate = json["jobs"][0]["write"]["bw_bytes"].get<double>();
  return static_cast<double>(kBytes) / rate;
}

/// One figure in seconds, and in a comment its rate.
void print_seconds(Figure figure) {
  figure.bench = "checkpoint";
  figure.unit = "s";
  figure.name +=
      fmt::format(" ({:.2f} GB/s)", static_cast<double>(kBytes) / kGigabyte / figure.value);
  print_figure(figure);
}

struct Times {
  std::vector<double> durable;
  std::vector<double> plain;
  std::vector<double> fio;
  std::vector<double> stall;
  std::vector<double> memcpy;
  std::vector<double> checksum;
};

Times measure(const BenchDirectory& directory) {
  const State state;
  CheckpointWriter writer(directory.path());
  must_do(writer.reserve(kBytes + 64 * kTensors));
  PrefaultedMemory copy;
  must_do(copy.reserve(kBytes));
  Times times;
  std::uint64_t sum = 0;
  for (int round = 0; round < kRounds; ++round) {
    const ShardName name{{"bench", {1, 0}, static_cast<std::uint64_t>(round)}, 0, 1};
    const auto begin = [&] { must_do(writer.begin(name, state.pieces())); };
    times.stall.push_back(seconds_of(begin));
    Result<WrittenShard> written = writer.wait();
    must_do(written ? Status() : forward_error(written));
    if (written->method != WriteMethod::kDirect) {
      fmt::print(stderr, "bench_checkpoint: this disk does not take O_DIRECT by io_uring\n");
    }
    times.memcpy.push_back(
        seconds_of([&] { std::memcpy(copy.data(), state.bytes().data(), kBytes); }));
    times.checksum.push_back(seconds_of([&] { sum += block_checksum(state.bytes()); }));
    times.durable.push_back(seconds_of([&] {
      Result<WrittenShard> shard = write_shard(directory.path(), writer.snapshot());
      must_do(shard ? Status() : forward_error(shard));
    }));
    std::filesystem::remove(directory.path(name.file()));
    std::filesystem::remove_all(step_directory(directory.path(), name.id.step));
    times.plain.push_back(plain_seconds(directory.path("plain"), state.bytes()));
    if (const auto fio = fio_seconds(directory.path("fio"))) times.fio.push_back(*fio);
  }
  if (sum == 0) std::exit(1);
  return times;
}

void print(const Times& times) {
  const double durable = median(times.durable);
  const double plain = median(times.plain);
  print_seconds({.name = "durable shard of 1 GiB",
                 .value = durable,
                 .target = plain / 5,
                 .peer = "write + fsync of the same bytes",
                 .peer_value = plain});
  if (!times.fio.empty()) {
    std::string version = output_of("fio --version");
    std::erase(version, '\n');
    print_seconds({.name = "durable shard of 1 GiB",
                   .value = durable,
                   .target = median(times.fio) / 0.95,
                   .peer = version + ", io_uring, direct, depth 4, 1 MiB, end_fsync",
                   .peer_value = median(times.fio)});
  }
  const double copied = median(times.memcpy);
  print_seconds({.name = "stall of training for a snapshot of 1 GiB",
                 .value = median(times.stall),
                 .target = 1.2 * copied,
                 .peer = "memcpy of the same bytes",
                 .peer_value = copied});
  print_seconds({.name = "checksum of 1 GiB", .value = median(times.checksum)});
}

void measure_and_print() {
  const BenchDirectory directory;
  print(measure(directory));
}

}  // namespace
}  // namespace orrery

int main() { orrery::measure_and_print(); }
