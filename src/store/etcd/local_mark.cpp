#include "store/etcd/local_mark.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/system/real_clock.hpp"

namespace orrery {
namespace {

constexpr Duration kRaiseEvery = Duration::seconds(1);

/// The controller's directory, in which "store" has the mark.
std::string state_of(const std::string& directory) {
  return std::filesystem::path(directory).parent_path().string();
}

}  // namespace

StorageResult<std::unique_ptr<LocalMark>> LocalMark::open(const std::string& directory) {
  StorageResult<std::optional<HighWater>> there = read_high_water(directory);
  if (!there) return forward_failure(there);
  if (!*there) {
    if (StorageStatus put = HighWaterFile::put(directory, {}); !put) return forward_failure(put);
  }
  StorageResult<HighWaterFile> file = HighWaterFile::open(directory);
  if (!file) return forward_failure(file);
  return std::make_unique<LocalMark>(directory, *std::move(file));
}

LocalMark::~LocalMark() { static_cast<void>(file_.raise(reached_)); }

StorageStatus LocalMark::check(const EtcdLocation& location, const WriterSeen& seen) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (seen.newest >= reached_.batch && seen.term >= reached_.term) return {};
  if (seen.term == 0) {
    return store_error(
        StorageFailure::kOther,
        fmt::format("{}: there is no log here, and this machine has seen batch {} and term {} of "
                    "one ({}/{}): name the store that this STATE belongs to, or restore its "
                    "backup with `etcdctl snapshot restore`",
                    location.text(), reached_.batch, reached_.term, directory_,
                    HighWaterFile::kName));
  }
  return store_error(
      StorageFailure::kOther,
      fmt::format("{}: was restored from a backup, or is another store: its newest batch is {} of "
                  "term {}, and this machine has seen batch {} and term {} ({}/{}). To go on "
                  "without what is lost, while no controller runs, on each controller's machine: "
                  "orrery store adopt '{}' --state {}",
                  location.text(), seen.newest, seen.term, reached_.batch, reached_.term,
                  directory_, HighWaterFile::kName, location.url(), state_of(directory_)));
}

StorageStatus LocalMark::note(const HighWater& reached, Raise raise) {
  const Instant now = RealClock().now_monotonic();
  const std::lock_guard<std::mutex> lock(mutex_);
  reached_ = {std::max(reached_.batch, reached.batch), std::max(reached_.term, reached.term),
              std::max(reached_.next_job, reached.next_job)};
  if (raise == Raise::kWhenDue && now - raised_at_ < kRaiseEvery) return {};
  raised_at_ = now;
  return file_.raise(reached_);
}

std::uint64_t LocalMark::next_job() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return reached_.next_job;
}

}  // namespace orrery
