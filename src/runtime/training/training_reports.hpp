// runtime/training/training_reports.hpp - what a rank tells about the training: progress lines for
// its keeper, and, of the rank that leads, loss.csv, events.jsonl and lines for people.
//
// Owned by a TrainerRank, used on its thread. Whoever begins to lead continues the files where they
// end: a step has one line, whoever wrote it and however often it was computed. What cannot be
// written never fails the training. Cost: a write a step.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/env.hpp"
#include "base/file_descriptor.hpp"
#include "runtime/training/training_spec.hpp"

namespace orrery {

struct StepReport {
  std::uint64_t step = 0;  ///< steps done
  double loss = 0;         ///< mean over the batch, nats a token
  double router_loss = 0;  ///< where there are experts: mean over layers and batch; 1: balanced
  double rate = 0;
  double gradient_norm = 0;
  Duration took;
  Duration compute;  ///< of it, this rank's own
  std::uint32_t ranks = 0;
  std::uint32_t generation = 0;
};

class TrainingReports {
 public:
  TrainingReports(const TrainingSpec& spec, Env env, const std::string& progress);

  /// Whether what is in the output folder is of this job.
  enum class Before { kOfAnother, kOfThis };
  /// This rank leads from now on. What a killed leader had begun to write of a line goes.
  void lead(Before before);
  void step(const StepReport& report, std::uint32_t rank);
  /// A checkpoint of this step can be found again.
  void saved(std::uint64_t step, const std::string& path);
  /// This machine does not compute what others do: its keeper should know.
  /// `rank` as it was started.
  void wrong(const std::string& evidence, std::uint32_t rank);
  /// A line of events.jsonl: {"event": NAME, "at": seconds since 1970, ...}; `more` is the inside
  /// of a JSON object. Also said to people.
  void event(std::string_view name, const std::string& more);
  /// To standard output.
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
