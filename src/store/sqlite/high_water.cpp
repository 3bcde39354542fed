#include "store/sqlite/high_water.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>

#include "base/format/xxh3.hpp"
#include "base/system/real_storage.hpp"
#include "store/store.hpp"

namespace orrery {
namespace {

constexpr std::size_t kRecordBytes = 4096;  // no sector of a disk holds both records
constexpr std::size_t kFileBytes = 2 * kRecordBytes;
constexpr std::string_view kTitle = "orrery high water 1";

struct Record {
  std::uint64_t count = 0;
  HighWater mark;
};

std::string path_in(const std::string& directory) { return directory + "/" + HighWaterFile::kName; }

std::string text_of(const Record& record) {
  std::string text = fmt::format("{} count={} batch={} term={} next_job={}", kTitle, record.count,
                                 record.mark.batch, record.mark.term, record.mark.next_job);
  text += fmt::format(" xxh3={:016x}", xxh3(text));
  text.resize(kRecordBytes - 1, ' ');
  text += '\n';
  return text;
}

/// Removes " NAME=" and a number from the front, and returns the number.
std::optional<std::uint64_t> take_number(std::string_view& text, std::string_view name) {
  const std::string before = fmt::format(" {}=", name);
  if (!text.starts_with(before)) return std::nullopt;
  text.remove_prefix(before.size());
  std::uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// Parses a record; none: the bytes are not a complete record.
std::optional<Record> record_of(std::string_view bytes) {
  std::string_view rest = bytes;
  if (!rest.starts_with(kTitle)) return std::nullopt;
  rest.remove_prefix(kTitle.size());
  const auto count = take_number(rest, "count");
  const auto batch = take_number(rest, "batch");
  const auto term = take_number(rest, "term");
  const auto next_job = take_number(rest, "next_job");
  if (!count || !batch || !term || !next_job) return std::nullopt;
  const Record record{*count, {*batch, *term, *next_job}};
  if (text_of(record) != bytes) return std::nullopt;
  return record;
}

tl::unexpected<StorageError> failed_to(std::string_view what, const std::string& path) {
  return store_error(StorageFailure::kOther, fmt::format("{}: cannot {}: {}", path, what,
                                                         std::generic_category().message(errno)));
}

/// Returns the newer of the complete records.
StorageResult<Record> newest_record(const std::string& path, std::string_view bytes) {
  std::optional<Record> newest;
  for (const std::size_t at : {std::size_t{0}, kRecordBytes}) {
    if (bytes.size() < at + kRecordBytes) continue;
    const std::optional<Record> record = record_of(bytes.substr(at, kRecordBytes));
    if (record && (!newest || newest->count < record->count)) newest = record;
  }
  if (newest) return *newest;
  return store_error(
      StorageFailure::kOther,
      fmt::format("{}: byte 0: no record of how far the log was acknowledged is whole ({} bytes, "
                  "expected {})",
                  path, bytes.size(), kFileBytes));
}

StorageResult<std::optional<Record>> read_record(const std::string& directory) {
  RealStorage storage;
  const std::string path = path_in(directory);
  StorageResult<std::string> bytes = storage.read_file(path, kFileBytes);
  if (!bytes && bytes.error().failure == StorageFailure::kNotFound) return std::nullopt;
  if (!bytes) return forward_failure(bytes);
  StorageResult<Record> record = newest_record(path, *bytes);
  if (!record) return forward_failure(record);
  return *record;
}

}  // namespace

StorageResult<std::optional<HighWater>> read_high_water(const std::string& directory) {
  StorageResult<std::optional<Record>> record = read_record(directory);
  if (!record) return forward_failure(record);
  if (!*record) return std::nullopt;
  return (*record)->mark;
}

StorageStatus HighWaterFile::put(const std::string& directory, const HighWater& mark) {
  RealStorage storage;
  return storage.write_file(path_in(directory), text_of({1, mark}) + text_of({2, mark}));
}

StorageResult<HighWaterFile> HighWaterFile::open(const std::string& directory) {
  const std::string path = path_in(directory);
  StorageResult<std::optional<Record>> record = read_record(directory);
  if (!record) return forward_failure(record);
  HighWaterFile file(path, FileDescriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC)));
  if (!file.file_.valid() || !*record) return failed_to("open", path);
  file.count_ = (*record)->count;
  file.mark_ = (*record)->mark;
  return file;
}

StorageStatus HighWaterFile::raise(const HighWater& reached) {
  const HighWater next{std::max(mark_.batch, reached.batch), std::max(mark_.term, reached.term),
                       std::max(mark_.next_job, reached.next_job)};
  if (next == mark_) return {};
  const std::string text = text_of({count_ + 1, next});
  const off_t at = (count_ + 1) % 2 == 1 ? 0 : off_t{kRecordBytes};
  if (::pwrite(file_.get(), text.data(), text.size(), at) != static_cast<ssize_t>(text.size())) {
    return failed_to("write", path_);
  }
  if (::fdatasync(file_.get()) != 0) return failed_to("make it durable", path_);
  mark_ = next;
  ++count_;
  return {};
}

}  // namespace orrery
