#include "runtime/checkpoint/checkpoint_writer.hpp"

#include <chrono>
#include <system_error>

#include "base/assert.hpp"
#include "runtime/checkpoint/checkpoint_directory.hpp"

namespace orrery {

CheckpointWriter::~CheckpointWriter() {
  if (writing_.valid()) writing_.wait();
}

Status CheckpointWriter::reserve(std::uint64_t payload_bytes) {
  ORRERY_ASSERT(idle(), "the memory is being read");
  return snapshot_.reserve(payload_bytes);
}

Status CheckpointWriter::begin(const ShardName& name, std::span<const PieceView> pieces) {
  ORRERY_ASSERT(idle(), "one snapshot at a time");
  if (Status taken = snapshot_.take(name, pieces); !taken) return taken;
  const auto write = [this]() -> Result<WrittenShard> {
    Result<std::string> step = prepare_shard(directory_, snapshot_.header().name);
    if (!step) return forward_error(step);
    return write_shard(*step, snapshot_, method_);
  };
  try {
    writing_ = std::async(std::launch::async, write);
  } catch (const std::system_error& none) {
    return environment_error(
        fmt::format("cannot start the writer of a checkpoint: {}", none.what()));
  }
  return {};
}

std::optional<Result<WrittenShard>> CheckpointWriter::poll() {
  if (!writing_.valid()) return std::nullopt;
  if (writing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return std::nullopt;
  return writing_.get();
}

Result<WrittenShard> CheckpointWriter::wait() {
  ORRERY_ASSERT(!idle(), "something was begun");
  return writing_.get();
}

}  // namespace orrery
