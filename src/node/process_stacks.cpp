#include "node/process_stacks.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <vector>

namespace orrery {
namespace {

constexpr std::size_t kThreadsMax = 4096;

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  while (text.ends_with('\n') || text.ends_with('\0')) text.pop_back();
  return text;
}

/// The numbers that are names in a directory of /proc, ascending.
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

/// "D (disk sleep)".
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

}  // namespace

std::string stacks_of_session(pid_t leader) {
  std::string text;
  std::size_t threads = 0;
  for (const pid_t process : numbers_in("/proc")) {
    if (::getsid(process) != leader) continue;
    const std::string path = fmt::format("/proc/{}", process);
    std::string command = text_of(path + "/cmdline");
    std::replace(command.begin(), command.end(), '\0', ' ');
    text += fmt::format("process {}: {}\n", process, command);
    for (const pid_t thread : numbers_in(path + "/task")) {
      if (++threads > kThreadsMax) return text + "and more\n";
      text += thread_text(thread, fmt::format("{}/task/{}", path, thread));
    }
  }
  return text;
}

}  // namespace orrery
