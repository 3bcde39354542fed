// apps/replica_program.hpp - what the programs that run as replicas of a service share: the launch
// variables, the words of an error, and the life from the start of the loop to the last request.
//
// Included by the main.cpp of such a program, used on its main thread.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/system/daemon_signals.hpp"
#include "base/system/real_env.hpp"
#include "base/text/terminal_text.hpp"

namespace orrery {

/// Returns a variable of the launch contract; `absent` where it is not set or empty.
inline std::string launch_variable(const char* name, std::string absent = {}) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::move(absent) : value;
}

/// Sets a variable for the programs that this one starts, unless the launch has set it.
inline void give_variable(const std::string& name, const std::string& value) {
  ::setenv(name.c_str(), value.c_str(), 0);
}

/// Prints an error on standard error; returns the exit status: 2 for wrong input, else 1.
inline int complain(std::string_view program, const Error& error) {
  fmt::print(stderr, "{}: {}\n", program, terminal_text(error.text(), Newlines::kKept));
  return error.kind == ErrorKind::kInput ? 2 : 1;
}

/// Prints a line for people at once.
inline void announce_line(const std::string& line) {
  fmt::print("{}\n", terminal_text(line, Newlines::kKept));
  std::fflush(stdout);
}

/// Runs the loop until the replica stops it; returns the exit status. SIGTERM and SIGINT let the
/// requests of the replica end by `drain`; a second signal does not wait for them: `stop`.
template <class Replica>
int run_replica(std::string_view program, RealEnv& real, Replica& replica,
                const std::function<void()>& stop) {
  bool draining = false;
  const auto ending = watch_signals(real.loop(), DaemonSignals::kEnd, [&] {
    if (std::exchange(draining, true)) return stop();
    replica.drain();
  });
  if (!ending) return complain(program, ending.error());
  real.run();
  const std::optional<Error>& failure = replica.failure();
  return failure ? complain(program, *failure) : 0;
}

}  // namespace orrery
