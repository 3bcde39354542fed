// store/disk_reserve.hpp - room on the disk that is kept back, so that what must be recorded still
// is when the disk is full.
//
// A file of its own beside the log, DIR/ballast, whose blocks are taken but hold nothing. With less
// than as much free beside it nothing new is taken on (DiskRoom::kLow); when a commit finds no room
// at all it is given up (GroupCommitOptions::make_room), and cancels, drains and ends go on. Taken
// again when there is room for twice its size. Made by the owner of the store; any thread may call.
// Cost: a system call or two.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "store/group_commit.hpp"

namespace orrery {

enum class DiskRoom : std::uint8_t {
  kEnough,
  kLow,  ///< submissions are refused
};

class DiskReserve {
 public:
  static constexpr std::uint64_t kBytes = std::uint64_t{64} << 20;

  /// Takes the room at once if there is twice as much.
  explicit DiskReserve(const std::string& directory, std::uint64_t bytes = kBytes);

  /// How it stands, after taking the room again where that is possible.
  [[nodiscard]] DiskRoom look();
  /// kYes: there is more room now than before.
  RoomMade give_up();
  /// Whether the room is kept.
  [[nodiscard]] bool held() const;

 private:
  void take();
  [[nodiscard]] std::uint64_t free_bytes() const;

  const std::string directory_;
  const std::string path_;
  const std::uint64_t bytes_;
  mutable std::mutex mutex_;
  bool held_ = false;  ///< guarded by mutex_
};

}  // namespace orrery
