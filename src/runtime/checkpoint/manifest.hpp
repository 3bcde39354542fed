// runtime/checkpoint/manifest.hpp - the file that makes shards a checkpoint.
//
// JSON, {"checksum": "...", "manifest": {...}}: the checksum is of the text of the manifest, which
// names every shard with the checksum of its header, so one flipped bit anywhere is found. Values.
// Invariant of a manifest that was read or written: the pieces of the shards cover each element of
// each tensor once. Cost: O(pieces log pieces).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/shards/shard_file.hpp"

namespace orrery {

struct Manifest {
  CheckpointId id;
  std::uint32_t world = 1;  ///< number of ranks of the job when it was saved
  std::vector<ShardRecord> shards;
  std::string extra = "{}";  ///< JSON of the trainer: sample position, configuration, random states

  friend bool operator==(const Manifest&, const Manifest&) = default;
};

/// Returns the text of the file. Errors: a missing shard (elements of a tensor that no shard or two
/// shards have), invalid names, an `extra` that is not JSON, more than Document::kSizeMax bytes.
[[nodiscard]] Result<std::string> manifest_text(const Manifest& manifest);

/// Errors are those of manifest_text(); they name the file, and the line and column where there is
/// one.
[[nodiscard]] Result<Manifest> parse_manifest(std::string_view text, const std::string& file);

/// Returns a record as JSON, to be sent from the rank that wrote the shard to the rank that
/// commits.
[[nodiscard]] std::string shard_record_text(const ShardRecord& record);
[[nodiscard]] Result<ShardRecord> parse_shard_record(std::string_view text,
                                                     const std::string& source);

/// Where some elements of a tensor are stored.
struct TensorPart {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::size_t shard = 0;     ///< index into Manifest::shards
  std::uint64_t offset = 0;  ///< bytes into its payload
};

struct PlacedTensor {
  TensorInfo info;
  std::vector<TensorPart> parts;  ///< sorted by begin, without gap or overlap
};

/// Returns the tensors of a manifest, sorted by name. Errors: those of manifest_text().
[[nodiscard]] Result<std::vector<PlacedTensor>> placed_tensors(const Manifest& manifest);

}  // namespace orrery
