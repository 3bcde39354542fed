// runtime/checkpoint/checkpoint_reader.hpp - any range of any tensor of a checkpoint, whoever saved
// it in whatever pieces.
//
// Another world size or layout is nothing but other ranges. What is given has been checked against
// its checksum. Made by each rank for itself, used by one thread; moves. Holds an open file and a
// block of 1 MiB for each shard that was asked. Cost: the blocks that hold the range, read once
// when ranges are asked for in the order of the pieces.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/checkpoint/checkpoint_directory.hpp"

namespace orrery {

class CheckpointReader {
 public:
  /// A committed checkpoint of `directory`. Error: as of manifest_text(). Opens no shard yet.
  [[nodiscard]] static Result<CheckpointReader> open(const std::string& directory,
                                                     Manifest manifest);

  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  /// By name.
  [[nodiscard]] const std::vector<PlacedTensor>& tensors() const { return tensors_; }

  /// The elements of `range`, little endian, into `out`, which has just their bytes. Errors: a
  /// tensor that is not there (with the nearest), of another type, a range beyond its end; a shard
  /// that is not what was written, with file, place and tensor.
  [[nodiscard]] Status read(const TensorRange& range, std::span<std::byte> out);

  /// Reads and checks the whole of one of manifest().shards. Ranks may share the shards out among
  /// themselves to check all.
  [[nodiscard]] Status verify(std::size_t shard);

 private:
  CheckpointReader() = default;
  [[nodiscard]] Result<const PlacedTensor*> find(const TensorRange& range) const;
  [[nodiscard]] Result<ShardReader*> shard(std::size_t shard);

  std::string step_directory_;
  Manifest manifest_;
  std::vector<PlacedTensor> tensors_;
  std::vector<std::optional<ShardReader>> shards_;  ///< those that were asked
};

struct FoundCheckpoint {
  std::optional<CheckpointReader> reader;  ///< none: there is no good one
  std::vector<std::string> passed_over;    ///< why newer ones are no good
};

/// The newest checkpoint of which every byte is as it was written. Error: the directory cannot be
/// read. Cost: reading one checkpoint, or more where there are bad ones.
[[nodiscard]] Result<FoundCheckpoint> open_newest_good(const std::string& directory);

}  // namespace orrery
