#include "apps/orrery/spec_files.hpp"

#include <filesystem>

namespace orrery {

std::string SpecFiles::path(const std::string& name) const {
  if (directory.empty() || name.empty()) return name;
  const std::filesystem::path beside = std::filesystem::path(directory) / name;
  std::error_code error;
  return std::filesystem::is_regular_file(beside, error) ? beside.string() : name;
}

Result<Document> SpecFiles::document(const std::string& name) const {
  const auto text = texts.find(name);
  return text == texts.end() ? Document::load(path(name)) : Document::parse(text->second, name);
}

}  // namespace orrery
