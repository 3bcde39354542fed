// Each key of each row of the built-in catalog reaches the row that is shown: none is read without
// effect.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/format/field_writer.hpp"
#include "hardware/builtin_catalog.hpp"
#include "hardware/catalog.hpp"

namespace orrery {
namespace {

/// Whether `shown` has what the file states. Numbers may be in another unit, so only whether they
/// are 0 is compared.
bool shows(const Json& shown, const DocumentNode& said) {
  switch (said.kind()) {
    case NodeKind::kNull:
      return true;
    case NodeKind::kScalar:
      if (shown.is_string()) return shown.get<std::string>() == said.text();
      if (shown.is_boolean()) return shown.get<bool>() == (said.text() == "true");
      if (shown.is_number()) {
        return (shown.get<double>() == 0) == (std::strtod(said.text().data(), nullptr) == 0);
      }
      return shown.is_object();  // written as one of its values alone
    case NodeKind::kSequence:
    case NodeKind::kMapping:
      return shown.size() >= said.size();
  }
  return false;
}

void expect_shown(const Json& shown, const DocumentNode& said, const std::string& path) {
  EXPECT_TRUE(shows(shown, said)) << said.position().text() << ": " << path << " is shown as "
                                  << shown.dump().substr(0, 200);
  for (const auto& [key, value] : said.entries()) {
    const std::string name(key.text());
    const bool there = shown.is_object() && shown.contains(name);
    EXPECT_TRUE(there || value.kind() == NodeKind::kNull)
        << key.position().text() << ": " << path << "." << name << " is not shown";
    if (there) expect_shown(shown[name], value, path + "." + name);
  }
  const std::vector<DocumentNode> items = said.items();
  for (std::size_t i = 0; i < items.size() && shown.is_array() && i < shown.size(); ++i) {
    expect_shown(shown[i], items[i], path + "[" + std::to_string(i) + "]");
  }
}

/// The row of a table that was read at this place.
Json row_at(const Catalog& catalog, std::string_view section, const SourcePosition& place) {
  Json found;
  catalog.for_each_table([&](const auto& table) {
    if (table.section != section) return;
    for (const auto& row : table.rows) {
      if (row.where == place) found = to_json(row);
    }
  });
  return found;
}

TEST(CatalogRows, ShowEachKeyOfTheirFiles) {
  const Result<Catalog> catalog = Catalog::load(builtin_catalog(), {});
  ASSERT_TRUE(catalog) << catalog.error().text();
  std::size_t rows = 0;
  for (const EmbeddedFile& file : builtin_catalog()) {
    const Result<Document> document = Document::parse(file.text, std::string(file.file));
    ASSERT_TRUE(document) << document.error().text();
    for (const auto& [section, list] : document->root().entries()) {
      if (section.text() == "evidence") continue;
      for (const DocumentNode& row : list.items()) {
        const Json shown = row_at(*catalog, section.text(), row.position());
        expect_shown(shown, row, std::string(section.text()));
        ++rows;
      }
    }
  }
  EXPECT_GT(rows, 100U);
}

/// A provenance for facts of another catalog.
Json other_provenance() {
  return {{"source", "a page"},
          {"confidence", "press"},
          {"note", "a remark"},
          {"checked_against", "another page"},
          {"recalled_fields", {"one"}}};
}

TEST(CatalogRows, ShowWhereAPatchOfEachKindOfFactComesFrom) {
  const Result<Catalog> builtin = Catalog::load(builtin_catalog(), {});
  ASSERT_TRUE(builtin) << builtin.error().text();
  Json patch = {{"apiVersion", "orrery/v1"}, {"kind", "Catalog"}, {"name", "patch"}};
  builtin->for_each_table([&](const auto& table) {
    if constexpr (requires { table.rows.front().provenance; }) {
      Json row = to_json(table.rows.front());
      row.erase("like");  // is for new rows
      row.update(other_provenance());
      patch[std::string(table.section)] = Json::array({row});
    }
  });
  const std::filesystem::path overlay =
      std::filesystem::path(testing::TempDir()) / "orrery_catalog_rows";
  std::filesystem::create_directories(overlay);
  std::ofstream(overlay / "patch.yaml") << patch.dump(2);
  const Result<Catalog> patched =
      Catalog::load(builtin_catalog(), *read_fact_overlays(overlay.string()));
  std::filesystem::remove_all(overlay);
  ASSERT_TRUE(patched) << patched.error().text();
  const Json expected = other_provenance();
  patched->for_each_table([&](const auto& table) {
    if constexpr (requires { table.rows.front().provenance; }) {
      const Json shown = to_json(table.rows.front());
      for (const auto& [key, value] : expected.items()) {
        EXPECT_EQ(shown[key], value) << table.section << "." << key;
      }
    }
  });
}

}  // namespace
}  // namespace orrery
