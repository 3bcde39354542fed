// bench/bench_process.hpp - a child process of a benchmark, which exchanges lines with it over
// standard input and output.
//
// Built and used on the benchmark's thread. The child is killed with this object, or when the
// benchmark ends in any way; the benchmark ends if the child does.
#pragma once

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace orrery {

[[noreturn]] inline void give_up(const std::string& why) {
  fmt::print(stderr, "benchmark: {}\n", why);
  std::exit(1);
}

inline void say(const std::string& line) {
  fmt::print("{}\n", line);
  (void)std::fflush(stdout);
}

class BenchProcess {
 public:
  explicit BenchProcess(std::vector<std::string> words) {
    // The process is killed when this program ends, for whatever reason.
    words.insert(words.begin(), {"setpriv", "--pdeathsig", "TERM"});
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    if (::pipe(in.data()) != 0 || ::pipe(out.data()) != 0) give_up("no pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    for (const int descriptor : {in[1], out[0]}) {
      posix_spawn_file_actions_addclose(&actions, descriptor);
    }
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (::posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ) != 0) {
      give_up("cannot start " + words[3]);
    }
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    in_ = ::fdopen(in[1], "w");
    out_ = ::fdopen(out[0], "r");
  }
  ~BenchProcess() {
    (void)::kill(pid_, SIGTERM);
    (void)std::fclose(in_);
    (void)std::fclose(out_);
    (void)::waitpid(pid_, nullptr, 0);
  }
  BenchProcess(const BenchProcess&) = delete;
  BenchProcess& operator=(const BenchProcess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::string line() const {
    std::array<char, 256> text{};
    if (std::fgets(text.data(), text.size(), out_) == nullptr) give_up("a process ended");
    return text.data();
  }
  [[nodiscard]] std::string ask(const char* question) const {
    (void)std::fputs(question, in_);
    (void)std::fflush(in_);
    return line();
  }

 private:
  pid_t pid_ = 0;
  std::FILE* in_ = nullptr;
  std::FILE* out_ = nullptr;
};

}  // namespace orrery
