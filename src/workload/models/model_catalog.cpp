#include "workload/models/model_catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/format/document.hpp"
#include "base/format/field_reader.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/utf8.hpp"
#include "workload/models/model_config.hpp"

namespace orrery {
namespace {

// One file of the catalog; the aliases and the configuration are read from their nodes.
struct ModelFile {
  std::string api_version;
  std::string kind;
  std::string name;
  ModelFamily family = ModelFamily::kTransformer;
  Provenance provenance;
  PublishedCounts published;
};

void describe(FieldReader& reader, ModelFile& file) {
  reader.required("apiVersion", file.api_version);
  reader.required("kind", file.kind);
  reader.required("name", file.name);
  reader.elsewhere("aliases");
  reader.required("family", file.family);
  describe_inline(reader, file.provenance);
  reader.optional("published", file.published);
  reader.elsewhere("config");
}

SourcePosition place_of_entry(const DocumentNode& mapping, std::string_view key) {
  for (const DocumentNode::Entry& entry : mapping.entries()) {
    if (entry.key.text() == key) return entry.value.position();
  }
  return mapping.position();
}

Status check_header(const DocumentNode& root, const ModelFile& file) {
  constexpr std::string_view kApiVersion = "orrery/v1";
  constexpr std::string_view kKind = "Model";
  if (file.api_version != kApiVersion) {
    return input_error(place_of_entry(root, "apiVersion"),
                       fmt::format("apiVersion \"{}\" is not supported, expected {}",
                                   printable(file.api_version, 60), kApiVersion));
  }
  if (file.kind != kKind) {
    return input_error(place_of_entry(root, "kind"),
                       fmt::format("kind \"{}\" does not belong in the model catalog, expected {}",
                                   printable(file.kind, 60), kKind));
  }
  if (file.name.empty()) return input_error(place_of_entry(root, "name"), "the name is empty");
  return {};
}

std::string_view word_of(ModelFamily family) {
  for (const auto& entry : enum_words(family)) {
    if (entry.value == family) return entry.word;
  }
  return "";
}

Result<Model> read_config_entry(const DocumentNode& root, const ModelFile& file) {
  const std::optional<DocumentNode> config = read_elsewhere<ModelFile>(root, "config");
  if (!config) return input_error(root.position(), "the key \"config\" is missing");
  Result<Model> model = read_model_config(*config);
  if (!model || family_of(*model) == file.family) return model;
  return input_error(place_of_entry(root, "family"),
                     fmt::format("family {} contradicts the model_type \"{}\", which is of family "
                                 "{}",
                                 word_of(file.family), model->type, word_of(family_of(*model))));
}

}  // namespace

Status ModelCatalog::add(const Document& document) {
  const DocumentNode root = document.root();
  ModelFile read;
  if (Status status = read_struct(root, read, {}); !status) return status;
  if (Status status = check_header(root, read); !status) return status;
  Result<Model> model = read_config_entry(root, read);
  if (!model) return forward_error(model);

  model->name = read.name;
  model->where = root.position();
  names_.push_back({lower_case(read.name), models_.size(), place_of_entry(root, "name")});
  if (const std::optional<DocumentNode> aliases = read_elsewhere<ModelFile>(root, "aliases")) {
    if (Status status = read_value(*aliases, model->aliases, {}); !status) return status;
    for (const DocumentNode& alias : aliases->items()) {
      names_.push_back({lower_case(alias.text()), models_.size(), alias.position()});
    }
  }
  models_.push_back({*std::move(model), std::move(read.provenance), std::move(read.published)});
  return {};
}

Status ModelCatalog::index_names() {
  // The one loaded first of two clashing names is reported as the first.
  std::sort(names_.begin(), names_.end(), [](const Name& a, const Name& b) {
    return a.text != b.text ? a.text < b.text : a.model < b.model;
  });
  for (std::size_t i = 1; i < names_.size(); ++i) {
    const Name& first = names_[i - 1];
    const Name& second = names_[i];
    if (first.text != second.text || first.model == second.model) continue;
    return input_error(second.where,
                       fmt::format("the name \"{}\" already stands for the model {} at {}",
                                   printable(second.text, 60), models_[first.model].model.name,
                                   first.where.text()));
  }
  return {};
}

Result<ModelCatalog> ModelCatalog::load(std::span<const EmbeddedFile> sources,
                                        std::span<const FactOverlay> overlays) {
  ModelCatalog catalog;
  catalog.models_.reserve(sources.size());
  for (const EmbeddedFile& source : sources) {
    const Result<Document> document = Document::parse(source.text, std::string(source.file));
    if (!document) return tl::unexpected(document.error());
    if (Status status = catalog.add(*document); !status) return forward_error(status);
  }
  for (const FactOverlay& overlay : overlays) {
    for (const Document& document : overlay.models) {
      if (Status status = catalog.add(document); !status) return forward_error(status);
    }
  }
  if (Status status = catalog.index_names(); !status) return forward_error(status);
  return catalog;
}

const CatalogModel* ModelCatalog::find(std::string_view name) const {
  const std::string lowered = lower_case(name);
  const auto found = std::lower_bound(
      names_.begin(), names_.end(), lowered,
      [](const Name& known, const std::string& text) { return known.text < text; });
  if (found == names_.end() || found->text != lowered) return nullptr;
  return &models_[found->model];
}

std::string ModelCatalog::suggestion(std::string_view name) const {
  std::vector<std::string_view> candidates;
  for (const CatalogModel& known : models_) {
    candidates.push_back(known.model.name);
    candidates.insert(candidates.end(), known.model.aliases.begin(), known.model.aliases.end());
  }
  return did_you_mean(name, candidates);
}

Result<const CatalogModel*> ModelCatalog::require(std::string_view name,
                                                  SourcePosition where) const {
  if (const CatalogModel* known = find(name); known != nullptr) return known;
  return input_error(std::move(where), fmt::format("no model \"{}\" in the catalog{}",
                                                   printable(name, 80), suggestion(name)));
}

Result<Model> load_model(const std::string& name_or_path, const ModelCatalog& catalog) {
  if (const CatalogModel* known = catalog.find(name_or_path); known != nullptr) {
    return known->model;
  }
  const bool path = name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".json");
  if (!path) {
    return input_error({},
                       fmt::format("no model \"{}\" in the catalog (a configuration file is "
                                   "named by a path with a \"/\" or ending in .json){}",
                                   printable(name_or_path, 80), catalog.suggestion(name_or_path)));
  }
  std::error_code failure;
  const bool directory = std::filesystem::is_directory(name_or_path, failure);
  const std::string file = directory ? name_or_path + "/config.json" : name_or_path;
  if (!std::filesystem::exists(file, failure)) {
    return input_error({},
                       fmt::format("\"{}\" is neither a model of the catalog nor a file{}",
                                   printable(name_or_path, 80), catalog.suggestion(name_or_path)));
  }
  const Result<Document> document = Document::load(file);
  if (!document) return tl::unexpected<Error>(document.error());
  Result<Model> model = read_model_config(document->root());
  if (model) model->name = name_or_path;
  return model;
}

}  // namespace orrery
