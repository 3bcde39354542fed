#include "store/sqlite/disk_reserve.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file_descriptor.hpp"
#include "base/system/real_storage.hpp"

namespace orrery {

namespace {

std::string ballast_of(const std::string& directory) { return directory + "/ballast"; }

}  // namespace

RoomMade DiskReserve::give_up_for_start(const std::string& directory) {
  RealStorage storage;
  if (storage.free_bytes(directory).value_or(kStartBytes) >= kStartBytes) return RoomMade::kNo;
  return ::unlink(ballast_of(directory).c_str()) == 0 ? RoomMade::kYes : RoomMade::kNo;
}

Status DiskReserve::check_new(const std::string& parent) {
  constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
  RealStorage storage;
  const std::uint64_t free = storage.free_bytes(parent).value_or(2 * kBytes + kStartBytes);
  if (free >= 2 * kBytes + kStartBytes) return {};
  return environment_error(fmt::format(
      "{}: {} MiB are free, expected at least {} MiB: {} MiB are kept back for a full disk, and "
      "with less than that beside them no job is accepted",
      parent, free / kMebibyte, (2 * kBytes + kStartBytes) / kMebibyte, kBytes / kMebibyte));
}

DiskReserve::DiskReserve(const std::string& directory, std::uint64_t bytes)
    : directory_(directory), path_(ballast_of(directory)), bytes_(bytes) {
  struct stat there{};
  constexpr std::uint64_t kBlock = 512;  // unit of st_blocks on every file system
  held_ = ::stat(path_.c_str(), &there) == 0 &&
          static_cast<std::uint64_t>(there.st_blocks) * kBlock >= bytes_;
  if (!held_) static_cast<void>(look());
}

std::uint64_t DiskReserve::free_bytes() const {
  RealStorage storage;
  return storage.free_bytes(directory_).value_or(0);
}

bool DiskReserve::held() const {
  const std::scoped_lock lock(mutex_);
  return held_;
}

void DiskReserve::take() {
  constexpr mode_t kOwnerOnly = 0600;
  const FileDescriptor file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, kOwnerOnly));
  held_ = file.valid() && ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes_)) == 0;
  // A partly allocated file is useless.
  if (!held_) ::unlink(path_.c_str());
}

DiskRoom DiskReserve::look() {
  const std::scoped_lock lock(mutex_);
  if (!held_ && free_bytes() / 2 >= bytes_) take();
  return held_ && free_bytes() >= bytes_ ? DiskRoom::kEnough : DiskRoom::kLow;
}

RoomMade DiskReserve::give_up() {
  const std::scoped_lock lock(mutex_);
  if (!held_) return RoomMade::kNo;
  held_ = false;
  return ::unlink(path_.c_str()) == 0 ? RoomMade::kYes : RoomMade::kNo;
}

}  // namespace orrery
