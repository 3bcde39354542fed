// tests/fuzz/fuzz_catalog.cpp - any text as an overlay on the built-in catalog; what loads answers
// every question about every accelerator.
#include <cstdint>
#include <string_view>

#include "base/assert.hpp"
#include "hardware/builtin_catalog.hpp"
#include "hardware/catalog_loader.hpp"

namespace orrery {
namespace {

// Parsed once: only the overlay is new in each run.
const CatalogLoader& builtin_loader() {
  static const CatalogLoader kLoader = [] {
    CatalogLoader loader;
    for (const EmbeddedFile& source : builtin_catalog()) {
      const Result<Document> document = Document::parse(source.text, std::string(source.file));
      ORRERY_ASSERT(document && loader.add(*document, 0), "the built-in catalog loads");
    }
    return loader;
  }();
  return kLoader;
}

void ask_everything(const Catalog& catalog) {
  for (const Accelerator& accelerator : catalog.all<Accelerator>()) {
    ORRERY_ASSERT(catalog.find<Accelerator>(accelerator.id) == &accelerator, "ids are unique");
    ORRERY_ASSERT(catalog.default_node(accelerator).accelerator == accelerator.id,
                  "the default node holds the accelerator");
    const AcceleratorPrice* price = catalog.price(accelerator);
    const Supply* supply = catalog.supply(accelerator);
    ORRERY_ASSERT(price == nullptr || catalog.find<Accelerator>(price->accelerator) != nullptr,
                  "a price is of a known accelerator");
    for (const Framework& framework : catalog.all<Framework>()) {
      const Catalog::StackAnswer answer = catalog.stack(framework, accelerator);
      ORRERY_ASSERT((answer.platform != nullptr) == (supply != nullptr), "supply names a platform");
    }
  }
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<Document> document = Document::parse(text, "overlay.yaml");
  if (!document) return 0;
  CatalogLoader loader = builtin_loader();
  if (const Status added = loader.add(*document, 1); !added) return 0;
  const Result<Catalog> catalog = loader.finish();
  if (catalog) ask_everything(*catalog);
  return 0;
}
