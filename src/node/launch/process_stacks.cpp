#include "node/launch/process_stacks.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include "node/machine/kernel_file.hpp"

namespace orrery {
namespace {

constexpr std::size_t kThreadsMax = 4096;

std::string text_of(const std::string& path) {
  std::string text = kernel_file(path);
  while (text.ends_with('\n') || text.ends_with('\0')) text.pop_back();
  return text;
}

/// Returns the numeric names in a directory of /proc, ascending.
std::vector<pid_t> numbers_in(const std::string& directory) {
  std::vector<pid_t> numbers;
  std::error_code failed;
  for (std::filesystem::directory_iterator at(directory, failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string name = at->path().filename();
    pid_t number = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
    if (read.ec == std::errc()) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

/// Returns a thread's state, such as "D (disk sleep)".
std::string state_of(const std::string& thread) {
  constexpr std::string_view kKey = "\nState:\t";
  const std::string status = text_of(thread + "/status");
  const std::size_t at = status.find(kKey);
  if (at == status.npos) return "gone";
  const std::size_t from = at + kKey.size();
  return status.substr(from, status.find('\n', from) - from);
}

std::string thread_text(pid_t number, const std::string& path) {
  std::string text =
      fmt::format("  thread {} {}: {}", number, text_of(path + "/comm"), state_of(path));
  const std::string waits = text_of(path + "/wchan");
  if (!waits.empty() && waits != "0") text += " in " + waits;
  if (const std::string call = text_of(path + "/syscall"); !call.empty()) {
    text += ", system call " + call;
  }
  text += '\n';
  if (const std::string stack = text_of(path + "/stack"); !stack.empty()) text += stack + '\n';
  return text;
}

/// Returns the processes of a session and all their descendants: tasks of a script have sessions of
/// their own, and a process whose parent has ended is found by its session alone.
std::vector<pid_t> processes_of(pid_t leader) {
  std::vector<pid_t> found;
  std::set<pid_t> known;
  for (const pid_t process : numbers_in("/proc")) {
    if (::getsid(process) == leader && known.insert(process).second) found.push_back(process);
  }
  for (std::size_t at = 0; at < found.size() && found.size() <= kThreadsMax; ++at) {
    const std::string tasks = fmt::format("/proc/{}/task", found[at]);
    for (const pid_t thread : numbers_in(tasks)) {
      std::ifstream children(fmt::format("{}/{}/children", tasks, thread));
      for (pid_t child = 0; children >> child;) {
        if (known.insert(child).second) found.push_back(child);
      }
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::string stacks_under(pid_t leader) {
  std::string text;
  std::size_t threads = 0;
  for (const pid_t process : processes_of(leader)) {
    const std::string path = fmt::format("/proc/{}", process);
    // Arguments are left out: they are in the process's memory, and a hanging one may block the
    // reader.
    text += fmt::format("process {}: {}\n", process, text_of(path + "/comm"));
    for (const pid_t thread : numbers_in(path + "/task")) {
      if (++threads > kThreadsMax) return text + "and more\n";
      text += thread_text(thread, fmt::format("{}/task/{}", path, thread));
    }
  }
  return text;
}

}  // namespace orrery
