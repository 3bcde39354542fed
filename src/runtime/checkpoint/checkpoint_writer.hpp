// runtime/checkpoint/checkpoint_writer.hpp - writes a rank's part of the state while training goes
// on.
//
// Made once per rank; writes one snapshot at a time on a thread of its own. Called from one thread.
// Training waits only for the copy. A failure (a full disk) leaves nothing behind and the writer
// ready for the next interval; earlier checkpoints are never touched.
#pragma once

#include <future>
#include <optional>
#include <span>
#include <string>

#include "runtime/shards/shard_file.hpp"

namespace orrery {

class CheckpointWriter {
 public:
  /// `directory` holds all checkpoints of the job; it is created when absent.
  explicit CheckpointWriter(std::string directory, WriteMethod method = WriteMethod::kDirect)
      : directory_(std::move(directory)), method_(method) {}
  /// Waits for the write in progress.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Allocates the memory of a snapshot before the first one needs it.
  [[nodiscard]] Status reserve(std::uint64_t payload_bytes);

  /// Copies the pieces and starts to write them. Errors: those of SnapshotBuffer::take, and then
  /// nothing was begun. Errors of prepare_shard() and write_shard() come with the result.
  /// Precondition: idle().
  [[nodiscard]] Status begin(const ShardName& name, std::span<const PieceView> pieces);

  /// Whether nothing is being written and no result waits to be taken.
  [[nodiscard]] bool idle() const { return !writing_.valid(); }

  /// Returns the result of begin(), once, as soon as it is there; nothing before.
  [[nodiscard]] std::optional<Result<WrittenShard>> poll();

  /// Waits for the result of begin() and returns it. Precondition: !idle().
  [[nodiscard]] Result<WrittenShard> wait();

  /// The last snapshot taken. The writing thread reads it, too; it stays until the next begin().
  [[nodiscard]] const SnapshotBuffer& snapshot() const { return snapshot_; }

 private:
  const std::string directory_;
  const WriteMethod method_;
  SnapshotBuffer snapshot_;
  std::future<Result<WrittenShard>> writing_;
};

}  // namespace orrery
