// verbs/schedule/queue_files_test.hpp - a fleet of two nodes with eight H100 each, and jobs for it,
// as files.
#pragma once

#include <fmt/format.h>

#include <string>

#include "verbs/schedule/schedule_request.hpp"
#include "verbs/scratch_files_test.hpp"

namespace orrery {

/// The files of one test, in its directory.
class QueueFiles {
 public:
  QueueFiles() {
    asked_.fleet = files_.write("fleet.yaml", R"(apiVersion: orrery/v1
kind: Fleet
name: lab
sites:
- name: lab
  halls:
  - name: hall
    pods:
    - name: su
      racks:
      - name: rack
        count: 1
        cooling: in-row-or-dense-air
        nodes: [{type: dgx-h100, count: 2}]
)");
    asked_.policy = "fifo";
  }

  /// Writes a job of so many H100 without a model; `more`: further keys.
  std::string add(const std::string& name, int accelerators, const std::string& more = "") {
    std::string path = files_.write(
        name + ".yaml", fmt::format("apiVersion: orrery/v1\nkind: Batch\nname: {}\nroles:\n"
                                    "- accelerators: {}\n  types: [h100]\n{}",
                                    name, accelerators, more));
    asked_.jobs.push_back(path);
    return path;
  }

  [[nodiscard]] const ScratchFiles& files() const { return files_; }
  [[nodiscard]] ScheduleOptions& asked() { return asked_; }

 private:
  ScratchFiles files_;
  ScheduleOptions asked_;
};

}  // namespace orrery
