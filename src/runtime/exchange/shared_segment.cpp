#include "runtime/exchange/shared_segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace orrery {
namespace {

std::string first_line(const char* path) {
  const FileDescriptor fd(::open(path, O_RDONLY | O_CLOEXEC));
  std::array<char, 128> text{};
  const ssize_t got = fd.valid() ? ::read(fd.get(), text.data(), text.size()) : -1;
  if (got <= 0) return {};
  std::string line(text.data(), static_cast<std::size_t>(got));
  return line.substr(0, line.find('\n'));
}

Result<std::byte*> map(int fd, std::uint64_t bytes) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) {
    return environment_error(
        fmt::format("{} bytes of shared memory: {}", bytes, std::strerror(errno)));
  }
  return static_cast<std::byte*>(at);
}

}  // namespace

std::string shared_memory_host(const std::string& domain) {
  const std::string boot = first_line("/proc/sys/kernel/random/boot_id");
  std::array<char, 128> space{};
  const ssize_t got = ::readlink("/proc/self/ns/pid", space.data(), space.size());
  if (boot.empty() || got <= 0) return {};
  std::string host = boot + ' ' + std::string(space.data(), static_cast<std::size_t>(got));
  if (!domain.empty()) host += ' ' + domain;
  return host;
}

Result<SharedSegment> SharedSegment::make(std::uint64_t bytes, std::uint64_t cookie,
                                          const std::string& domain) {
  FileDescriptor fd(::memfd_create("orrery", MFD_CLOEXEC));
  int error = fd.valid() && ::ftruncate(fd.get(), static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  // A page that is missing at its first write would kill the process, so all pages are allocated
  // now.
  if (error == 0) error = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes));
  if (error != 0) {
    return environment_error(
        fmt::format("{} bytes of shared memory: {}", bytes, std::strerror(error)));
  }
  Result<std::byte*> data = map(fd.get(), bytes);
  if (!data) return forward_error(data);
  std::memcpy(*data, &cookie, sizeof cookie);
  SegmentAddress address{.host = shared_memory_host(domain),
                         .process = ::getpid(),
                         .descriptor = fd.get(),
                         .bytes = bytes,
                         .cookie = cookie};
  return SharedSegment(std::move(fd), std::move(address), *data);
}

Result<SharedSegment> SharedSegment::open(const SegmentAddress& address, const std::string& host) {
  if (address.host.empty() || address.host != host) {
    return environment_error("the memory is another machine's");
  }
  const std::string path = fmt::format("/proc/{}/fd/{}", address.process, address.descriptor);
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat status{};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
    return environment_error(fmt::format("{}: {}", path, std::strerror(errno)));
  }
  if (static_cast<std::uint64_t>(status.st_size) != address.bytes || address.bytes < 64) {
    return environment_error(fmt::format("{} is no shared memory of a peer", path));
  }
  Result<std::byte*> data = map(fd.get(), address.bytes);
  if (!data) return forward_error(data);
  SharedSegment segment(std::move(fd), address, *data);
  if (std::memcmp(*data, &address.cookie, sizeof address.cookie) != 0) {
    return environment_error(fmt::format("{} is another process's memory", path));
  }
  return segment;
}

SharedSegment::SharedSegment(SharedSegment&& other) noexcept
    : fd_(std::move(other.fd_)),
      address_(std::move(other.address_)),
      data_(std::exchange(other.data_, nullptr)) {}

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(address_, other.address_);
  std::swap(data_, other.data_);
  return *this;
}

SharedSegment::~SharedSegment() {
  if (data_ != nullptr) (void)::munmap(data_, address_.bytes);
}

}  // namespace orrery
