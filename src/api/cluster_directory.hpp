// api/cluster_directory.hpp - where a cluster is found: a directory with cluster.json, which its
// controller writes when it serves, and perhaps a token.
//
// Pure but for reading files. Values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/grpc/client.hpp"
#include "base/env.hpp"
#include "base/error.hpp"
#include "base/format/field_reader.hpp"

namespace orrery {

/// cluster.json: where clients find the controller, and the controller its addresses again.
struct ClusterFile {
  std::string address;  ///< host:port of gRPC
  /// host:port of each controller of the cluster, this one included. Empty: it has no other.
  std::vector<std::string> controllers;
  std::string http;     ///< of REST and events
  std::string name;     ///< of the cluster
  std::string ca;       ///< file of the authority that its certificate is by, beside this one
  std::string version;  ///< release of the controller
  std::string token;    ///< of a client, in place of the file `token`; no controller writes it
  /// Where it listens: of the next start. Empty: at `address` and `http`, which then lead there.
  std::string listen;
  std::string http_listen;
};

template <class Visitor, SameStruct<ClusterFile> Self>
void describe(Visitor& visitor, Self& cluster) {
  visitor.required("address", cluster.address);
  visitor.optional("controllers", cluster.controllers);
  visitor.optional("http", cluster.http);
  visitor.optional("name", cluster.name);
  visitor.optional("ca", cluster.ca);
  visitor.optional("version", cluster.version);
  visitor.optional("token", cluster.token);
  visitor.optional("listen", cluster.listen);
  visitor.optional("http_listen", cluster.http_listen);
}

/// Keys that a later release has added are passed over. Errors (kEnvironment): `path` is not an
/// object with an address.
[[nodiscard]] Result<ClusterFile> read_cluster_file(std::string_view text, const std::string& path);

/// cluster.json, and the texts of the file `token` beside it and of the one it names as "ca".
struct ClusterAddress {
  std::string name;                      ///< empty: not said
  std::string version;                   ///< release of the controller; empty: not said
  std::string address;                   ///< host:port of the controller
  std::vector<std::string> controllers;  ///< of each controller, `address` first
  std::string authority;                 ///< certificate of the cluster's, PEM; empty: none
  std::string token;                     ///< empty: none

  /// "the controller of lab (release 1.2.0) at host:port"; "the controllers of .. at A, B".
  [[nodiscard]] std::string text() const;
};

struct ClusterSearch {
  std::string asked;    ///< by option or environment; empty: not
  std::string current;  ///< the current directory
  std::string home;     ///< of the user; empty: none
};

/// The directory asked for, else .orrery of the current directory, else that of the home directory
/// when the current one has none.
[[nodiscard]] std::string cluster_directory(const ClusterSearch& search);

/// Errors: kInput where there is no cluster ("no cluster at DIR; start one with ..."), kEnvironment
/// where its files cannot be read or say nothing of an address.
[[nodiscard]] Result<ClusterAddress> read_cluster_address(Storage& storage,
                                                          const std::string& directory);

/// Returns the options of a client that calls the cluster.
[[nodiscard]] ClientOptions client_options(const ClusterAddress& cluster);

}  // namespace orrery
