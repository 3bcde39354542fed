// inference/engine/step_log.hpp - a line of CSV for each step of an engine, to fit cost models to.
//
//   time,prefill_tokens,prefill_pairs,decode_sequences,decode_context,seconds
//
// `time` is in seconds since 1970, at the end of the step; `seconds` count from the end of the step
// before, or from the request that ended idleness. Owned and used by the engine's thread. A
// failed write ends the log, not the serving. Cost: one write a step.
#pragma once

#include <memory>
#include <string>

#include "base/env.hpp"
#include "inference/engine/inference_engine.hpp"

namespace orrery {

class StepLog {
 public:
  /// Appends to the file; without a path it writes nothing. Error: the file cannot be opened.
  [[nodiscard]] static Result<StepLog> open(Storage& storage, const std::string& path);

  void add(const EngineStep& step, Instant wall, Duration took);

 private:
  StepLog() = default;

  std::unique_ptr<File> file_;
};

}  // namespace orrery
