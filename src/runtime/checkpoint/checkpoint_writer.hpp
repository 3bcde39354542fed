// runtime/checkpoint/checkpoint_writer.hpp - writes a rank's part of the state while training goes
// on.
//
// Made once a rank; one snapshot at a time, written by a thread of its own. The caller is one
// thread. Training waits for the copy alone. A failure (a full disk) leaves nothing behind and the
// writer ready for the next interval; earlier checkpoints are never touched.
#pragma once

#include <future>
#include <optional>
#include <span>
#include <string>

#include "runtime/checkpoint/shard_file.hpp"

namespace orrery {

class CheckpointWriter {
 public:
  /// `directory`: of all checkpoints of the job; made when absent.
  explicit CheckpointWriter(std::string directory, WriteMethod method = WriteMethod::kDirect)
      : directory_(std::move(directory)), method_(method) {}
  /// Waits for what is being written.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Gets the memory of a snapshot before the first one needs it.
  [[nodiscard]] Status reserve(std::uint64_t payload_bytes);

  /// Copies the pieces and starts to write them. Errors: as of SnapshotBuffer::take; nothing was
  /// begun then. Those of prepare_shard() and write_shard() come with the result. Precondition:
  /// idle().
  [[nodiscard]] Status begin(const ShardName& name, std::span<const PieceView> pieces);

  /// Whether nothing is being written and no result waits to be taken.
  [[nodiscard]] bool idle() const { return !writing_.valid(); }

  /// The result of what was begun, once, when it is there; nothing before.
  [[nodiscard]] std::optional<Result<WrittenShard>> poll();

  /// The same, waiting for it. Precondition: !idle().
  [[nodiscard]] Result<WrittenShard> wait();

  /// What was taken last. Also read by the writing thread; stays until the next
  /// begin().
  [[nodiscard]] const SnapshotBuffer& snapshot() const { return snapshot_; }

 private:
  const std::string directory_;
  const WriteMethod method_;
  SnapshotBuffer snapshot_;
  std::future<Result<WrittenShard>> writing_;
};

}  // namespace orrery
