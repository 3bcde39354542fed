// api/jobs/archive_walk.hpp - jobs of the archive by id, descending, read some at a time beside the
// loop.
//
// Made for one call, on the controller's loop; the controller outlives it. A job may move from the
// state to the archive between two steps of a call, so a job that is in neither is read again once.
// Cost: one read of the store for every 256 jobs that are asked for in descending order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "executor/controller.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {

class ArchiveWalk : public std::enable_shared_from_this<ArchiveWalk> {
 public:
  explicit ArchiveWalk(const Controller& controller) : controller_(controller) {}

  /// Whether find() knows the answer for this job; otherwise read() it first.
  [[nodiscard]] bool has(std::uint64_t id) const {
    return id < below_ && id >= above_ && (row_of(id) != nullptr || id == read_for_);
  }
  /// Returns none where the job is not in the archive, or cannot be read. Precondition: has(id).
  [[nodiscard]] std::optional<v1::Job> find(std::uint64_t id) const {
    const ArchivedJob* row = row_of(id);
    v1::Job job;
    if (row == nullptr || !job.ParseFromString(row->bytes)) return std::nullopt;
    return job;
  }
  /// Reads this job and some below it, then calls `then` on the loop.
  void read(std::uint64_t id, std::function<void()> then) {
    controller_.store().archive().read(
        id + 1, kRows,
        [self = shared_from_this(), id, then = std::move(then)](LiveArchive::Rows rows) {
          self->rows_ = rows ? *std::move(rows) : std::vector<ArchivedJob>();
          self->read_for_ = id;
          self->below_ = id + 1;
          self->above_ = self->rows_.size() < kRows ? 0 : self->rows_.back().id;
          then();
        });
  }

 private:
  static constexpr std::size_t kRows = 256;

  [[nodiscard]] const ArchivedJob* row_of(std::uint64_t id) const {
    const auto row =
        std::lower_bound(rows_.begin(), rows_.end(), id,
                         [](const ArchivedJob& a, std::uint64_t b) { return a.id > b; });
    return row != rows_.end() && row->id == id ? &*row : nullptr;
  }

  const Controller& controller_;
  std::vector<ArchivedJob> rows_;  ///< descending
  std::uint64_t below_ = 0;        ///< rows_ has the jobs below it..
  std::uint64_t above_ = 0;        ///< ..from this one on
  std::uint64_t read_for_ = 0;     ///< the job of the last read(), which find() answers in any case
};

}  // namespace orrery
