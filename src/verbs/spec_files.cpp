#include "verbs/spec_files.hpp"

#include <algorithm>
#include <array>
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

Result<FleetFile> SpecFiles::fleet(const std::string& name) const {
  const auto text = texts.find(name);
  return text == texts.end() ? load_fleet_file(path(name)) : read_fleet_file(text->second, name);
}

Result<std::string> SpecFiles::keep_text(const std::string& name) {
  if (texts.contains(name)) return name;
  const std::string file = path(name);
  Result<std::string> text = read_file(file, Document::kSizeMax);
  if (!text) return text;
  texts.emplace(name, *std::move(text));
  return file == "-" ? "<stdin>" : file;
}

Result<Document> SpecFiles::keep(const std::string& name) {
  const Result<std::string> file = keep_text(name);
  if (!file) return tl::unexpected(file.error());
  return Document::parse(texts.at(name), *file);
}

Result<FleetFile> SpecFiles::keep_fleet(const std::string& name) {
  const Result<std::string> file = keep_text(name);
  if (!file) return tl::unexpected(file.error());
  return read_fleet_file(texts.at(name), *file);
}

bool is_file_name(std::string_view text) {
  constexpr std::array<std::string_view, 3> kSuffixes{".yaml", ".yml", ".json"};
  return text.find('/') < text.find(':') ||
         std::any_of(
             kSuffixes.begin(), kSuffixes.end(),
             [&](std::string_view suffix) { return text.ends_with(suffix); });
}

}  // namespace orrery
