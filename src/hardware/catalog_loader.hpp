// hardware/catalog_loader.hpp - reads catalog documents into a Catalog; used by Catalog::load and
// Catalog::with alone.
//
// Documents come in layers: 0 is compiled in, the others are overlays. A row may occur once in a
// layer; a row of a later layer patches that of an earlier one.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hardware/catalog.hpp"

namespace orrery {

class CatalogLoader {
 public:
  CatalogLoader() = default;
  /// Starts with the rows of a loaded catalog, to which rows may be added but not documents.
  explicit CatalogLoader(Catalog catalog) : catalog_(std::move(catalog)) {}

  /// Reads one document into the tables.
  [[nodiscard]] Status add(const Document& document, int layer);
  [[nodiscard]] Status add(const NodeType& node);

  /// Builds the name indexes and checks every cross-reference.
  [[nodiscard]] Result<Catalog> finish();

 private:
  struct Origin {
    std::size_t row;
    int layer;
  };

  [[nodiscard]] Status add_section(const DocumentNode& key, const DocumentNode& value, int layer);
  [[nodiscard]] Status add_evidence(const DocumentNode& value);
  template <class Row>
  [[nodiscard]] Status add_rows(CatalogTable<Row>& table, const DocumentNode& list, int layer);
  template <class Row>
  [[nodiscard]] Status add_row(CatalogTable<Row>& table, const DocumentNode& node, int layer);
  template <class Row>
  [[nodiscard]] std::string key_of(const DocumentNode& row) const;
  template <class Row>
  [[nodiscard]] Status read_new(const CatalogTable<Row>& table, const DocumentNode& node,
                                Row& row) const;
  template <class Row>
  [[nodiscard]] Status copy_like(const CatalogTable<Row>& table, const DocumentNode& node,
                                 Row& row) const;
  template <class Row>
  [[nodiscard]] static Status index_names(CatalogTable<Row>& table);
  [[nodiscard]] Status index_all();

  Catalog catalog_;
  std::map<std::string, Origin, std::less<>> origins_;  ///< "section/key" -> where it is
};

/// Makes every reference of a loaded catalog canonical (ids, not aliases) and checks that it holds.
/// Defined in hardware/catalog_check.cpp.
class CatalogChecker {
 public:
  explicit CatalogChecker(Catalog& catalog) : catalog_(catalog) {}
  [[nodiscard]] Status run();

 private:
  [[nodiscard]] Status check_accelerators();
  [[nodiscard]] Status check_default_nodes();
  [[nodiscard]] Status check_nodes();
  [[nodiscard]] Status check_systems();
  [[nodiscard]] Status check_prices();
  [[nodiscard]] Status check_software();
  [[nodiscard]] Status check_facility();

  template <class Row>
  [[nodiscard]] Status resolve(std::string& reference, const SourcePosition& where) const;

  template <class Row>
  [[nodiscard]] std::vector<Row>& rows() const {
    return std::get<CatalogTable<Row>>(catalog_.tables_).rows;
  }

  Catalog& catalog_;
};

}  // namespace orrery
