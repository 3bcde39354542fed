#include "verbs/services/engine_artifact.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/format/field_writer.hpp"
#include "base/text/utf8.hpp"

namespace orrery {

Result<std::string> engine_artifact(EngineName engine, const std::string& typed) {
  std::error_code failed;
  std::filesystem::path path = std::filesystem::absolute(typed, failed).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const std::string shown = printable(path.string(), 200);
  if (!std::filesystem::exists(path, failed)) {
    return input_error({}, fmt::format("{}: there is no such file or directory", shown));
  }
  const bool directory = std::filesystem::is_directory(path, failed);
  if (engine == EngineName::kLlamacpp) {
    if (!directory && path.extension() == ".gguf") return path.string();
    return input_error({}, fmt::format("{}: llamacpp serves a file in GGUF, expected one whose "
                                       "name ends in .gguf",
                                       shown));
  }
  if (directory && std::filesystem::exists(path / "config.json", failed)) return path.string();
  return input_error({}, fmt::format("{}: {} serves a model in the form of a model hub, expected a "
                                     "directory with config.json and weights",
                                     shown, word_of(engine)));
}

}  // namespace orrery
