// bench/process_spend.hpp - what running processes have spent: CPU time and resident memory.
//
// Reads /proc on the caller's thread; a process that has ended counts as nothing. Cost: two small
// files a process, and a third for each of its threads where those below it count, too.
#pragma once

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace orrery {

struct Spent {
  double bytes = 0;        ///< resident
  double cpu_seconds = 0;  ///< user and system
};

inline Spent spent_by(pid_t pid) {
  std::ifstream memory(fmt::format("/proc/{}/statm", pid));
  double size = 0;
  double resident = 0;
  memory >> size >> resident;
  std::ifstream text(fmt::format("/proc/{}/stat", pid));
  std::string stat;
  std::getline(text, stat);
  // The name of the program, in parentheses, may have spaces: "PID (NAME) STATE PARENT ..".
  const std::size_t name_end = stat.rfind(')');
  if (name_end == stat.npos) return {};
  std::size_t at = name_end + 1;
  for (int field = 3; field < 14 && at != stat.npos; ++field) at = stat.find(' ', at + 1);
  if (at == stat.npos) return {};
  unsigned long long user = 0;
  unsigned long long system = 0;
  (void)std::sscanf(stat.c_str() + at, "%llu %llu", &user, &system);
  return {resident * static_cast<double>(::sysconf(_SC_PAGESIZE)),
          static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK))};
}

/// What a process and all that descend from it have spent.
inline Spent spent_by_tree(pid_t pid) {
  Spent sum = spent_by(pid);
  std::error_code gone;
  const std::string threads = fmt::format("/proc/{}/task", pid);
  for (const auto& thread : std::filesystem::directory_iterator(threads, gone)) {
    std::ifstream children(thread.path() / "children");
    for (pid_t child = 0; children >> child;) {
      const Spent below = spent_by_tree(child);
      sum.bytes += below.bytes;
      sum.cpu_seconds += below.cpu_seconds;
    }
  }
  return sum;
}

}  // namespace orrery
