// bench/node_processes.hpp - processes of this machine by what they were started with, so that all
// of a node can be stopped as if its machine had died.
//
// Reads /proc on the caller's thread; a process that ends meanwhile is passed over. Cost: two small
// files a process of the machine.
#pragma once

#include <fmt/format.h>
#include <sys/types.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace orrery {

/// Returns the processes whose command line and environment, taken together, have all these texts.
inline std::vector<pid_t> processes_naming(const std::vector<std::string>& texts) {
  std::vector<pid_t> found;
  std::error_code gone;
  for (const auto& process : std::filesystem::directory_iterator("/proc", gone)) {
    const std::string number = process.path().filename();
    if (number.find_first_not_of("0123456789") != number.npos) continue;
    std::string given;
    for (const char* file : {"cmdline", "environ"}) {
      std::ifstream bytes(process.path() / file, std::ios::binary);
      given.append(std::istreambuf_iterator<char>(bytes), {});
    }
    const auto has = [&](const std::string& text) { return given.find(text) != given.npos; };
    if (std::all_of(texts.begin(), texts.end(), has)) found.push_back(std::stoi(number));
  }
  return found;
}

/// Returns the name of the program that a process runs, of which the kernel keeps 15 bytes.
inline std::string program_of(pid_t process) {
  std::string name;
  std::ifstream file(fmt::format("/proc/{}/comm", process));
  std::getline(file, name);
  return name;
}

/// Returns the process that started another one; 0: the latter is gone.
inline pid_t parent_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string stat;
  std::getline(file, stat);
  // The name of the program, in parentheses, may have spaces: "PID (NAME) STATE PARENT ..".
  const std::size_t name_end = stat.rfind(')');
  return name_end == stat.npos ? 0 : std::atoi(stat.c_str() + name_end + 4);
}

inline void signal_all(const std::vector<pid_t>& processes, int signal) {
  for (const pid_t process : processes) (void)::kill(process, signal);
}

}  // namespace orrery
