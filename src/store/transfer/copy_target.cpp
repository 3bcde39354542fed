#include "store/transfer/copy_target.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/system/real_storage.hpp"
#include "store/etcd/etcd_store.hpp"
#include "store/etcd/store_url.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

class SqliteTarget final : public CopyTarget {
 public:
  explicit SqliteTarget(std::unique_ptr<SqliteStore> store) : store_(std::move(store)) {}

  Store& store() override { return *store_; }
  StorageResult<StoreTerm> claim_above(std::uint64_t passed) override {
    if (StorageStatus raised = store_->adopt({.term = passed}); !raised) {
      return forward_failure(raised);
    }
    return store_->claim();
  }
  StorageStatus begin_at(StoreTerm term, const Batch& covers) override {
    return store_->begin_at(term, covers);
  }
  StorageStatus finish(const HighWater& reached) override {
    StorageStatus raised = store_->adopt(reached);
    store_.reset();
    return raised;
  }

 private:
  std::unique_ptr<SqliteStore> store_;
};

/// Its local part is made beside STATE/store, which may be the directory that is copied.
class EtcdTarget final : public CopyTarget {
 public:
  EtcdTarget(std::unique_ptr<EtcdStore> store, std::string local)
      : store_(std::move(store)), local_(std::move(local)) {}

  [[nodiscard]] static std::string beside(const std::string& local) { return local + ".copied"; }

  Store& store() override { return *store_; }
  StorageResult<StoreTerm> claim_above(std::uint64_t passed) override {
    return store_->claim_above(static_cast<StoreTerm>(passed));
  }
  StorageStatus begin_at(StoreTerm term, const Batch& covers) override {
    return store_->begin_at(term, covers);
  }
  StorageStatus finish(const HighWater& reached) override {
    store_.reset();
    RealStorage storage;
    if (StorageStatus made = storage.make_directories(local_); !made) return made;
    StorageStatus moved =
        storage.rename({.from = beside(local_) + "/archive", .to = local_ + "/archive"});
    if (moved) moved = HighWaterFile::put(local_, reached);
    std::error_code none;
    if (moved) fs::remove_all(beside(local_), none);
    return moved;
  }

 private:
  std::unique_ptr<EtcdStore> store_;
  std::string local_;
};

StorageResult<std::unique_ptr<CopyTarget>> target_in_directory(const std::string& directory) {
  std::error_code none;
  if (fs::exists(directory, none) && !fs::is_empty(directory, none)) {
    return store_error(
        StorageFailure::kExists,
        fmt::format("{}: is there already; expected a directory to make, or an empty one",
                    directory));
  }
  auto store = SqliteStore::open(directory);
  if (!store) return forward_failure(store);
  return std::make_unique<SqliteTarget>(*std::move(store));
}

StorageResult<std::unique_ptr<CopyTarget>> target_in_etcd(const EtcdLocation& location,
                                                          const std::string& local) {
  std::error_code none;
  if (fs::exists(local + "/archive", none)) {
    return store_error(StorageFailure::kExists,
                       fmt::format("{}/archive: belongs to a log in etcd that this machine has "
                                   "followed; move it away, or name another --state",
                                   local));
  }
  const std::string beside = EtcdTarget::beside(local);
  fs::remove_all(beside, none);
  auto store = EtcdStore::open(location, beside, {.snapshot_bytes_per_second = 0});
  if (!store) return forward_failure(store);
  StorageResult<WriterSeen> seen = (*store)->look();
  if (!seen) return forward_failure(seen);
  if (seen->term != 0) {
    fs::remove_all(beside, none);
    return store_error(StorageFailure::kExists,
                       fmt::format("{}: has a log already, of {} batches, and a copy replaces "
                                   "none; choose another CLUSTER in the URL, or a directory",
                                   location.text(), seen->newest));
  }
  return std::make_unique<EtcdTarget>(*std::move(store), local);
}

}  // namespace

StorageResult<std::unique_ptr<CopyTarget>> open_copy_target(const std::string& url,
                                                            const std::string& state) {
  if (!is_etcd_url(url)) return target_in_directory(directory_of_url(url));
  Result<EtcdLocation> location = parse_etcd_location(url);
  if (!location) return tl::unexpected(StorageError{std::move(location.error())});
  return target_in_etcd(*location, state + "/store");
}

}  // namespace orrery
