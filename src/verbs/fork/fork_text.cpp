#include "verbs/fork/fork_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/format/field_writer.hpp"
#include "base/text/text_table.hpp"

namespace orrery {
namespace {

/// A job that has not ended, or comes with the change.
struct ForkRow {
  std::string id;  ///< empty: it has none
  std::string name;
  std::string phase;
  std::optional<JobFate> as_is;
  JobFate changed;
};

std::vector<ForkRow> rows_of(const ForkPair& pair) {
  std::vector<ForkRow> rows;
  rows.reserve(pair.changed.size());
  for (std::size_t i = 0; i < pair.changed.size(); ++i) {
    if (i >= pair.as_is.size()) {
      const SubmitJob& job = pair.change.jobs[i - pair.as_is.size()];
      rows.push_back({"", job.submission.request.name, "new", std::nullopt, pair.changed[i]});
      continue;
    }
    const Job& job = pair.state.job(JobId::at(i));
    if (ended(job.phase)) continue;
    rows.push_back({fmt::format("{}", i), job.name, std::string(word_of(job.phase)), pair.as_is[i],
                    pair.changed[i]});
  }
  return rows;
}

bool waits(const ForkRow& row) { return row.phase == "held" || row.phase == "queued"; }

std::string after(Instant at, Instant now) {
  if (at == Instant::max()) return "-";
  // Whole seconds: the estimate is no more precise.
  const Duration wait = at - now;
  if (wait < Duration::seconds(1)) return "now";
  return (wait - Duration::nanoseconds(wait.count_ns() % 1'000'000'000)).text();
}

/// Returns "" for a job that runs and is not restarted.
std::string start_text(const ForkRow& row, const JobFate& fate, Instant now) {
  const bool runs = row.as_is && !waits(row);
  return runs && fate.start == Instant::max() ? "" : after(fate.start, now);
}

/// Returns "12 min later"; "" where the change is below a second.
std::string difference(const ForkRow& row) {
  if (!row.as_is) return "";
  const Instant before = row.as_is->end;
  const Instant then = row.changed.end;
  if (before == then) return "";
  if (then == Instant::max()) return "does not end";
  if (before == Instant::max()) return "ends";
  const Duration by = then > before ? then - before : before - then;
  if (by < Duration::seconds(1)) return "";
  return after(Instant() + by, Instant()) + (then > before ? " later" : " sooner");
}

struct Waits {
  std::size_t jobs = 0;
  std::size_t sooner = 0;
  std::size_t later = 0;
  std::size_t both = 0;  ///< that start in either
  double as_is_s = 0;    ///< until those do, on average
  double changed_s = 0;
};

Waits waits_of(const ForkPair& pair, const std::vector<ForkRow>& rows) {
  Waits sum;
  for (const ForkRow& row : rows) {
    if (!row.as_is || !waits(row)) continue;
    ++sum.jobs;
    sum.sooner += row.changed.start < row.as_is->start ? 1 : 0;
    sum.later += row.changed.start > row.as_is->start ? 1 : 0;
    if (std::max(row.changed.start, row.as_is->start) == Instant::max()) continue;
    ++sum.both;
    sum.as_is_s += (row.as_is->start - pair.now).count_seconds();
    sum.changed_s += (row.changed.start - pair.now).count_seconds();
  }
  if (sum.both == 0) return sum;
  sum.as_is_s /= static_cast<double>(sum.both);
  sum.changed_s /= static_cast<double>(sum.both);
  return sum;
}

Json seconds_json(Instant at, Instant now) {
  return at == Instant::max() ? Json() : Json((at - now).count_seconds());
}

Json fate_json(const JobFate& fate, Instant now) {
  return {{"start_s", seconds_json(fate.start, now)}, {"end_s", seconds_json(fate.end, now)}};
}

}  // namespace

std::string fork_text(const ForkPair& pair) {
  const std::vector<ForkRow> rows = rows_of(pair);
  TextTable table({{"ID", Align::kRight},
                   {"NAME"},
                   {"STATE"},
                   {"STARTS IN", Align::kRight},
                   {"ENDS IN", Align::kRight},
                   {"NEW START IN", Align::kRight},
                   {"NEW END IN", Align::kRight},
                   {""}});
  for (const ForkRow& row : rows) {
    table.add({row.id, row.name, row.phase, row.as_is ? start_text(row, *row.as_is, pair.now) : "",
               row.as_is ? after(row.as_is->end, pair.now) : "",
               start_text(row, row.changed, pair.now), after(row.changed.end, pair.now),
               difference(row)});
  }
  const Waits sum = waits_of(pair, rows);
  std::string text = table.text();
  if (sum.jobs > 0) {
    text += fmt::format("\nWaiting jobs: {}, of which {} would start sooner and {} later", sum.jobs,
                        sum.sooner, sum.later);
    if (sum.both > 0) {
      text += fmt::format("; mean time to start {}, with the change {}",
                          Duration::from_seconds(sum.as_is_s).text(),
                          Duration::from_seconds(sum.changed_s).text());
    }
    text += ".\n";
  }
  return text + fmt::format("(-: not within {})\n", pair.span.text());
}

Json fork_json(const ForkPair& pair) {
  const std::vector<ForkRow> rows = rows_of(pair);
  Json jobs = Json::array();
  for (const ForkRow& row : rows) {
    jobs.push_back({{"id", row.id.empty() ? Json() : Json(row.id)},
                    {"name", row.name},
                    {"state", row.phase},
                    {"as_is", row.as_is ? fate_json(*row.as_is, pair.now) : Json()},
                    {"changed", fate_json(row.changed, pair.now)}});
  }
  const Waits sum = waits_of(pair, rows);
  return {{"now", pair.now.text()},
          {"span_s", pair.span.count_seconds()},
          {"jobs", jobs},
          {"waiting",
           {{"jobs", sum.jobs},
            {"sooner", sum.sooner},
            {"later", sum.later},
            {"start_s", sum.as_is_s},
            {"start_changed_s", sum.changed_s}}}};
}

}  // namespace orrery
