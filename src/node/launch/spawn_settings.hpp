// node/launch/spawn_settings.hpp - the initial state of a program that the agent starts itself: a
// session of its own, no signal blocked, no open descriptor but its input, output and errors.
//
// A value for one start or several.
#pragma once

#include <spawn.h>
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace orrery {

class SpawnSettings {
 public:
  /// Output and errors go to the descriptor `output`, which stays the caller's.
  explicit SpawnSettings(int output);
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings();

  /// Sends errors to this file instead, which begins empty.
  void send_errors_to(const std::string& file);

  /// Starts command[0], searched in PATH, with the caller's environment and `variables`. Returns 0
  /// or errno.
  [[nodiscard]] int run(
      pid_t& child, std::vector<std::string> command,
      const std::vector<std::pair<std::string, std::string>>& variables = {}) const;

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace orrery
