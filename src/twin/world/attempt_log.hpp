// twin/world/attempt_log.hpp - when and where each attempt of a simulation ran, for the charts of a
// report.
//
// Observes the events of a run. A span is one placement of one job: from its start, or from a
// change of its devices, until its devices are released or it is placed anew. Rows are nodes where
// the fleet has at most kNodeRows of them, else racks.
// Cost: O(nodes of the job) a start. Memory: 72 bytes a span and 16 bytes a row of it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "control/event.hpp"
#include "fleet/topology.hpp"
#include "twin/figures/report_data.hpp"

namespace orrery {

/// Where the ranks of a job run, in short.
struct JobPlace {
  NodeId first;
  std::uint32_t nodes = 0;
  std::uint32_t devices = 0;  ///< shared devices count whole
};

/// Precondition: a gang with a rank.
[[nodiscard]] JobPlace place_of(std::span<const PlacedGang> gangs);
/// "64 x h100-sxm on 8 nodes from pod-1/rack-2/n3 on".
[[nodiscard]] std::string place_text(const Topology& topology, const JobPlace& place);

/// Part of a span on one row.
struct RowPart {
  std::uint32_t row = 0;
  double devices = 0;  ///< shared devices count by their share
};

struct AttemptSpan {
  JobId job;
  Instant from;
  Instant to = Instant::max();  ///< max: it still runs
  JobPlace place;
  double devices = 0;  ///< including those that an exclusive gang keeps idle; shared devices count
                       ///< by their share
  std::uint32_t parts_begin = 0;
  std::uint32_t parts_end = 0;
  bool resized = false;  ///< the span ended because the job continued on other devices
  StopReason reason = StopReason::kFinished;
  JobId in_favour_of;
};

/// How a chart names jobs, and what their colours stand for.
struct GanttNames {
  std::function<std::string(JobId)> job;
  std::function<std::string(JobId)> group;
  std::string grouped_by;
};

class AttemptLog {
 public:
  static constexpr std::uint32_t kNodeRows = 64;
  static constexpr std::size_t kBarsMax = 2000;
  static constexpr std::size_t kGroupsMax = 6;

  /// The topology must outlive it.
  explicit AttemptLog(const Topology& topology);

  void look(Instant at, std::span<const Event> events);

  /// Sorted by start.
  [[nodiscard]] std::span<const AttemptSpan> spans() const { return spans_; }
  [[nodiscard]] std::span<const RowPart> parts(const AttemptSpan& span) const {
    return std::span(parts_).subspan(span.parts_begin, span.parts_end - span.parts_begin);
  }
  /// The rows with their devices of all types, by row.
  [[nodiscard]] const std::vector<GanttRow>& rows() const { return rows_; }
  /// The attempts with the most work as at most kBarsMax bars, on at most kNodeRows rows: nodes,
  /// racks, pods or larger places. Groups beyond the first kGroupsMax, by work, are one. O(n log n)
  /// in the spans.
  [[nodiscard]] GanttChart chart(const GanttNames& names, Instant to) const;
  /// Mean share of a row's devices in use, by row and equal part of the window. O(spans x columns
  /// that they reach over).
  [[nodiscard]] RowMap use(Instant from, Instant to) const;
  /// A line for each start and stop of a job, such as "2026-11-02T10:00:00Z  starts: 64 x h100-sxm
  /// on 8 nodes from pod-1/rack-2/n3 on"; `name` tells the name of another job. O(spans).
  template <class Name>
  [[nodiscard]] std::vector<std::string> course(JobId job, const Name& name) const {
    std::vector<std::string> lines;
    for (const AttemptSpan& span : spans_) {
      if (span.job != job) continue;
      lines.push_back(start_line(span));
      if (span.to == Instant::max() || span.resized) continue;
      lines.push_back(end_line(span, span.in_favour_of.valid() ? name(span.in_favour_of) : ""));
    }
    return lines;
  }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  void open(Instant at, JobId job, std::span<const PlacedGang> gangs);
  void close(Instant at, JobId job);
  [[nodiscard]] AttemptSpan* running(JobId job);
  [[nodiscard]] std::uint32_t row_of(NodeId node) const;
  /// The chart's row for each row of the log; fills the chart's rows.
  [[nodiscard]] std::vector<std::uint32_t> chart_rows(GanttChart& chart) const;
  /// The group of each span's job; fills the chart's groups.
  [[nodiscard]] std::vector<std::uint32_t> chart_groups(GanttChart& chart, const GanttNames& names,
                                                        Instant to) const;
  [[nodiscard]] std::string start_line(const AttemptSpan& span) const;
  [[nodiscard]] std::string end_line(const AttemptSpan& span, const std::string& favoured) const;

  const Topology* topology_;
  bool by_node_ = false;
  std::uint32_t first_rack_ = 0;
  std::vector<GanttRow> rows_;
  std::vector<AttemptSpan> spans_;
  std::vector<RowPart> parts_;
  std::vector<std::uint32_t> open_;  ///< by job: its running span, or kNone
};

}  // namespace orrery
