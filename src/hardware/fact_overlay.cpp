#include "hardware/fact_overlay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

namespace orrery {
namespace {

Result<std::vector<std::string>> yaml_files(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code failure;
  for (std::filesystem::directory_iterator at(directory, failure), end; at != end && !failure;
       at.increment(failure)) {
    if (at->path().extension() == ".yaml" && at->is_regular_file(failure)) {
      files.push_back(at->path().string());
    }
  }
  if (failure) return input_error({}, fmt::format("{}: {}", directory, failure.message()));
  std::sort(files.begin(), files.end());
  return files;
}

Status read_into(std::vector<Document>& documents, const std::string& file) {
  Result<Document> document = Document::load(file);
  if (!document) return forward_error(document);
  documents.push_back(*std::move(document));
  return {};
}

}  // namespace

std::optional<DocumentNode> document_kind(const DocumentNode& root) {
  for (const auto& [key, value] : root.entries()) {
    if (key.text() == "kind") return value;
  }
  return std::nullopt;
}

Result<FactOverlay> fact_overlay(std::vector<Document> documents) {
  FactOverlay overlay;
  for (Document& document : documents) {
    const DocumentNode root = document.root();
    const std::optional<DocumentNode> kind = document_kind(root);
    const std::string name(kind ? kind->text() : std::string_view());
    if (name == "Catalog") {
      overlay.catalogs.push_back(std::move(document));
    } else if (name == "Calibration") {
      overlay.calibrations.push_back(std::move(document));
    } else {
      return input_error(
          kind ? kind->position() : root.position(),
          fmt::format("expected a document of kind Catalog or Calibration after the fleet, found "
                      "{}{}",
                      kind ? kind->shown() : "no kind",
                      name == "Model" ? "; models are read from models/ of --catalog" : ""));
    }
  }
  return overlay;
}

Result<std::vector<FactOverlay>> read_fact_overlays(const std::string& directory) {
  if (directory.empty()) return std::vector<FactOverlay>();
  const Result<std::vector<std::string>> files = yaml_files(directory);
  if (!files) return tl::unexpected(files.error());
  FactOverlay overlay;
  for (const std::string& file : *files) {
    const bool calibration =
        std::filesystem::path(file).filename().string().starts_with("calibration");
    Status read = read_into(calibration ? overlay.calibrations : overlay.catalogs, file);
    if (!read) return forward_error(read);
  }
  const std::string models = directory + "/models";
  std::error_code failure;
  const bool has_models = std::filesystem::is_directory(models, failure);
  if (has_models) {
    const Result<std::vector<std::string>> more = yaml_files(models);
    if (!more) return tl::unexpected(more.error());
    for (const std::string& file : *more) {
      if (Status read = read_into(overlay.models, file); !read) return forward_error(read);
    }
  }
  if (files->empty() && !has_models) {
    return input_error({}, fmt::format("{}: no *.yaml file and no models/ in it", directory));
  }
  std::vector<FactOverlay> overlays;
  overlays.push_back(std::move(overlay));
  return overlays;
}

}  // namespace orrery
