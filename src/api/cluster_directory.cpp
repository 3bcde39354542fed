#include "api/cluster_directory.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "base/format/document.hpp"
#include "base/format/field_reader.hpp"

namespace orrery {
namespace {

constexpr std::size_t kFileBytesMax = 64 << 10;

std::vector<std::string> controllers_of(const ClusterFile& file) {
  std::vector<std::string> all = file.controllers;
  std::erase(all, file.address);
  all.insert(all.begin(), file.address);
  return all;
}

}  // namespace

Result<ClusterFile> read_cluster_file(std::string_view text, const std::string& path) {
  ClusterFile cluster;
  const Result<Document> document = Document::parse(std::string(text), path);
  if (document) static_cast<void>(read_struct(document->root(), cluster, {}));
  if (!cluster.address.empty()) return cluster;
  return environment_error(
      fmt::format("{}: expected an object with \"address\", the controller's", path));
}

std::string ClusterAddress::text() const {
  std::string said = controllers.size() > 1 ? "the controllers" : "the controller";
  if (!name.empty()) said += " of " + name;
  if (!version.empty()) said += fmt::format(" (release {})", version);
  return fmt::format("{} at {}", said, fmt::join(controllers, ", "));
}

std::string cluster_directory(const ClusterSearch& search) {
  if (!search.asked.empty()) return search.asked;
  std::string here = search.current + "/.orrery";
  std::error_code failed;
  if (search.home.empty() || std::filesystem::is_directory(here, failed)) return here;
  std::string home = search.home + "/.orrery";
  return std::filesystem::is_directory(home, failed) ? home : here;
}

Result<ClusterAddress> read_cluster_address(Storage& storage, const std::string& directory) {
  const std::string path = directory + "/cluster.json";
  StorageResult<std::string> text = storage.read_file(path, kFileBytesMax);
  if (!text) {
    if (text.error().failure != StorageFailure::kNotFound) return forward_error(text);
    return input_error({}, fmt::format("no cluster at {}; start one with `orrery up`, or name "
                                       "another with --dir or ORRERY_DIR",
                                       directory));
  }
  Result<ClusterFile> file = read_cluster_file(*text, path);
  if (!file) return forward_error(file);
  ClusterAddress found{.name = file->name,
                       .version = file->version,
                       .address = file->address,
                       .controllers = controllers_of(*file),
                       .authority = {},
                       .token = file->token};
  if (!file->ca.empty()) {
    const auto place = std::filesystem::path(directory) / file->ca;
    StorageResult<std::string> authority = storage.read_file(place.string(), kFileBytesMax);
    if (!authority) return forward_error(authority);
    found.authority = *std::move(authority);
  }
  if (!found.token.empty()) return found;
  StorageResult<std::string> token = storage.read_file(directory + "/token", kFileBytesMax);
  if (!token && token.error().failure != StorageFailure::kNotFound) return forward_error(token);
  if (token) found.token = token->substr(0, token->find_last_not_of(" \r\n\t") + 1);
  return found;
}

ClientOptions client_options(const ClusterAddress& cluster) {
  return {.addresses = cluster.controllers, .authority = cluster.authority, .token = cluster.token};
}

}  // namespace orrery
