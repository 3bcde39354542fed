#include "executor/log/open_shared_log.hpp"

#include "store/etcd/etcd_store.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace orrery {

Result<SharedLog> open_shared_log(const SharedLogPlace& place) {
  const Result<EtcdLocation> location = parse_etcd_location(place.url);
  if (!location) return tl::unexpected(location.error());
  return SharedLog{
      .open = [at = *location, local = place.directory,
               speaks_for = place.speaks_for]() -> StorageResult<std::unique_ptr<SharedStore>> {
        StorageResult<std::unique_ptr<EtcdStore>> store =
            EtcdStore::open(at, local, {.speaks_for = speaks_for});
        if (!store) return forward_failure(store);
        return *std::move(store);
      },
      .open_log = [at = *location] { return EtcdStore::open_to_read(at); },
      .open_archive =
          [local = place.directory] { return SqliteStore::open_to_read(local + "/archive"); },
      .writer = place.writer,
      .claims_after = place.claims_after};
}

}  // namespace orrery
