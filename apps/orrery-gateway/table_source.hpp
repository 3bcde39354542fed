// apps/orrery-gateway/table_source.hpp - where a gateway's route table comes from when no
// controller has given one: a file of the user, or the last table that was kept.
//
// Made by main(), used on its loop. The kept table is the gateway's own file; the user's is only
// read. Cost: a file read or written a table.
#pragma once

#include <optional>
#include <string>

#include "base/env.hpp"
#include "serving/routing/route_table.hpp"

namespace orrery {

class TableSource {
 public:
  struct Paths {
    std::string table;  ///< JSON or YAML; empty: none
    std::string state;  ///< empty: nothing is kept
  };

  TableSource(Storage& storage, Paths paths) : storage_(storage), paths_(std::move(paths)) {}

  /// The table to begin with: the user's, else the kept one, else an empty one. Errors: a file that
  /// is there cannot be read, or holds no table.
  [[nodiscard]] Result<RouteTable> first() const;
  [[nodiscard]] bool has_file() const { return !paths_.table.empty(); }
  /// Reads the user's file again. Precondition: has_file().
  [[nodiscard]] Result<RouteTable> read_file_again() const;
  /// Keeps a table for the next start.
  [[nodiscard]] Status keep(const RouteTable& table) const;

 private:
  Storage& storage_;
  Paths paths_;
};

}  // namespace orrery
