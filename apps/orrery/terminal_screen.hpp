// apps/orrery/terminal_screen.hpp - the whole terminal, redrawn frame by frame, until a key or a
// signal ends it.
//
// Made before any other thread, as it blocks the signals that would leave the terminal as it is
// now; its end, however it comes, gives the terminal back as it was. One a process.
#pragma once

#include <termios.h>

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/file_descriptor.hpp"
#include "base/time.hpp"

namespace orrery {

class TerminalScreen {
 public:
  /// Errors: standard input and output are no terminal.
  [[nodiscard]] static Result<TerminalScreen> open();
  TerminalScreen(TerminalScreen&& other) noexcept;
  TerminalScreen& operator=(TerminalScreen&&) = delete;
  ~TerminalScreen();

  /// Shows as many lines of the text as there is room for, each cut at the edge.
  void draw(const std::string& text) const;

  /// False once the user or a signal wants it to end; true after `time`, or at once when a key was
  /// pressed or the terminal has another size.
  [[nodiscard]] bool wait(Duration time) const;

 private:
  TerminalScreen() = default;

  termios before_{};
  FileDescriptor signals_;
  bool open_ = false;
};

/// The first `columns` code points of a line, the last one ">" where there are more. Colours do not
/// count and are all kept.
[[nodiscard]] std::string clipped(std::string_view line, std::size_t columns);

}  // namespace orrery
