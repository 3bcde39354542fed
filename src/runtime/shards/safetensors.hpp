// runtime/shards/safetensors.hpp - reads and writes tensors in the format of
// huggingface/safetensors.
//
// A file is 8 bytes with the length of the header (little endian), the header (JSON: name -> dtype,
// shape, data_offsets) and the data, without hole or overlap; see
// github.com/huggingface/safetensors, "Format". SafetensorsFile is made for one file and used by
// one thread. Its data has no checksum. Headers of more than Document::kSizeMax bytes are refused.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/file_descriptor.hpp"
#include "runtime/checkpoint/checkpoint_reader.hpp"

namespace orrery {

struct SafetensorsEntry {
  TensorInfo info;
  std::uint64_t begin = 0;  ///< byte offset into the data
};

/// Parses the header of a file with `data_bytes` of data. Errors name file, line and column, and
/// what was expected. The entries are in the order of their data. O(bytes log bytes).
[[nodiscard]] Result<std::vector<SafetensorsEntry>> parse_safetensors_header(
    std::string_view header, std::uint64_t data_bytes, const std::string& file);

/// The header of a file whose tensors follow each other in a given order, and the size of their
/// data.
struct SafetensorsHeader {
  std::string bytes;  ///< the length, then the header
  std::uint64_t data_bytes = 0;
};
[[nodiscard]] SafetensorsHeader safetensors_header(
    std::span<const TensorInfo> tensors,
    std::span<const std::pair<std::string, std::string>> metadata);

class SafetensorsFile {
 public:
  [[nodiscard]] static Result<SafetensorsFile> open(const std::string& path);

  [[nodiscard]] const std::vector<SafetensorsEntry>& tensors() const { return entries_; }

  /// Reads the elements of `range` into `out`, as CheckpointReader::read does.
  [[nodiscard]] Status read(const TensorRange& range, std::span<std::byte> out);

 private:
  SafetensorsFile(std::string path, FileDescriptor fd)
      : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  FileDescriptor fd_;
  std::uint64_t data_begin_ = 0;
  std::vector<SafetensorsEntry> entries_;
};

/// Writes all tensors of a checkpoint, whole and sorted by name, with its job and step as metadata.
/// Replaces `path` atomically. Errors: those of the reader and of the disk; `path` is unchanged
/// then.
[[nodiscard]] Status export_safetensors(CheckpointReader& reader, const std::string& path);

}  // namespace orrery
