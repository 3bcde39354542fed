// node/launch/output_copy.hpp - passes the output of a process on to a process that copies it into
// a file, at the pace of the file.
//
// Owned by the log of a rank, used on its loop; never blocks it. The log reads no more while a copy
// is behind, so that no more waits here than was read at once. Without a reader all bytes are
// dropped. Precondition: SIGPIPE is ignored.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/system/file_descriptor.hpp"
#include "base/system/real_loop.hpp"

namespace orrery {

class OutputCopy final : public ReadyHandler {
 public:
  /// Precondition: `pipe` is non-blocking. `caught_up` is called when it was behind and no longer
  /// is.
  OutputCopy(RealLoop& loop, FileDescriptor pipe, std::function<void()> caught_up);
  OutputCopy(const OutputCopy&) = delete;
  OutputCopy& operator=(const OutputCopy&) = delete;
  ~OutputCopy() override;

  void add(std::string_view bytes);
  /// Whether the pipe has yet to take bytes that were added.
  [[nodiscard]] bool behind() const { return !waiting_.empty(); }
  /// Closes the pipe once it has taken everything.
  void end();

  void on_ready(std::uint32_t events) override;

 private:
  void flush();
  void close();

  RealLoop& loop_;
  FileDescriptor pipe_;
  std::function<void()> caught_up_;
  std::string waiting_;
  WatchId watch_ = WatchId::kNone;
  bool ends_ = false;
};

}  // namespace orrery
