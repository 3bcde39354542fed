// store/etcd_api/etcd_location.hpp - where a log in etcd lies: the members of an etcd cluster, and
// the name under which one of Orrery's clusters keeps its log there.
//
//   etcd://HOST:PORT[,HOST:PORT...]/CLUSTER[?ca=FILE&cert=FILE&key=FILE]
//
// A plain value; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace orrery {

struct EtcdLocation {
  std::vector<std::string> members;  ///< "HOST:PORT", at least one
  std::string cluster;               ///< 1 to 63 of a-z, 0-9 and '-'
  std::string authority_file;        ///< PEM; empty: connections without TLS
  std::string certificate_file;      ///< PEM, of this client; empty: it shows none
  std::string key_file;              ///< PEM, of the certificate

  /// Prefix of all keys: "/orrery/CLUSTER/".
  [[nodiscard]] std::string prefix() const;
  /// The URL without the files.
  [[nodiscard]] std::string text() const;
  /// The URL with the files; parse_etcd_location() reads it back.
  [[nodiscard]] std::string url() const;

  friend bool operator==(const EtcdLocation&, const EtcdLocation&) = default;
};

[[nodiscard]] bool is_etcd_url(std::string_view url);

/// Errors name the part of the URL, and what was expected.
[[nodiscard]] Result<EtcdLocation> parse_etcd_location(std::string_view url);

}  // namespace orrery
