#include "runtime/checkpoint/exact_read.hpp"

#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace orrery {

Status read_exactly(const FileDescriptor& fd, const FilePlace& place, std::span<char> out) {
  std::uint64_t offset = place.offset;
  while (!out.empty()) {
    const ssize_t got = ::pread(fd.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return environment_error(
          fmt::format("{}: cannot read: {}", place.path, std::generic_category().message(errno)));
    }
    if (got == 0) {
      return input_error({place.path},
                         fmt::format("ends at byte {}, inside what it should hold", offset));
    }
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

}  // namespace orrery
