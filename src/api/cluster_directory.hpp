// api/cluster_directory.hpp - where a cluster is found: a directory with cluster.json, which its
// controller writes when it serves, and perhaps a token.
//
// Pure but for reading files. Values.
#pragma once

#include <string>

#include "base/env.hpp"
#include "base/error.hpp"

namespace orrery {

/// cluster.json, and the texts of the file `token` beside it and of the one it names as "ca".
struct ClusterAddress {
  std::string name;
  std::string address;    ///< host:port of the controller
  std::string authority;  ///< certificate of the cluster's, PEM; empty: none
  std::string token;      ///< empty: none
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

}  // namespace orrery
