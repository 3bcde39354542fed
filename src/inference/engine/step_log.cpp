#include "inference/engine/step_log.hpp"

#include <fmt/format.h>

#include <utility>

namespace orrery {

Result<StepLog> StepLog::open(Storage& storage, const std::string& path) {
  StepLog log;
  if (path.empty()) return log;
  auto file = storage.open(path, OpenMode::kAppend);
  if (!file) return forward_error(file);
  log.file_ = std::move(*file);
  if (log.file_->size() > 0) return log;
  auto written = log.file_->append(
      "time,prefill_tokens,prefill_pairs,decode_sequences,decode_context,seconds\n");
  if (!written) return forward_error(written);
  return log;
}

void StepLog::add(const EngineStep& step, Instant wall, Duration took) {
  if (file_ == nullptr) return;
  const auto written = file_->append(fmt::format(
      "{:.6f},{},{},{},{},{:.9f}\n", static_cast<double>(wall.ns()) * 1e-9, step.prefill_tokens,
      step.prefill_pairs, step.decode_sequences, step.decode_context, took.count_seconds()));
  if (!written) file_.reset();
}

}  // namespace orrery
