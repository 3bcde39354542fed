// runtime/checkpoint/checkpoint_reader.hpp - reads any range of any tensor of a checkpoint,
// whichever ranks saved it and in whatever pieces.
//
// Restoring under another world size or layout only means reading other ranges. All data returned
// has been checked against its checksum. Each rank makes its own reader; used by one thread;
// movable. Holds an open file and a block of 1 MiB for each shard that was read. Cost: the blocks
// that hold the range, each read once when ranges are read in the order of the pieces.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/checkpoint/checkpoint_directory.hpp"

namespace orrery {

class CheckpointReader {
 public:
  /// Opens a committed checkpoint of `directory`. Errors: those of manifest_text(). Opens no shard
  /// yet.
  [[nodiscard]] static Result<CheckpointReader> open(const std::string& directory,
                                                     Manifest manifest);

  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  /// All tensors, sorted by name.
  [[nodiscard]] const std::vector<PlacedTensor>& tensors() const { return tensors_; }

  /// Reads the elements of `range`, little endian, into `out`, which has exactly their size.
  /// Errors: a missing tensor (the nearest name is given), another type, a range beyond its end; a
  /// shard that differs from what was written, with file, place and tensor.
  [[nodiscard]] Status read(const TensorRange& range, std::span<std::byte> out);

  /// Reads and checks the whole of one of manifest().shards. Ranks may divide the shards among
  /// themselves to check all of them.
  [[nodiscard]] Status verify(std::size_t shard);

 private:
  CheckpointReader() = default;
  [[nodiscard]] Result<const PlacedTensor*> find(const TensorRange& range) const;
  [[nodiscard]] Result<ShardReader*> shard(std::size_t shard);

  std::string step_directory_;
  Manifest manifest_;
  std::vector<PlacedTensor> tensors_;
  std::vector<std::optional<ShardReader>> shards_;  ///< opened on first use
};

struct FoundCheckpoint {
  std::optional<CheckpointReader> reader;  ///< empty: there is no good one
  std::vector<std::string> passed_over;    ///< why newer ones were rejected
};

/// The newest checkpoint of which every byte is as it was written. Error: the directory cannot be
/// read. Cost: reading one checkpoint, or more where there are bad ones.
[[nodiscard]] Result<FoundCheckpoint> open_newest_good(const std::string& directory);

}  // namespace orrery
