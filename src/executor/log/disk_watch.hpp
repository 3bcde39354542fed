// executor/log/disk_watch.hpp - looks at the free space beside the log every few seconds, and logs
// when it becomes low and when it is enough again.
//
// Owned by the controller, on its loop; owns the reserve of the store's disk. Cost of a look: two
// system calls.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/env.hpp"
#include "base/log.hpp"
#include "store/sqlite/disk_reserve.hpp"

namespace orrery {

class DiskWatch {
 public:
  /// Allocates the reserve if twice its size is free. `directory` is that of the store; `bytes` is
  /// the reserve's size.
  DiskWatch(const Env& env, const Log& log, std::string directory,
            std::uint64_t bytes = DiskReserve::kBytes);
  DiskWatch(const DiskWatch&) = delete;
  DiskWatch& operator=(const DiskWatch&) = delete;
  ~DiskWatch();

  /// Looks now, and every few seconds from now on.
  void look();

  [[nodiscard]] DiskRoom room() const { return reserve_->look(); }
  [[nodiscard]] std::uint64_t free_bytes() const { return reserve_->free_bytes(); }
  /// Gives up the reserve for a log that finds no space. Any thread.
  RoomMade make_room() { return reserve_->give_up(); }
  /// Error: new work is refused, because only the reserve is left.
  [[nodiscard]] Status admission() const;

 private:
  Env env_;
  Log log_;
  std::string directory_;
  std::unique_ptr<DiskReserve> reserve_;
  DiskRoom logged_ = DiskRoom::kEnough;
  std::optional<TimerId> timer_;
};

}  // namespace orrery
