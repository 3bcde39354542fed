#include "tests/end_to_end/job_history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace orrery {
namespace {

constexpr std::array<const char*, 3> kWords = {"absent", "queued", "cancelled"};

const char* word_of(JobSeen state) { return kWords[static_cast<std::size_t>(state)]; }

}  // namespace

void JobHistory::made(const std::string& job, JobSeen state, CallTime time) {
  Register& own = jobs_[job];
  Instant& asked = own.asked[static_cast<std::size_t>(state)];
  asked = std::min(asked, time.begin);
  if (time.end < Instant::max()) own.operations.push_back({state, time});
}

void JobHistory::saw(const std::string& job, ShownJob shown, CallTime time) {
  Register& own = jobs_[job];
  own.operations.push_back({shown.state, time});
  own.ids.insert(shown.id);
}

void JobHistory::saw_page(const std::map<std::string, ShownJob>& jobs, PageRest rest,
                          CallTime time) {
  pages_.push_back({jobs, rest, time});
}

void JobHistory::add(JobHistory other) {
  for (auto& [name, theirs] : other.jobs_) {
    Register& own = jobs_[name];
    for (std::size_t i = 0; i < own.asked.size(); ++i) {
      own.asked[i] = std::min(own.asked[i], theirs.asked[i]);
    }
    own.operations.insert(own.operations.end(), theirs.operations.begin(), theirs.operations.end());
    own.ids.merge(theirs.ids);
  }
  std::move(other.pages_.begin(), other.pages_.end(), std::back_inserter(pages_));
}

std::vector<std::string> JobHistory::contradictions(
    const std::map<std::string, std::uint64_t>& ids) const {
  std::map<std::string, Register> jobs = jobs_;
  std::map<std::uint64_t, std::string> by_id;
  for (const auto& [name, id] : ids) by_id.emplace(id, name);
  std::vector<std::string> wrong;
  for (const Page& page : pages_) {
    std::uint64_t oldest =
        page.rest == PageRest::kNone ? 0 : std::numeric_limits<std::uint64_t>::max();
    for (const auto& [name, shown] : page.jobs) {
      jobs[name].operations.push_back({shown.state, page.time});
      jobs[name].ids.insert(shown.id);
      const auto id = ids.find(name);
      if (id != ids.end()) oldest = std::min(oldest, id->second);
    }
    for (auto at = by_id.lower_bound(oldest); at != by_id.end(); ++at) {
      if (page.jobs.contains(at->second)) continue;
      jobs[at->second].operations.push_back({JobSeen::kAbsent, page.time});
    }
  }
  for (auto& [name, own] : jobs) {
    for (const std::uint64_t shown : own.ids) {
      const auto id = ids.find(name);
      if (id != ids.end() && id->second == shown) continue;
      wrong.push_back(fmt::format("{} was seen as {}, which is not its number", name, shown));
    }
    std::vector<Operation> by_end = own.operations;
    std::ranges::sort(own.operations, {}, [](const Operation& o) { return o.time.begin; });
    std::ranges::sort(by_end, {}, [](const Operation& o) { return o.time.end; });
    auto before = by_end.begin();
    JobSeen least = JobSeen::kAbsent;
    for (const Operation& each : own.operations) {
      for (; before != by_end.end() && before->time.end < each.time.begin; ++before) {
        least = std::max(least, before->state);
      }
      if (each.state < least) {
        wrong.push_back(
            fmt::format("{} was {} and was {} later", name, word_of(least), word_of(each.state)));
      }
      if (own.asked[static_cast<std::size_t>(each.state)] > each.time.end) {
        wrong.push_back(
            fmt::format("{} was {} before anybody asked for it", name, word_of(each.state)));
      }
    }
  }
  return wrong;
}

}  // namespace orrery
