// apps/orrery/terminal_screen.hpp - the whole terminal, redrawn frame by frame, until a key or a
// signal ends it.
//
// Made before any other thread, because it blocks the signals that would leave the terminal
// changed; its destructor, however it is reached, restores the terminal. One per process.
#pragma once

#include <termios.h>

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/system/file_descriptor.hpp"
#include "base/time.hpp"

namespace orrery {

class TerminalScreen {
 public:
  /// Errors: standard input or output is not a terminal.
  [[nodiscard]] static Result<TerminalScreen> open();
  TerminalScreen(TerminalScreen&& other) noexcept;
  TerminalScreen& operator=(TerminalScreen&&) = delete;
  ~TerminalScreen();

  /// Shows as many lines of the text as fit, each cut at the edge.
  void draw(const std::string& text) const;

  /// Returns false once the user or a signal asks to end; true after `time`, or at once when a key
  /// was pressed or the size of the terminal changed.
  [[nodiscard]] bool wait(Duration time) const;

 private:
  TerminalScreen() = default;

  termios before_{};
  FileDescriptor signals_;
  bool open_ = false;
};

/// Returns the first `columns` code points of a line, the last one ">" where there are more.
/// Colours do not count and are all kept.
[[nodiscard]] std::string clipped(std::string_view line, std::size_t columns);

}  // namespace orrery
