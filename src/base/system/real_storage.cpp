#include "base/system/real_storage.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/assert.hpp"

namespace orrery {
namespace {

constexpr std::string_view kTemporarySuffix = ".tmp";

StorageFailure failure_of(int cause) {
  switch (cause) {
    case ENOENT:
      return StorageFailure::kNotFound;
    case EEXIST:
      return StorageFailure::kExists;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return StorageFailure::kFull;
    default:
      return StorageFailure::kOther;
  }
}

tl::unexpected<StorageError> storage_error(StorageFailure failure, std::string message) {
  return tl::unexpected<StorageError>(
      StorageError{Error{ErrorKind::kEnvironment, std::move(message), {}}, failure});
}

// The failure errno names, of doing `what` to `path`.
tl::unexpected<StorageError> failed_to(std::string_view what, const std::string& path) {
  const int cause = errno;
  return storage_error(failure_of(cause), fmt::format("{}: cannot {}: {}", path, what,
                                                      std::generic_category().message(cause)));
}

// A call that a signal may interrupt, until it is not.
template <class Call>
auto retried(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

FileDescriptor open_at(int directory, const std::string& name, int flags) {
  constexpr mode_t kOwnerOnly = 0600;
  return FileDescriptor(
      retried([&] { return ::openat(directory, name.c_str(), flags | O_CLOEXEC, kOwnerOnly); }));
}

// 0, or -1 with errno.
int sync_file(int fd) {
  return retried([&] { return ::fsync(fd); });
}

// 0, or -1 with errno.
int write_at(int fd, std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t wrote = retried(
        [&] { return ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (wrote < 0) return -1;
    if (wrote == 0) {
      errno = EIO;  // a file that takes nothing and gives no reason
      return -1;
    }
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
    offset += static_cast<std::uint64_t>(wrote);
  }
  return 0;
}

// A path as an open directory and a name in it, so that both halves of a replacement mean the same
// directory even when it is moved.
struct FilePlace {
  FileDescriptor directory;
  std::string name;
};

StorageResult<FilePlace> place_of(const std::string& path) {
  const std::filesystem::path whole(path);
  const std::string parent = whole.has_parent_path() ? whole.parent_path().string() : ".";
  FilePlace place{open_at(AT_FDCWD, parent, O_RDONLY | O_DIRECTORY), whole.filename().string()};
  if (!place.directory.valid()) return failed_to("open the directory of this file", path);
  if (place.name.empty()) {
    return storage_error(StorageFailure::kOther, fmt::format("\"{}\" names no file", path));
  }
  return place;
}

StorageStatus sync_directory(const FilePlace& place, const std::string& path,
                             Durability durability) {
  if (durability == Durability::kUntilBoot) return {};
  if (sync_file(place.directory.get()) == 0 || errno == EINVAL) return {};
  return failed_to("make the change of its directory durable", path);
}

// Writes, syncs and closes a new file called `name`; leaves none behind on a failure.
StorageStatus write_temporary(const FilePlace& place, const std::string& name,
                              std::string_view bytes, Durability durability) {
  const int directory = place.directory.get();
  const FileDescriptor file = open_at(directory, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
  if (!file.valid()) return failed_to("create", name);
  const bool sync = durability == Durability::kDurable;
  if (write_at(file.get(), bytes, 0) == 0 && (!sync || sync_file(file.get()) == 0)) return {};
  StorageStatus failed = failed_to("write", name);
  ::unlinkat(directory, name.c_str(), 0);
  return failed;
}

int flags_of(OpenMode mode) {
  switch (mode) {
    case OpenMode::kRead:
      return O_RDONLY;
    case OpenMode::kAppend:
      return O_RDWR | O_CREAT;
    case OpenMode::kCreate:
      return O_RDWR | O_CREAT | O_EXCL;
  }
  ORRERY_ASSERT(false, "an OpenMode is one of the above");
}

}  // namespace

StorageStatus RealFile::usable() const {
  if (broken_.empty()) return {};
  return storage_error(
      StorageFailure::kOther,
      fmt::format("{}: given up after an earlier failure: {}", state_.path, broken_));
}

StorageStatus RealFile::append(std::string_view bytes) {
  if (StorageStatus status = usable(); !status) return status;
  const int fd = state_.fd.get();
  if (write_at(fd, bytes, state_.size) == 0) {
    state_.size += bytes.size();
    return {};
  }
  StorageStatus failed = failed_to("append", state_.path);
  struct stat now{};
  const bool unchanged =
      ::fstat(fd, &now) == 0 && static_cast<std::uint64_t>(now.st_size) == state_.size;
  if (!unchanged &&
      retried([&] { return ::ftruncate(fd, static_cast<off_t>(state_.size)); }) != 0) {
    broken_ = failed.error().message;
  }
  return failed;
}

StorageResult<std::string> RealFile::read(ByteRange range) const {
  std::string bytes;
  if (range.offset >= state_.size) return bytes;
  bytes.resize(std::min<std::uint64_t>(range.size, state_.size - range.offset));
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = retried([&] {
      return ::pread(state_.fd.get(), bytes.data() + filled, bytes.size() - filled,
                     static_cast<off_t>(range.offset + filled));
    });
    if (got < 0) return failed_to("read", state_.path);
    if (got == 0) {
      return storage_error(StorageFailure::kOther,
                           fmt::format("{}: ends at byte {}, before the {} it had", state_.path,
                                       range.offset + filled, state_.size));
    }
    filled += static_cast<std::size_t>(got);
  }
  return bytes;
}

StorageStatus RealFile::truncate(std::uint64_t size) {
  if (StorageStatus status = usable(); !status) return status;
  ORRERY_ASSERT(size <= state_.size, "cutting a file cannot lengthen it");
  const int fd = state_.fd.get();
  if (retried([&] { return ::ftruncate(fd, static_cast<off_t>(size)); }) != 0) {
    return failed_to("cut", state_.path);
  }
  state_.size = size;
  return {};
}

StorageStatus RealFile::sync() {
  if (StorageStatus status = usable(); !status) return status;
  if (state_.durability == Durability::kUntilBoot) return {};
  if (sync_file(state_.fd.get()) == 0) return {};
  StorageStatus failed = failed_to("make it durable", state_.path);
  broken_ = failed.error().message;
  return failed;
}

StorageResult<std::unique_ptr<File>> RealStorage::open(const std::string& path, OpenMode mode) {
  StorageResult<FilePlace> place = place_of(path);
  if (!place) return tl::unexpected<StorageError>(std::move(place.error()));
  RealFile::State state{open_at(place->directory.get(), place->name, flags_of(mode)), path, 0,
                        durability_};
  if (!state.fd.valid()) return failed_to("open", path);
  struct stat now{};
  if (::fstat(state.fd.get(), &now) != 0) return failed_to("look at", path);
  state.size = static_cast<std::uint64_t>(now.st_size);
  if (mode != OpenMode::kRead) {
    // Also for a file found: its creator may have crashed before making its name durable.
    if (StorageStatus synced = sync_directory(*place, path, durability_); !synced) {
      return tl::unexpected<StorageError>(std::move(synced.error()));
    }
  }
  return std::make_unique<RealFile>(std::move(state));
}

StorageResult<std::string> RealStorage::read_file(const std::string& path, std::size_t size_max) {
  const FileDescriptor file = open_at(AT_FDCWD, path, O_RDONLY);
  if (!file.valid()) return failed_to("open", path);
  std::string content;
  constexpr std::size_t kFirstChunk = 4096;  // Most are small, and each byte of it costs.
  constexpr std::size_t kChunkMax = std::size_t{1} << 20;
  while (content.size() <= size_max) {
    const std::size_t filled = content.size();
    const std::size_t chunk = std::clamp(filled, kFirstChunk, kChunkMax);
    content.resize(filled + chunk);
    const ssize_t got = retried([&] { return ::read(file.get(), content.data() + filled, chunk); });
    if (got < 0) return failed_to("read", path);
    content.resize(filled + static_cast<std::size_t>(got));
    if (got == 0) return content;
  }
  return storage_error(StorageFailure::kOther,
                       fmt::format("{}: larger than the {} bytes it may have", path, size_max));
}

StorageStatus RealStorage::write_file(const std::string& path, std::string_view bytes) {
  const StorageResult<FilePlace> place = place_of(path);
  if (!place) return tl::unexpected<StorageError>(place.error());
  const int directory = place->directory.get();
  const std::string temporary = place->name + std::string(kTemporarySuffix);
  if (StorageStatus written = write_temporary(*place, temporary, bytes, durability_); !written) {
    written.error().message = fmt::format("{}: {}", path, written.error().message);
    return written;
  }
  if (::renameat(directory, temporary.c_str(), directory, place->name.c_str()) != 0) {
    StorageStatus failed = failed_to("replace", path);
    ::unlinkat(directory, temporary.c_str(), 0);
    return failed;
  }
  return sync_directory(*place, path, durability_);
}

StorageResult<std::vector<std::string>> RealStorage::list(const std::string& directory) {
  std::error_code failed;
  std::vector<std::string> names;
  std::filesystem::directory_iterator entry(directory, failed);
  for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    std::string name = entry->path().filename().string();
    if (!name.ends_with(kTemporarySuffix)) names.push_back(std::move(name));
  }
  if (failed) {
    errno = failed.value();
    return failed_to("list", directory);
  }
  std::sort(names.begin(), names.end());
  return names;
}

StorageStatus RealStorage::remove(const std::string& path) {
  const StorageResult<FilePlace> place = place_of(path);
  if (!place) return tl::unexpected<StorageError>(place.error());
  if (::unlinkat(place->directory.get(), place->name.c_str(), 0) != 0) {
    return failed_to("remove", path);
  }
  return sync_directory(*place, path, durability_);
}

StorageStatus RealStorage::rename(const RenamePaths& paths) {
  const StorageResult<FilePlace> from = place_of(paths.from);
  if (!from) return tl::unexpected<StorageError>(from.error());
  const StorageResult<FilePlace> to = place_of(paths.to);
  if (!to) return tl::unexpected<StorageError>(to.error());
  if (::renameat(from->directory.get(), from->name.c_str(), to->directory.get(),
                 to->name.c_str()) != 0) {
    return failed_to(fmt::format("rename to {}", paths.to), paths.from);
  }
  // The new name first: a crash between the two leaves both names, never none.
  if (StorageStatus synced = sync_directory(*to, paths.to, durability_); !synced) return synced;
  return sync_directory(*from, paths.from, durability_);
}

StorageStatus RealStorage::make_directories(const std::string& path) {
  constexpr mode_t kOwnerOnly = 0700;
  if (path.empty()) return {};
  if (path.size() > 1 && path.ends_with('/')) {
    return make_directories(path.substr(0, path.size() - 1));
  }
  // The last first: all above it are there, mostly.
  if (::mkdir(path.c_str(), kOwnerOnly) != 0) {
    const int why = errno;
    std::error_code ignored;
    if (why == EEXIST && std::filesystem::is_directory(path, ignored)) return {};
    const std::string above = std::filesystem::path(path).parent_path();
    errno = why;
    if (why != ENOENT || above.empty() || above == path) {
      return failed_to("make this directory", path);
    }
    if (StorageStatus made = make_directories(above); !made) return made;
    if (::mkdir(path.c_str(), kOwnerOnly) != 0 && errno != EEXIST) {
      return failed_to("make this directory", path);
    }
  }
  if (durability_ == Durability::kUntilBoot) return {};
  const StorageResult<FilePlace> place = place_of(path);
  if (!place) return tl::unexpected<StorageError>(place.error());
  return sync_directory(*place, path, durability_);
}

StorageResult<std::uint64_t> RealStorage::free_bytes(const std::string& path) {
  struct statvfs system{};
  if (retried([&] { return ::statvfs(path.c_str(), &system); }) != 0) {
    return failed_to("ask for the free space", path);
  }
  return std::uint64_t{system.f_bavail} * std::uint64_t{system.f_frsize};
}

}  // namespace orrery
