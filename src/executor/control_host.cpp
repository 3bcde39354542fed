#include "executor/control_host.hpp"

#include <algorithm>
#include <utility>

#include "agent/launch_plan.hpp"

namespace orrery {
namespace {

constexpr std::size_t kUnknownMax = 1'000;  ///< most that are remembered
constexpr const char* kHalted = "the controller is halted: a part of its log is lost";

}  // namespace

ControlHost::ControlHost(std::unique_ptr<Core> core, const Setup& setup, HostOutlet& outlet,
                         Instant now)
    : outlet_(outlet), core_(std::move(core)), lost_jobs_(setup.lost_jobs) {
  const std::size_t nodes = state().setup().topology->node_count();
  LinkSetup link{.cluster = setup.cluster, .term = setup.term, .heartbeats = setup.heartbeats};
  link.boots.reserve(nodes);
  for (std::size_t at = 0; at < nodes; ++at)
    link.boots.push_back(state().node(NodeId::at(at)).boot);
  link_.emplace(link, known_attempts(state()), now);
  for (std::size_t at = 0; at < nodes; ++at) {
    if (state().node(NodeId::at(at)).health != NodeHealth::kRepairing) continue;
    link_->repair({NodeId::at(at), FaultLayer::kHost}, now);
  }
  drain(now);
}

void ControlHost::handle(const Input& input, Answered answered) {
  if (!halted_by_.empty()) {
    if (answered) answered(Answer{.status = environment_error(kHalted), .job = {}});
    return;
  }
  decide(input, std::move(answered));
  drain(input.at);
  release();
}

void ControlHost::after_durable(std::function<void()> then) {
  waiting_.push_back({newest_, std::move(then)});
  release();
}

namespace {

void add_unknown(const ControlHost& host, const AttemptReport& report, NodeId node,
                 std::vector<UnknownRanks>& out) {
  const AttemptId id = report.token.id;
  const State& state = host.state();
  const bool lost = id.job.value() >= state.jobs() || state.setup().is_lost(id.job);
  if (lost || (state.has(id.job) && id.attempt > state.job(id.job).attempt)) {
    out.push_back({id, node});
  }
}

}  // namespace

std::vector<UnknownRanks> ControlHost::unknown_in(const Report& report) const {
  std::vector<UnknownRanks> unknown;
  if (const auto* hello = std::get_if<Hello>(&report.what)) {
    for (const NumberedReport& each : hello->attempts) {
      add_unknown(*this, each.report, report.from.node, unknown);
    }
  } else if (const auto* one = std::get_if<AttemptReport>(&report.what)) {
    add_unknown(*this, *one, report.from.node, unknown);
  }
  return unknown;
}

void ControlHost::deliver(const Report& report, Instant now) {
  if (lost_jobs_ == LostJobs::kAsk) {
    for (const UnknownRanks& each : unknown_in(report)) {
      const bool known = std::find(halted_by_.begin(), halted_by_.end(), each) != halted_by_.end();
      if (!known && halted_by_.size() < kUnknownMax) halted_by_.push_back(each);
    }
  }
  if (!halted_by_.empty()) return;
  link_->on_report(report, now);
  drain(now);
  release();
}

Instant ControlHost::next_due() const {
  return halted_by_.empty() ? std::min(link_->next_due(), core_->wake()) : Instant::max();
}

void ControlHost::advance(Instant now) {
  if (link_->next_due() > now) return handle({now, Tick{}, {}});
  link_->advance(now);
  drain(now);
  release();
}

void ControlHost::durable(std::uint64_t number) {
  durable_ = number;
  release();
}

void ControlHost::decide(const Input& input, Answered answered) {
  outlet_.note(input);
  const Outcome& outcome = core_->handle(input);
  if (!outcome.events.empty()) newest_ = outlet_.append(input.at, outcome.events);
  for (const Action& action : outcome.actions) carry_out(action, input.at);
  if (!answered) return;
  waiting_.push_back(
      {newest_, [answer = outcome.answer, answered = std::move(answered)] { answered(answer); }});
}

void ControlHost::carry_out(const Action& action, Instant now) {
  if (const auto* start = std::get_if<StartRanks>(&action)) {
    const Job& job = state().job(start->job);
    if (!holds_devices(job.phase) || job.attempt != start->attempt) return;
    link_->start(*start, launch_plan(state(), start->job), now);
  } else if (const auto* stop = std::get_if<StopRanks>(&action)) {
    link_->stop(*stop, now);
  } else if (const auto* clock = std::get_if<ApplyClock>(&action)) {
    link_->apply(*clock, now);
  } else if (const auto* repair = std::get_if<RepairNode>(&action)) {
    link_->repair(*repair, now);
  } else if (std::holds_alternative<RunFullPass>(action)) {
    outlet_.pass_beside(core_->hold(now));
  } else if (const auto* search = std::get_if<SearchPlan>(&action)) {
    outlet_.search_plan(search->key);
  }
}

/// Handles effects in order, so that an acknowledgement leaves only after its report is durable.
void ControlHost::drain(Instant now) {
  for (;;) {
    std::vector<LinkEffect> effects = link_->take();
    if (effects.empty()) return;
    for (LinkEffect& effect : effects) {
      if (auto* order = std::get_if<Order>(&effect)) {
        waiting_.push_back({newest_, std::move(*order)});
      } else {
        decide({now, std::get<InputKind>(std::move(effect)), {}}, {});
      }
    }
  }
}

void ControlHost::release() {
  while (!waiting_.empty() && waiting_.front().number <= durable_) {
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    if (const auto* order = std::get_if<Order>(&next.what)) {
      outlet_.send(*order);
    } else {
      std::get<Leave>(next.what)();
    }
  }
}

}  // namespace orrery
