#include "scheduler/forecast/waiting_queue.hpp"

#include <algorithm>
#include <tuple>

#include "scheduler/tenants/slack.hpp"

namespace orrery {
namespace {

bool any_has_plan(const JobRequest& request) {
  return std::any_of(request.roles.begin(), request.roles.end(), [](const RoleRequest& role) {
    return std::any_of(role.options.begin(), role.options.end(),
                       [](const GangOption& option) { return option.plan.has_value(); });
  });
}

bool goes_before(const QueuedJob& a, const QueuedJob& b) { return a.key < b.key; }

bool same(const WaitingJob& a, const WaitingJob& b) {
  return a.id == b.id && a.request == b.request && a.submitted == b.submitted && a.done == b.done &&
         a.attained == b.attained;
}

}  // namespace

void WaitingQueue::forget() {
  waiting_.clear();
  order_.clear();
}

void WaitingQueue::update(const Situation& situation, const Policy& policy) {
  Rules rules{
      policy.order,         policy.inside,      policy.ageing.value(), policy.unknown_run.value(),
      policy.attained_step, policy.max_stretch, policy.queue_limits,   situation.changes.plans};
  // Finish-time fairness depends on the time and on the number of jobs, a deadline on whether it is
  // in the future and promised.
  if (!(rules == rules_) || policy.order == QueueOrder::kFinishTime ||
      policy.order == QueueOrder::kDeadlineShares) {
    rules_ = std::move(rules);
    forget();
  }
  match(situation.waiting);
  reorder(situation, policy);
  for (const std::uint32_t at : fresh_) loose_.push_back(queued(at, situation, policy));
  join_loose();
  let_dated_pass(situation, policy);
}

void WaitingQueue::let_dated_pass(const Situation& situation, const Policy& policy) {
  passed_.clear();
  const auto is_dated = [](const QueuedJob& job) { return job.dated; };
  if (!by_service(policy) || std::none_of(order_.begin(), order_.end(), is_dated)) return;
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> place(order_.size());
  order.reserve(order_.size());
  for (std::uint32_t i = 0; i < order_.size(); ++i) {
    order.push_back(order_[i].at);
    place[order_[i].at] = i;
  }
  let_pressed_pass(situation, policy, order);
  passed_.reserve(order.size());
  for (const std::uint32_t at : order) passed_.push_back(order_[place[at]]);
}

// Both lists are usually in the order of submission; where one is not, a job that was there may
// count as one that arrived.
void WaitingQueue::match(std::span<const WaitingJob> waiting) {
  moved_to_.assign(waiting_.size(), QueuedJob::kNone);
  fresh_.clear();
  std::size_t before = 0;
  for (std::uint32_t at = 0; at < waiting.size(); ++at) {
    const WaitingJob& job = waiting[at];
    const auto comes_later = [&job](const WaitingJob& other) {
      return std::tie(other.submitted, other.id) < std::tie(job.submitted, job.id);
    };
    while (before < waiting_.size() && comes_later(waiting_[before])) ++before;
    if (before < waiting_.size() && same(waiting_[before], job)) {
      moved_to_[before++] = at;
    } else {
      fresh_.push_back(at);
    }
  }
  waiting_.assign(waiting.begin(), waiting.end());
}

// As time passes a few jobs pass each other: in a pair in the wrong order, either may be misplaced.
void WaitingQueue::reorder(const Situation& situation, const Policy& policy) {
  loose_.clear();
  std::size_t kept = 0;
  for (QueuedJob& job : order_) {
    const std::uint32_t at = moved_to_[job.at];
    if (at == QueuedJob::kNone) continue;
    job.at = at;
    if (job.ages) {
      const Duration waited = situation.now - job.key.submitted - job.ran;
      job.key.second = aged(job.service, {waited, job.run}, policy);
    }
    if (kept > 0 && goes_before(job, order_[kept - 1])) {
      loose_.push_back(order_[--kept]);
      loose_.push_back(job);
    } else {
      order_[kept++] = job;
    }
  }
  order_.resize(kept);
}

void WaitingQueue::join_loose() {
  if (loose_.empty()) return;
  std::sort(loose_.begin(), loose_.end(), goes_before);
  const auto middle = static_cast<std::ptrdiff_t>(order_.size());
  order_.insert(order_.end(), loose_.begin(), loose_.end());
  std::inplace_merge(order_.begin(), order_.begin() + middle, order_.end(), goes_before);
}

QueuedJob WaitingQueue::queued(std::uint32_t at, const Situation& situation, const Policy& policy) {
  const WaitingJob& job = situation.waiting[at];
  const JobRequest& request = *job.request;
  QueuedJob queued;
  queued.key = key_of(job, policy, situation);
  const ServiceBasis basis = service_basis(request, situation.plans);
  queued.service = service_of(basis, job.done, job.attained, policy);
  queued.ran = ran_for(basis, job.attained);
  queued.run = basis.whole;
  queued.at = at;
  queued.tenant = request.tenant;
  queued.class_id = request.class_id;
  queued.ages = by_service(request, policy);
  queued.serves = request.kind == JobKind::kServe;
  queued.planned = any_has_plan(request);
  queued.dated = request.deadline.has_value();
  const auto number = [](auto& table, const auto& key) {
    return table.try_emplace(key, static_cast<std::uint32_t>(table.size())).first->second;
  };
  queued.asker = number(askers_, std::pair(request.tenant, rank_of(request)));
  queued.group = QueuedJob::kNone;
  if (!request.class_id.valid()) return queued;
  const std::size_t of_class = request.class_id.value();
  if (of_class >= placement_class_of_.size()) placement_class_of_.resize(of_class + 1);
  ClassId& placement = placement_class_of_[of_class];
  if (!placement.valid()) placement = placement_classes_.of_placement(request);
  queued.placement_class = placement;
  queued.group = number(groups_, std::pair(request.tenant, placement));
  return queued;
}

std::vector<std::uint32_t> WaitingQueue::places() const {
  const std::span<const QueuedJob> order = this->order();
  std::vector<std::uint32_t> places(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) places[order[i].at] = i;
  return places;
}

}  // namespace orrery
