#include "store/etcd_api/etcd_location.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>

namespace orrery {
namespace {

constexpr std::string_view kScheme = "etcd://";
constexpr std::string_view kForm =
    "etcd://HOST:PORT[,HOST:PORT...]/CLUSTER[?ca=FILE&cert=FILE&key=FILE]";
constexpr std::size_t kClusterBytesMax = 63;
constexpr int kPortMax = 65'535;

tl::unexpected<Error> not_a_location(std::string_view url, std::string_view why) {
  return input_error({}, fmt::format("\"{}\": {}; expected {}", url, why, kForm));
}

/// Cuts the text before `separator` off the front; the whole where there is none.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return taken;
}

bool is_member(std::string_view member) {
  const std::size_t colon = member.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view port = member.substr(colon + 1);
  int value = 0;
  const auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), value);
  const bool number = failed == std::errc() && end == port.data() + port.size();
  const std::string_view host = member.substr(0, colon);
  const bool bare_ipv6 = host.find(':') != std::string_view::npos && host.front() != '[';
  return number && value > 0 && value <= kPortMax && !bare_ipv6;
}

bool is_cluster(std::string_view name) {
  return !name.empty() && name.size() <= kClusterBytesMax &&
         std::all_of(name.begin(), name.end(), [](char letter) {
           return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') ||
                  letter == '-';
         });
}

std::string* file_of(EtcdLocation& location, std::string_view key) {
  if (key == "ca") return &location.authority_file;
  if (key == "cert") return &location.certificate_file;
  if (key == "key") return &location.key_file;
  return nullptr;
}

/// Reads "ca=FILE&cert=FILE&key=FILE". Returns what is wrong with it; none: nothing.
std::optional<std::string> take_files(std::string_view query, EtcdLocation& location) {
  while (!query.empty()) {
    std::string_view value = take_until(query, '&');
    const std::string_view key = take_until(value, '=');
    std::string* const file = file_of(location, key);
    if (file == nullptr) {
      return fmt::format("unknown setting \"{}\", expected ca, cert or key", key);
    }
    if (value.empty()) return fmt::format("the setting \"{}\" names no file", key);
    *file = value;
  }
  if (location.certificate_file.empty() != location.key_file.empty()) {
    return "cert and key are given together";
  }
  if (!location.certificate_file.empty() && location.authority_file.empty()) {
    return "cert and key need ca";
  }
  return std::nullopt;
}

}  // namespace

std::string EtcdLocation::prefix() const { return fmt::format("/orrery/{}/", cluster); }

std::string EtcdLocation::text() const {
  return fmt::format("{}{}/{}", kScheme, fmt::join(members, ","), cluster);
}

std::string EtcdLocation::url() const {
  std::string url = text();
  char separator = '?';
  for (const auto& [key, file] :
       {std::pair("ca", &authority_file), std::pair("cert", &certificate_file),
        std::pair("key", &key_file)}) {
    if (file->empty()) continue;
    fmt::format_to(std::back_inserter(url), "{}{}={}", separator, key, *file);
    separator = '&';
  }
  return url;
}

bool is_etcd_url(std::string_view url) { return url.starts_with(kScheme); }

Result<EtcdLocation> parse_etcd_location(std::string_view url) {
  if (!is_etcd_url(url)) return not_a_location(url, "is no URL of etcd");
  std::string_view query = url.substr(kScheme.size());
  std::string_view cluster = take_until(query, '?');
  std::string_view members = take_until(cluster, '/');
  if (members.ends_with(',')) return not_a_location(url, "a ',' ends the list of members");
  EtcdLocation location;
  do {
    const std::string_view member = take_until(members, ',');
    if (!is_member(member)) {
      return not_a_location(url, fmt::format("\"{}\" is no HOST:PORT", member));
    }
    location.members.emplace_back(member);
  } while (!members.empty());
  if (!is_cluster(cluster)) {
    return not_a_location(url, fmt::format("the cluster's name \"{}\" is not 1 to {} of a-z, 0-9 "
                                           "and '-'",
                                           cluster, kClusterBytesMax));
  }
  location.cluster = cluster;
  if (const std::optional<std::string> wrong = take_files(query, location)) {
    return not_a_location(url, *wrong);
  }
  return location;
}

}  // namespace orrery
