// apps/orrery/local_terminal.hpp - the terminal that a user sits at while a command runs elsewhere,
// and the signals that reach this program meanwhile.
//
// Made by a verb, one a process. Signals are noted and make descriptor() readable; destructors
// restore the terminal and the handling of signals.
#pragma once

#include <termios.h>

#include <array>
#include <csignal>
#include <optional>

#include "base/error.hpp"
#include "base/system/file_descriptor.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {

/// Notes SIGINT, SIGTERM, SIGHUP and SIGQUIT, which would end the program, and SIGWINCH.
class NotedSignals {
 public:
  NotedSignals();
  NotedSignals(const NotedSignals&) = delete;
  NotedSignals& operator=(const NotedSignals&) = delete;
  ~NotedSignals();

  /// Readable when a signal has come since the last call of clear().
  [[nodiscard]] int descriptor() const { return reading_.get(); }
  /// Makes descriptor() wait for the next signal. A loop calls it before ending() and resized():
  /// a signal that comes after it wakes the loop again.
  void clear();
  /// Returns the signal that asks the program to end; 0: none has come.
  [[nodiscard]] static int ending();
  /// Whether the size of the terminal has changed since the last call.
  [[nodiscard]] static bool resized();

 private:
  static constexpr std::array kNoted{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};

  FileDescriptor reading_;
  std::array<struct sigaction, kNoted.size()> before_{};
};

/// Puts the terminal into raw mode: each key is read as it is typed, and none is echoed.
class RawTerminal {
 public:
  /// Errors (kInput): standard input or output is not a terminal.
  [[nodiscard]] static Result<RawTerminal> open();
  RawTerminal(RawTerminal&& other) noexcept;
  RawTerminal& operator=(RawTerminal&&) = delete;
  ~RawTerminal();

  [[nodiscard]] static v1::TerminalSize size();

 private:
  RawTerminal() = default;
  std::optional<termios> before_;
};

}  // namespace orrery
