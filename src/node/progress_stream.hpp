// node/progress_stream.hpp - the named pipe into which ranks report their progress, as JSON lines.
//
//   {"step": 120, "loss": 2.31, "tokens": 983040, "checkpoint": "ckpt/120", "epoch": 2, "rank": 0,
//    "compute": 0.41, "quiet": 600, "wrong": "shard 3 of step 120 is not what 3 ranks make of it"}
//
//   {"replica": {"phase": "ready", "endpoint": "10.0.0.7:41234", "pid": 812, "slots": 8,
//    "kv_tokens": 500000, "kv_events": "10.0.0.7:41235", "prefill_tokens_s": 2400,
//    "step_s": 0.004, "step_full_s": 0.011}}
//
// Every key may be absent. `replica` is the report of a replica of a service
// (serving/replica.hpp); of its endpoints the ports count, as the controller knows the address of
// the node. `checkpoint` means that all work up to `step` can be restored; `epoch` and `rank` that
// a process goes on in a newer membership; `compute` is how many seconds the step took that rank
// itself, without waiting for others; `quiet` means that from now on so many seconds without a line
// are no hang; `wrong` that this machine computes different results from others. Owned by the
// keeper, used on its loop. Malformed lines are counted and have no effect: a program must not fail
// for what it reports. Cost: O(bytes).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/system/file_descriptor.hpp"
#include "base/system/real_loop.hpp"
#include "serving/replica.hpp"

namespace orrery {

struct ProgressLine {
  std::optional<std::uint64_t> step;
  std::optional<double> loss;
  std::optional<std::uint64_t> tokens;
  std::optional<std::string> checkpoint;
  std::optional<std::uint32_t> epoch;
  std::optional<std::uint32_t> rank;
  std::optional<double> compute;  ///< seconds
  std::optional<double> quiet;    ///< seconds
  std::optional<std::string> wrong;
  std::optional<ReplicaReport> replica;
};

/// Cuts a stream into lines and reads them.
class ProgressParser {
 public:
  /// Longer lines are bad; a single write to a pipe keeps so many bytes together.
  static constexpr std::size_t kLineBytesMax = 4096;

  /// Passes each good line to `take`.
  void feed(std::string_view bytes, const std::function<void(const ProgressLine&)>& take);
  [[nodiscard]] std::uint64_t bad_lines() const { return bad_; }

 private:
  std::string line_;  ///< the line so far; one byte above the limit when it is too long
  std::uint64_t bad_ = 0;
};

class ProgressStream final : public ReadyHandler {
 public:
  using Take = std::function<void(const ProgressLine&)>;

  /// Makes the pipe anew. `loop` outlives the stream.
  [[nodiscard]] static Result<std::unique_ptr<ProgressStream>> open(RealLoop& loop,
                                                                    const std::string& path,
                                                                    Take take);
  ProgressStream(RealLoop& loop, FileDescriptor pipe, Take take);
  ProgressStream(const ProgressStream&) = delete;
  ProgressStream& operator=(const ProgressStream&) = delete;
  ~ProgressStream() override;

  /// Reads all available lines.
  void drain();
  [[nodiscard]] std::uint64_t bad_lines() const { return parser_.bad_lines(); }
  void on_ready(std::uint32_t events) override;

 private:
  RealLoop& loop_;
  FileDescriptor pipe_;
  Take take_;
  ProgressParser parser_;
  WatchId watch_ = WatchId::kNone;
};

}  // namespace orrery
