#include "store/file_sink.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace orrery {

Result<std::unique_ptr<FileSink>> FileSink::create(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "wbe");
  if (file == nullptr) {
    return environment_error(fmt::format("{}: {}", path, std::strerror(errno)));
  }
  return std::make_unique<FileSink>(path, file);
}

void FileSink::write(std::string_view bytes) {
  if (failed_) return;
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) failed_ = true;
}

Status FileSink::flush() {
  if (std::fflush(file_.get()) != 0) failed_ = true;
  if (failed_) return environment_error(fmt::format("{}: cannot be written", path_));
  return {};
}

Status FileSink::close() {
  if (std::fclose(file_.release()) != 0) failed_ = true;
  if (failed_) return environment_error(fmt::format("{}: cannot be written", path_));
  return {};
}

}  // namespace orrery
