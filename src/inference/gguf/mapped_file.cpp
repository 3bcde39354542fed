#include "inference/gguf/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/system/file_descriptor.hpp"

namespace orrery {
namespace {

tl::unexpected<Error> cannot_read(const std::string& path, const std::string& why) {
  return environment_error(fmt::format("{}: cannot read: {}", path, why));
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat found{};
  if (!file.valid() || ::fstat(file.get(), &found) != 0) {
    return cannot_read(path, std::generic_category().message(errno));
  }
  if (!S_ISREG(found.st_mode)) return cannot_read(path, "no regular file");
  const auto size = static_cast<std::size_t>(found.st_size);
  if (size == 0) return MappedFile({});
  void* begin = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (begin == MAP_FAILED) return cannot_read(path, std::generic_category().message(errno));
  return MappedFile({static_cast<const char*>(begin), size});
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

}  // namespace orrery
