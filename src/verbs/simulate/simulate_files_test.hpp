// verbs/simulate/simulate_files_test.hpp - a trace of few jobs on eight H100, as a file and
// options.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "verbs/scratch_files_test.hpp"
#include "verbs/simulate/simulate_request.hpp"

namespace orrery {

/// A job of a trace.
struct PhillyRow {
  std::string submit;
  int seconds = 0;
  int accelerators = 8;
};

/// The files of one test, in its directory.
class SimulateFiles {
 public:
  /// Writes a trace in the format of philly; by default one job of an hour.
  explicit SimulateFiles(const std::vector<PhillyRow>& rows = {{"2020-06-01 00:00:00", 3600}}) {
    std::string csv = "timestamp,duration,num_gpus,gpu_time,cluster\n";
    for (const PhillyRow& row : rows) {
      csv += fmt::format("{},{},{},{},a\n", row.submit, row.seconds, row.accelerators,
                         row.seconds * row.accelerators);
    }
    asked_.machines.accelerators = "h100:8";
    asked_.trace.file = files_.write("trace.csv", csv);
    asked_.trace.format = "philly";
    asked_.scheduling.policies = "fifo";
  }

  [[nodiscard]] const ScratchFiles& files() const { return files_; }
  [[nodiscard]] SimulateOptions& asked() { return asked_; }
  [[nodiscard]] const SimulateOptions& asked() const { return asked_; }

  [[nodiscard]] std::unique_ptr<SimulateRequest> load() const {
    auto request = SimulateRequest::load({}, asked_);
    EXPECT_TRUE(request) << (request ? "" : request.error().text());
    return request ? *std::move(request) : nullptr;
  }
  /// Returns the text of the error of these options.
  [[nodiscard]] std::string refusal() const { return refusal(asked_); }
  [[nodiscard]] static std::string refusal(const SimulateOptions& asked) {
    const auto request = SimulateRequest::load({}, asked);
    return request ? "accepted" : request.error().text();
  }

 private:
  ScratchFiles files_;
  SimulateOptions asked_;
};

}  // namespace orrery
