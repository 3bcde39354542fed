// store/sqlite/disk_reserve.hpp - reserved space on the disk, so that essential records can be
// written even when the disk is full.
//
// A file of its own beside the log, DIR/ballast, with allocated but unused blocks. If less than its
// size is free beside it, no new work is accepted (DiskRoom::kLow); if a commit finds no space at
// all the reserve is released (CommitOptions::make_room), so that cancels, drains and ends
// still work. It is allocated again when twice its size is free. Made by the owner of the store;
// any thread may call. Cost: a system call or two.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "base/error.hpp"
#include "store/group_commit.hpp"

namespace orrery {

enum class DiskRoom : std::uint8_t {
  kEnough,
  kLow,  ///< submissions are refused
};

class DiskReserve {
 public:
  static constexpr std::uint64_t kBytes = std::uint64_t{64} << 20;

  /// With less free space a start releases the reserve first.
  static constexpr std::uint64_t kStartBytes = std::uint64_t{16} << 20;

  /// Called before a start writes anything in `directory`: releases the reserve if less than
  /// kStartBytes are free, so that a controller that ended on a full disk can start. kYes: it was
  /// released.
  static RoomMade give_up_for_start(const std::string& directory);
  /// Error: there is no space for the reserve of a new store and as much beside it, without which
  /// it would refuse every job. `parent` is the existing parent of the store's directory.
  [[nodiscard]] static Status check_new(const std::string& parent);

  /// Allocates the reserve at once if twice its size is free.
  explicit DiskReserve(const std::string& directory, std::uint64_t bytes = kBytes);

  /// Returns the present state, after allocating the reserve again where possible.
  [[nodiscard]] DiskRoom look();
  /// Releases the reserve. kYes: more space is free than before.
  RoomMade give_up();
  /// The free space on the store's file system.
  [[nodiscard]] std::uint64_t free_bytes() const;
  /// Whether the reserve is allocated.
  [[nodiscard]] bool held() const;

 private:
  void take();

  const std::string directory_;
  const std::string path_;
  const std::uint64_t bytes_;
  mutable std::mutex mutex_;
  bool held_ = false;  ///< guarded by mutex_
};

}  // namespace orrery
