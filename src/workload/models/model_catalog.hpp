// workload/models/model_catalog.hpp - the known models by name: their architecture and where it is
// from.
//
// Built once, by ModelCatalog::load, from the files compiled into the program and those of an
// overlay directory; one model a file. Immutable and freely shared between threads. Names and
// aliases are unique, without regard to ASCII case, over the whole catalog.
// Cost: loading is O(bytes), under 10 ms for the files that come with the program; a look-up is
// O(log names).
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/format/embedded_file.hpp"
#include "hardware/fact_overlay.hpp"
#include "hardware/provenance.hpp"
#include "workload/models/model.hpp"

namespace orrery {

/// Which parameters a published active count includes.
enum class ActiveCounts { kEmbeddingAndHead, kHeadOnly };

inline std::array<EnumWord<ActiveCounts>, 2> enum_words(ActiveCounts) {
  return {{{"embedding_and_head", ActiveCounts::kEmbeddingAndHead},
           {"head_only", ActiveCounts::kHeadOnly}}};
}

/// Published counts of the model, to check the shape against.
struct PublishedCounts {
  std::optional<double> total_parameters;
  std::optional<double> active_parameters;
  double rounded_to = 0;  ///< unit of the last digit printed; 0: exact
  ActiveCounts active_counts = ActiveCounts::kEmbeddingAndHead;
  std::string source;
};

template <class Visitor, SameStruct<PublishedCounts> Self>
void describe(Visitor& visitor, Self& published) {
  visitor.optional("total_parameters", published.total_parameters);
  visitor.optional("active_parameters", published.active_parameters);
  visitor.optional("rounded_to", published.rounded_to);
  visitor.optional("active_counts", published.active_counts);
  visitor.optional("source", published.source);
}

struct CatalogModel {
  Model model;
  Provenance provenance;
  PublishedCounts published;
};

class ModelCatalog {
 public:
  /// `sources` first, then the overlays in their order. Errors: anything wrong in a file, with
  /// file:line:column; a name that stands for two models, with both places.
  [[nodiscard]] static Result<ModelCatalog> load(std::span<const EmbeddedFile> sources,
                                                 std::span<const FactOverlay> overlays);

  [[nodiscard]] const std::vector<CatalogModel>& all() const { return models_; }

  /// By name or alias, without regard to ASCII case; nullptr when there is none.
  [[nodiscard]] const CatalogModel* find(std::string_view name) const;

  /// As find, with an error (at `where`) that names the nearest candidate.
  [[nodiscard]] Result<const CatalogModel*> require(std::string_view name,
                                                    SourcePosition where = {}) const;

  /// ", did you mean \"x\"?" or "".
  [[nodiscard]] std::string suggestion(std::string_view name) const;

 private:
  struct Name {
    std::string text;
    std::size_t model = 0;
    SourcePosition where;
  };

  Status add(const Document& document);
  Status index_names();

  std::vector<CatalogModel> models_;
  std::vector<Name> names_;  ///< lower case, sorted
};

/// The model `name_or_path` means: a catalog name or alias, else the path of a config.json (it
/// contains '/' or ends in ".json") or of a directory that holds one, named by that path.
[[nodiscard]] Result<Model> load_model(const std::string& name_or_path,
                                       const ModelCatalog& catalog);

}  // namespace orrery
