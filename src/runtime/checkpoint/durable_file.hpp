// runtime/checkpoint/durable_file.hpp - a new file written once, past the page cache, at the speed
// of the disk, and durable at its end.
//
// Blocks go out by io_uring with O_DIRECT, four at a time, from the caller's memory; where the
// system refuses either (a file system without O_DIRECT, a sandbox without io_uring), by ordinary
// writes, and method() says so. The space is allocated first, so a full disk is noticed before a
// byte is written. One thread at a time. A file that is not finished is removed. Cost beside the
// disk's: one system call per block.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/system/file_descriptor.hpp"

struct io_uring;

namespace orrery {

enum class WriteMethod : std::uint8_t {
  kDirect,    ///< io_uring, O_DIRECT
  kBuffered,  ///< pwrite through the page cache
};

class DurableFile {
 public:
  static constexpr unsigned kDepth = 4;

  struct Options {
    std::string path;
    std::uint64_t bytes = 0;  ///< the whole file, a multiple of PrefaultedMemory::kAlignment
    WriteMethod method = WriteMethod::kDirect;  ///< the best to try
  };

  /// Errors name the path and the system's reason: the file exists, the disk is full.
  [[nodiscard]] static Result<DurableFile> create(Options options);

  DurableFile(DurableFile&& other) noexcept;
  DurableFile& operator=(DurableFile&&) = delete;
  ~DurableFile();

  /// Starts to write a block, after waiting for a free one of the kDepth places. The block must not
  /// change until finish() returns. Precondition: offset, size and address are multiples of
  /// PrefaultedMemory::kAlignment, and it lies within the file. After an error only the destructor
  /// may be called.
  [[nodiscard]] Status write(std::uint64_t offset, std::string_view block);

  /// Returns when the file and its name would survive a loss of power.
  [[nodiscard]] Status finish();

  /// The method used so far; it is final after finish().
  [[nodiscard]] WriteMethod method() const { return method_; }

 private:
  struct RingEnd {
    void operator()(io_uring* ring) const;
  };
  struct Flight {
    std::uint64_t offset = 0;
    std::string_view block;  ///< empty: the place is free
  };

  DurableFile(std::string path, FileDescriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  void start_ring();
  /// Writes through the page cache from here on.
  [[nodiscard]] Status give_up_direct();
  [[nodiscard]] Status take_room(std::uint64_t bytes) const;
  [[nodiscard]] Status await_one();
  [[nodiscard]] Status write_plainly(std::uint64_t offset, std::string_view block);
  [[nodiscard]] tl::unexpected<Error> failed_to(std::string_view what, int cause) const;

  std::string path_;  ///< empty once the file is finished, so that it is not removed
  FileDescriptor fd_;
  std::unique_ptr<io_uring, RingEnd> ring_;  ///< none: plain writes
  std::array<Flight, kDepth> flights_;
  unsigned flying_ = 0;
  WriteMethod method_ = WriteMethod::kBuffered;
};

/// Makes the names in a directory durable.
[[nodiscard]] Status sync_names(const std::string& directory);

}  // namespace orrery
