#include "apps/orrery-gateway/table_source.hpp"

#include "base/format/document.hpp"

namespace orrery {
namespace {

Result<RouteTable> table_in(const std::string& path) {
  const Result<Document> document = Document::load(path);
  if (!document) return tl::unexpected(document.error());
  return read_route_table(*document);
}

}  // namespace

Result<RouteTable> TableSource::first() const {
  if (has_file()) return read_file_again();
  if (paths_.state.empty()) return RouteTable{};
  StorageResult<std::string> kept = storage_.read_file(paths_.state, Document::kSizeMax);
  if (!kept && kept.error().failure == StorageFailure::kNotFound) return RouteTable{};
  if (!kept) return forward_error(kept);
  const Result<Document> document = Document::parse(*kept, paths_.state);
  if (!document) return tl::unexpected(document.error());
  return read_route_table(*document);
}

Result<RouteTable> TableSource::read_file_again() const { return table_in(paths_.table); }

Status TableSource::keep(const RouteTable& table) const {
  if (paths_.state.empty()) return {};
  StorageStatus written = storage_.write_file(paths_.state, write_route_table(table));
  if (!written) return forward_error(written);
  return {};
}

}  // namespace orrery
