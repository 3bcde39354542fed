// runtime/training/training_reports.hpp - what a rank reports about the training: progress lines
// for its keeper, and, if it leads, loss.csv, events.jsonl and readable lines.
//
// Owned by a TrainerRank, used on its thread. A rank that begins to lead continues the files where
// they end: a step has one line, whichever rank wrote it and however often it was computed. A
// failed write never fails the training. Cost: one write per step.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/env.hpp"
#include "base/system/file_descriptor.hpp"
#include "runtime/training/training_spec.hpp"

namespace orrery {

struct StepReport {
  std::uint64_t step = 0;  ///< steps done
  double loss = 0;         ///< mean over the batch, nats a token
  double router_loss = 0;  ///< with experts: mean over layers and batch; 1: balanced
  double rate = 0;
  double gradient_norm = 0;
  Duration took;
  Duration compute;  ///< this rank's own part of `took`
  std::uint32_t ranks = 0;
  std::uint32_t generation = 0;
};

class TrainingReports {
 public:
  TrainingReports(const TrainingSpec& spec, Env env, const std::string& progress);

  /// Whether the files in the output folder belong to this job.
  enum class Before { kOfAnother, kOfThis };
  /// Makes this rank the leader. An incomplete line of a killed leader is removed.
  void lead(Before before);
  void step(const StepReport& report, std::uint32_t rank);
  /// Reports to the keeper that a checkpoint of this step is committed.
  void saved(std::uint64_t step, const std::string& path);
  /// Reports to the keeper that this machine's results differ from the others'. `rank` is the rank
  /// it was started as.
  void wrong(const std::string& evidence, std::uint32_t rank);
  /// Writes a line of events.jsonl: {"event": NAME, "at": seconds since 1970, ...}; `more` is the
  /// inside of a JSON object. Also printed.
  void event(std::string_view name, const std::string& more);
  /// Prints a line to standard output.
  void say(const std::string& line);

 private:
  [[nodiscard]] bool moe() const { return spec_.model.experts > 0; }
  void tell_keeper(const std::string& json);
  [[nodiscard]] std::unique_ptr<File> open_log(const std::string& name, Before before);

  const TrainingSpec& spec_;
  Env env_;
  FileDescriptor progress_;
  std::unique_ptr<File> losses_;
  std::unique_ptr<File> events_;
  std::uint64_t last_step_ = 0;  ///< in loss.csv
};

}  // namespace orrery
