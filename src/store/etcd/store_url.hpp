// store/etcd/store_url.hpp - opens a store by the text that a user gives: a directory, or a log in
// etcd.
#pragma once

#include <memory>
#include <string>

#include "store/store.hpp"

namespace orrery {

/// Opens a store to write. `url`: "DIR" or "sqlite:DIR" (store/sqlite/sqlite_store.hpp), or
/// "etcd://..." (store/etcd_api/etcd_location.hpp); a log in etcd keeps its archive and mark in
/// `local`. Errors: those of opening it; the URL is not well formed.
[[nodiscard]] StorageResult<std::unique_ptr<Store>> open_store(const std::string& url,
                                                               const std::string& local);

/// Opens a store to read, without its archive if it is in etcd. `url`: as above, or a backup file.
/// Errors: kNotFound: there is no store; of kind kInput: the URL is not well formed; those of
/// opening it.
[[nodiscard]] StorageResult<std::unique_ptr<StoreReader>> open_store_to_read(
    const std::string& url);

/// The directory that a text names which is no URL of etcd.
[[nodiscard]] std::string directory_of_url(const std::string& url);

}  // namespace orrery
