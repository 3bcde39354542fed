#include "api/cluster_directory.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

namespace orrery {
namespace {

constexpr std::size_t kFileBytesMax = 64 << 10;

/// A text of the object; "" where there is none.
std::string text_of(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

std::string cluster_directory(const ClusterSearch& search) {
  if (!search.asked.empty()) return search.asked;
  const std::string here = search.current + "/.orrery";
  std::error_code failed;
  if (search.home.empty() || std::filesystem::is_directory(here, failed)) return here;
  const std::string home = search.home + "/.orrery";
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
  const nlohmann::json object = nlohmann::json::parse(*text, nullptr, false);
  ClusterAddress found;
  if (object.is_object()) {
    found.name = text_of(object, "name");
    found.address = text_of(object, "address");
    found.token = text_of(object, "token");
  }
  if (found.address.empty()) {
    return environment_error(
        fmt::format("{}: expected an object with \"address\", the controller's", path));
  }
  if (const std::string file = text_of(object, "ca"); !file.empty()) {
    const auto place = std::filesystem::path(directory) / file;
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

}  // namespace orrery
