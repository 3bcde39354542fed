// api/archive_walk.hpp - jobs of the archive by id, descending, read some at a time.
//
// Made for one call, on the controller's loop; the controller outlives it. Cost: one read of the
// store for every 256 jobs that are asked for in descending order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "executor/controller.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {

class ArchiveWalk {
 public:
  explicit ArchiveWalk(const Controller& controller) : controller_(controller) {}

  /// Returns none where the job is not in the archive, or cannot be read.
  [[nodiscard]] std::optional<v1::Job> find(std::uint64_t id) {
    if (rows_.empty() || id < rows_.back().id) {
      StorageResult<std::vector<ArchivedJob>> rows =
          controller_.store().archive().archived(id + 1, kRows);
      if (!rows) return std::nullopt;
      rows_ = *std::move(rows);
    }
    const auto row =
        std::lower_bound(rows_.begin(), rows_.end(), id,
                         [](const ArchivedJob& a, std::uint64_t b) { return a.id > b; });
    v1::Job job;
    if (row == rows_.end() || row->id != id || !job.ParseFromString(row->bytes))
      return std::nullopt;
    return job;
  }

 private:
  static constexpr std::size_t kRows = 256;

  const Controller& controller_;
  std::vector<ArchivedJob> rows_;
};

}  // namespace orrery
