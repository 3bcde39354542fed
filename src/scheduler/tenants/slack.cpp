#include "scheduler/tenants/slack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "scheduler/price/run_time.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {
namespace {

/// The greatest run time up to each position, as jobs are entered one by one: a Fenwick tree.
class LongestUntil {
 public:
  explicit LongestUntil(std::size_t size) : tree_(size + 1, kNone) {}

  void enter(std::size_t at, Duration run) {
    for (std::size_t i = at + 1; i < tree_.size(); i += i & (~i + 1)) {
      tree_[i] = std::max(tree_[i], run);
    }
  }

  /// The first position of an entered run that is longer; the size if there is none.
  [[nodiscard]] std::size_t first_above(Duration least) const {
    std::size_t at = 0;
    for (std::size_t step = std::bit_floor(tree_.size()); step > 0; step /= 2) {
      if (at + step < tree_.size() && tree_[at + step] <= least) at += step;
    }
    return at;
  }

 private:
  static constexpr Duration kNone = -Duration::max();

  std::vector<Duration> tree_;
};

/// A job among those of its tenant and rank.
struct Member {
  std::uint32_t at = 0;  ///< position among the waiting jobs
  std::size_t place = 0;
  std::optional<Duration> spare;  ///< none: no deadline that it can meet
  std::size_t target = 0;  ///< the place of the job that it passes; its own if it passes none
};

void aim(const Situation& s, const Policy& policy, std::vector<Member>& members) {
  const Duration unknown = Duration::from_seconds(policy.unknown_run.value());
  const auto run_of = [&](const Member& member) {
    return time_left(s.waiting[member.at], s.plans, unknown);
  };
  LongestUntil longest(members.size());
  std::vector<std::size_t> pressed;
  for (const Member& member : members) {
    if (member.spare) {
      pressed.push_back(member.place);
    } else {
      longest.enter(member.place, run_of(member));
    }
  }
  std::sort(pressed.begin(), pressed.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(members[a].spare, a) > std::pair(members[b].spare, b);
  });
  for (const std::size_t place : pressed) {
    Member& member = members[place];
    member.target = std::min(place, longest.first_above(*member.spare));
    longest.enter(place, run_of(member));
  }
}

}  // namespace

Slack slack_after(Duration time, Duration run, const Policy& policy) {
  const double part = run.count_seconds() / 10;
  return {time - run, Duration::from_seconds(std::max(part, policy.full_interval.value()))};
}

std::optional<Slack> slack_of(const WaitingJob& job, const Policy& policy,
                              const Situation& situation) {
  const JobRequest& request = *job.request;
  if (!request.deadline || request.kind == JobKind::kServe) return std::nullopt;
  const std::optional<Duration> run = known_time_left(job, situation.plans);
  if (!run) return std::nullopt;
  return slack_after(*request.deadline - situation.now, *run, policy);
}

std::optional<Slack> slack_if_stopped(const RunningJob& job, const Policy& policy,
                                      const Situation& situation) {
  std::optional<Slack> slack = slack_of(as_waiting(job, situation.now), policy, situation);
  if (slack) slack->left = slack->left - job.request->restart;
  return slack;
}

std::string slack_text(const Slack& slack) {
  if (slack.kept()) {
    return fmt::format("to meet its deadline it has to start within {}", slack.left.text());
  }
  return fmt::format("it will be at least {} late for its deadline", (-slack.left).text());
}

void let_pressed_pass(const Situation& situation, const Policy& policy,
                      std::vector<std::uint32_t>& order) {
  std::map<std::pair<TenantId, std::int32_t>, std::vector<Member>> groups;
  const auto group_of = [&](std::uint32_t at) {
    const JobRequest& request = *situation.waiting[at].request;
    return std::pair(request.tenant, rank_in_tenant(request, policy));
  };
  for (const std::uint32_t at : order) {
    const WaitingJob& job = situation.waiting[at];
    if (!job.request->deadline) continue;
    const std::optional<Slack> slack = slack_of(job, policy, situation);
    if (slack && slack->kept()) groups.try_emplace(group_of(at));
  }
  if (groups.empty()) return;
  for (const std::uint32_t at : order) {
    const auto group = groups.find(group_of(at));
    if (group == groups.end()) continue;
    std::vector<Member>& members = group->second;
    Member member{.at = at, .place = members.size(), .spare = {}, .target = members.size()};
    const std::optional<Slack> slack = slack_of(situation.waiting[at], policy, situation);
    if (slack && slack->kept()) member.spare = slack->spare();
    members.push_back(member);
  }
  for (auto& [key, members] : groups) {
    aim(situation, policy, members);
    std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
      const auto key_of = [](const Member& m) {
        const bool moves = m.target < m.place;
        return std::tuple(m.target, !moves, moves ? *m.spare : Duration(), m.place);
      };
      return key_of(a) < key_of(b);
    });
  }
  std::map<std::pair<TenantId, std::int32_t>, std::size_t> next;
  for (std::uint32_t& at : order) {
    const auto key = group_of(at);
    const auto group = groups.find(key);
    if (group != groups.end()) at = group->second[next[key]++].at;
  }
}

}  // namespace orrery
