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

  /// Below it a start makes room first.
  static constexpr std::uint64_t kStartBytes = std::uint64_t{16} << 20;

  /// Before a start writes anything in `directory`: gives the room up where less than kStartBytes
  /// are free, so that a controller that ended on a full disk can start. kYes: it was given up.
  static RoomMade give_up_for_start(const std::string& directory);
  /// Error: there is no room for the reserve of a new store and as much beside it, without which it
  /// would refuse every job. `parent`: of the store's directory; it is there.
  [[nodiscard]] static Status check_new(const std::string& parent);

  /// Takes the room at once if there is twice as much.
  explicit DiskReserve(const std::string& directory, std::uint64_t bytes = kBytes);

  /// How it stands, after taking the room again where that is possible.
  [[nodiscard]] DiskRoom look();
  /// kYes: there is more room now than before.
  RoomMade give_up();
  /// On the file system of the store.
  [[nodiscard]] std::uint64_t free_bytes() const;
  /// Whether the room is kept.
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
