#include "verbs/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

namespace orrery {
namespace {

Status write_failed(const std::string& path) {
  return environment_error(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

Status write_all(int file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return write_failed(path);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

Status write_output_file(const std::string& path, const std::string& text) {
  std::error_code failed;
  const std::filesystem::file_status at = std::filesystem::status(path, failed);
  if (std::filesystem::exists(at) && !std::filesystem::is_regular_file(at)) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0) return write_failed(path);
    Status written = write_all(file, text, path);
    if (::close(file) != 0 && written) return write_failed(path);
    return written;
  }
  const std::filesystem::path target = std::filesystem::exists(at)
                                           ? std::filesystem::canonical(path, failed)
                                           : std::filesystem::path(path);
  std::string temporary = target.string() + ".XXXXXX";
  const int file = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (file < 0) return write_failed(path);
  Status written = write_all(file, text, path);
  if (::fchmod(file, 0644) != 0 && written) written = write_failed(path);
  if (::close(file) != 0 && written) written = write_failed(path);
  if (written && std::rename(temporary.c_str(), target.c_str()) != 0) written = write_failed(path);
  if (!written) std::remove(temporary.c_str());
  return written;
}

}  // namespace orrery
