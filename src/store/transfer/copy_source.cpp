#include "store/transfer/copy_source.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "store/etcd/etcd_reader.hpp"
#include "store/etcd/etcd_store.hpp"
#include "store/etcd/etcd_writer.hpp"
#include "store/etcd/store_url.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace orrery {
namespace {

/// Added to a term where the newest term that the cluster's agents have seen is unknown.
constexpr std::uint64_t kTermsPassedOver = 1'000'000;
/// How often an etcd that gives no answer is asked to close a log.
constexpr int kCloseTries = 5;

tl::unexpected<Error> source_failed(StorageError error) {
  if (error.failure == StorageFailure::kNotFound) error.kind = ErrorKind::kInput;
  return tl::unexpected<Error>(std::move(error));
}

Result<CopySource> source_in_directory(const std::string& directory) {
  auto log = SqliteStore::open_to_read(directory);
  if (!log) return source_failed(std::move(log.error()));
  std::error_code none;
  if (!std::filesystem::is_directory(directory, none)) {
    return input_error({}, fmt::format("{}: is a backup file; expected the directory of a store: "
                                       "`orrery store restore {} --dir DIR` makes one",
                                       directory, directory));
  }
  StorageResult<FileDescriptor> lock = SqliteStore::lock(directory);
  if (!lock) return forward_error(lock);
  if (StorageStatus unmoved = check_not_moved(directory); !unmoved) return forward_error(unmoved);
  auto archive = SqliteStore::open_to_read(directory);
  if (!archive) return source_failed(std::move(archive.error()));
  StorageResult<std::optional<HighWater>> mark = read_high_water(directory);
  if (!mark) return forward_error(mark);
  return CopySource{*std::move(lock), *std::move(log), *std::move(archive),
                    mark->value_or(HighWater{.term = kTermsPassedOver})};
}

/// The job numbers that the newest batch has given out; 0: there is no batch.
StorageResult<std::uint64_t> next_job_of(EtcdReader& log, std::uint64_t newest) {
  if (newest == 0) return std::uint64_t{0};
  const StorageResult<std::vector<Batch>> batch = log.read(newest - 1, 1);
  if (!batch) return tl::unexpected(batch.error());
  return batch->empty() ? 0 : batch->front().next_job;
}

Result<CopySource> source_in_etcd(const EtcdLocation& location, const CopySourcePlace& place) {
  auto opened = EtcdStore::open_to_read(location);
  if (!opened) return source_failed(std::move(opened.error()));
  auto client = EtcdClient::make(location);
  if (!client) return forward_error(client);
  EtcdReader log(**client);
  StorageResult<EtcdState> state = log.state();
  if (!state) return forward_error(state);
  if (StorageStatus open = check_open(**client, *state); !open) return forward_error(open);
  if (Status quiet = watch_quiet(log, state->seen, place.watch); !quiet) {
    return forward_error(quiet);
  }
  StorageResult<std::uint64_t> next_job = next_job_of(log, state->seen.newest);
  if (!next_job) return forward_error(next_job);
  const std::string local = place.state + "/store";
  StorageResult<std::optional<HighWater>> mark = read_high_water(local);
  if (!mark) return forward_error(mark);
  CopySource source{.lock = {},
                    .log = *std::move(opened),
                    .archive = nullptr,
                    .reached = {},
                    .seen = state->seen};
  const HighWater marked = mark->value_or(HighWater{});
  source.reached = {.batch = state->seen.newest,
                    .term = std::max(state->seen.term, marked.term),
                    .next_job = std::max(*next_job, marked.next_job)};
  std::error_code none;
  if (std::filesystem::is_directory(local + "/archive", none)) {
    auto archive = SqliteStore::open_to_read(local + "/archive");
    if (!archive) return forward_error(archive);
    source.archive = *std::move(archive);
  }
  return source;
}

}  // namespace

Result<CopySource> open_copy_source(const CopySourcePlace& place) {
  if (!is_etcd_url(place.url)) return source_in_directory(directory_of_url(place.url));
  Result<EtcdLocation> location = parse_etcd_location(place.url);
  if (!location) return forward_error(location);
  return source_in_etcd(*location, place);
}

Status close_source(const EtcdLocation& location, const CopySource& source,
                    const std::string& moved_to) {
  auto client = EtcdClient::make(location);
  if (!client) return forward_error(client);
  EtcdWriter writer(**client, 0);
  const auto close = [&]() -> StorageStatus {
    StorageResult<StoreTerm> term =
        writer.claim({.seen = source.seen, .writer = "", .rule = ClaimRule::kUnlessWritten});
    if (!term) return forward_failure(term);
    StorageStatus closed;
    for (int tries = 0; tries < kCloseTries; ++tries) {
      closed = writer.close(*term, moved_to);
      if (closed || closed.error().failure != StorageFailure::kUnavailable) break;
    }
    return closed;
  };
  StorageStatus closed = close();
  if (closed) return {};
  if (closed.error().failure != StorageFailure::kSuperseded) return forward_error(closed);
  return infeasible(fmt::format(
      "{}: was written while it was copied; stop every controller of this log, and copy it again",
      location.text()));
}

}  // namespace orrery
