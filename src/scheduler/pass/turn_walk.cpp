#include "scheduler/pass/turn_walk.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "scheduler/rounds/round_plan.hpp"
#include "scheduler/rounds/turn_ends.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {

TurnWalk::TurnWalk(PassContext& pass, StartSearch& search, ClockSteps& clocks,
                   ThroughputShares& shares)
    : pass_(pass),
      s_(pass.situation),
      policy_(pass.policy),
      search_(search),
      clocks_(clocks),
      shares_(shares) {}

std::vector<const WaitingJob*> TurnWalk::without_turns() const {
  std::vector<std::pair<OrderKey, const WaitingJob*>> order;
  for (const WaitingJob& job : s_.waiting) {
    if (takes_turns(*job.request) || pass_.is_passed_over(job.id)) continue;
    order.emplace_back(key_of(job, policy_, s_), &job);
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    const bool first = a.second->request->kind == JobKind::kServe;
    const bool second = b.second->request->kind == JobKind::kServe;
    return first != second ? first : a.first < b.first;
  });
  const std::size_t count = std::min(order.size(), kRoundJobs);
  std::vector<const WaitingJob*> jobs;
  jobs.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    jobs.push_back(order[i].second);
  }
  return jobs;
}

std::vector<RoundJob> TurnWalk::round_jobs() const {
  std::vector<RoundJob> jobs;
  for (std::uint32_t i = 0; i < s_.waiting.size(); ++i) {
    const WaitingJob& job = s_.waiting[i];
    const bool has_slot = pass_.is_passed_over(job.id);
    if (takes_turns(*job.request) && !has_slot) jobs.push_back({job, i, std::nullopt});
  }
  keep_first(jobs, policy_, s_);
  const Duration least = pass_.kind == PassKind::kFull ? least_turn(s_, policy_) : Duration();
  for (std::uint32_t i = 0; i < s_.running.size(); ++i) {
    const RunningJob& job = s_.running[i];
    const bool leaves = job.stopping || pass_.is_decided(i);
    if (leaves || !takes_turns(*job.request) || turn_ends_from(job, s_, least) > s_.now) continue;
    jobs.push_back({as_waiting(job, s_.now), i, job.gangs.front().option});
  }
  return jobs;
}

void TurnWalk::run() {
  Refusals refusals;
  std::vector<const WaitingJob*> first;
  for (const WaitingJob* job : without_turns()) {
    StartOrRefusal found = search_.find(*job);
    clocks_.share_power(*job, found);
    if (found) {
      pass_.start(*job, *std::move(found));
    } else {
      refusals.emplace(job->id, found.error().refusal);
      first.push_back(job);
    }
  }
  const std::vector<RoundJob> jobs = round_jobs();
  if (pass_.kind == PassKind::kFull) {
    RoundPlan(pass_, search_, shares_, jobs).begin(first);
  } else {
    fill(jobs);
  }
  wait_for_turns(refusals);
}

void TurnWalk::fill(std::span<const RoundJob> jobs) {
  const bool waits = std::any_of(jobs.begin(), jobs.end(),
                                 [](const RoundJob& job) { return !job.option.has_value(); });
  std::vector<std::uint32_t> free = free_by_type(pass_.fleet.now());
  const auto none = [](std::uint32_t devices) { return devices == 0; };
  if (!waits || std::all_of(free.begin(), free.end(), none)) return;
  const std::vector<Turn> turns =
      turns_of({s_, policy_, RoundPhase::kGoesOn, jobs, std::move(free)}, shares_);
  std::set<GangRequest> no_room;
  std::vector<char> starts(jobs.size());
  for (const Turn& turn : turns) {
    const RoundJob& job = jobs[turn.job];
    const GangRequest& gang = options_of(job)[turn.option].gang;
    if (job.option || starts[turn.job] != 0 || no_room.contains(gang)) continue;
    const FleetView now = pass_.fleet.now();
    if (now.free(Topology::root(), gang.type).devices < gang.devices) continue;
    Reserved& reserved = pass_.fleet.reserved();
    const FleetView beside =
        reserved.any() ? reserved.beside(now, job.job.id, search_.latest_end(job.job)) : now;
    StartOrRefusal found = search_.by_option(beside, job.job, turn.option);
    if (found) {
      pass_.start(s_.waiting[job.at], *std::move(found));
      starts[turn.job] = 1;
      continue;
    }
    pass_.result.waiting.push_back({job.job.id, found.error().refusal});
    const bool busy = found.error().refusal.kind == RejectionKind::kBusy;
    if (busy && s_.closures.empty()) no_room.insert(gang);
  }
}

// Refusals by turn are in pass_.result.waiting: the first one of each job is reported, in the order
// of the situation. The last entry is reported for a job with a reservation.
void TurnWalk::wait_for_turns(const Refusals& refusals) {
  Refusals why = refusals;
  std::vector<StillWaits> with_slot;
  std::set<JobId> told;
  for (auto it = pass_.result.waiting.rbegin(); it != pass_.result.waiting.rend(); ++it) {
    const bool has_slot = pass_.is_passed_over(it->job);
    if (!has_slot) why.insert_or_assign(it->job, it->refusal);
    if (has_slot && told.insert(it->job).second) with_slot.push_back(*it);
  }
  pass_.result.waiting.assign(with_slot.rbegin(), with_slot.rend());
  std::vector<JobId> started;
  started.reserve(pass_.starts().size());
  for (const StartedJob& start : pass_.starts()) started.push_back(start.job->id);
  std::sort(started.begin(), started.end());
  for (const WaitingJob& job : s_.waiting) {
    if (std::binary_search(started.begin(), started.end(), job.id)) continue;
    if (pass_.is_passed_over(job.id)) continue;
    const auto found = why.find(job.id);
    pass_.wait(job, found != why.end() ? found->second
                                       : Refusal{RejectionKind::kBusy, TopologyLevel::kFleet, 0});
  }
}

}  // namespace orrery
