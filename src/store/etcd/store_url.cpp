#include "store/etcd/store_url.hpp"

#include <string_view>
#include <utility>

#include "store/etcd/etcd_store.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace orrery {
namespace {

constexpr std::string_view kSqlite = "sqlite:";

}  // namespace

std::string directory_of_url(const std::string& url) {
  return url.starts_with(kSqlite) ? url.substr(kSqlite.size()) : url;
}

StorageResult<std::unique_ptr<StoreReader>> open_store_to_read(const std::string& url) {
  if (!is_etcd_url(url)) return SqliteStore::open_to_read(directory_of_url(url));
  Result<EtcdLocation> location = parse_etcd_location(url);
  if (!location) return tl::unexpected(StorageError{std::move(location.error())});
  return EtcdStore::open_to_read(*location);
}

StorageResult<std::unique_ptr<Store>> open_store(const std::string& url, const std::string& local) {
  if (is_etcd_url(url)) {
    Result<EtcdLocation> location = parse_etcd_location(url);
    if (!location) return tl::unexpected(StorageError{std::move(location.error())});
    auto store = EtcdStore::open(*location, local);
    if (!store) return forward_failure(store);
    return *std::move(store);
  }
  auto store = SqliteStore::open(directory_of_url(url));
  if (!store) return forward_failure(store);
  return *std::move(store);
}

}  // namespace orrery
