#include "node/launch/spawn_settings.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>

namespace orrery {

SpawnSettings::SpawnSettings(int output) {
  ::posix_spawn_file_actions_init(&actions_);
  ::posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions_, output, 1);
  ::posix_spawn_file_actions_adddup2(&actions_, output, 2);
  // Descriptors that a library has opened in the agent would stay open as long as the program runs.
  ::posix_spawn_file_actions_addclosefrom_np(&actions_, 3);
  ::posix_spawnattr_init(&attributes_);
  // With its own session, signals of the agent's terminal do not reach it.
  (void)::posix_spawnattr_setflags(
      &attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  sigset_t signals;
  sigemptyset(&signals);
  (void)::posix_spawnattr_setsigmask(&attributes_, &signals);
  sigaddset(&signals, SIGPIPE);
  (void)::posix_spawnattr_setsigdefault(&attributes_, &signals);
}

SpawnSettings::~SpawnSettings() {
  ::posix_spawn_file_actions_destroy(&actions_);
  ::posix_spawnattr_destroy(&attributes_);
}

void SpawnSettings::send_errors_to(const std::string& file) {
  ::posix_spawn_file_actions_addopen(&actions_, 2, file.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
}

int SpawnSettings::run(pid_t& child, std::vector<std::string> command,
                       const std::vector<std::pair<std::string, std::string>>& variables) const {
  std::vector<std::string> texts;
  texts.reserve(variables.size());
  for (const auto& [name, value] : variables) texts.push_back(fmt::format("{}={}", name, value));
  std::vector<char*> environment;
  // The given variables come first: programs take the first of two of one name.
  for (std::string& text : texts) environment.push_back(text.data());
  for (char** own = environ; *own != nullptr; ++own) environment.push_back(*own);
  environment.push_back(nullptr);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  return ::posix_spawnp(&child, arguments[0], &actions_, &attributes_, arguments.data(),
                        environment.data());
}

}  // namespace orrery
