#include "executor/control_host.hpp"

#include <algorithm>
#include <utility>

#include "agent/launch_plan.hpp"

namespace orrery {
namespace {

constexpr std::size_t kUnknownMax = 1'000;  ///< most that are remembered
constexpr const char* kHalted = "the controller is halted: a part of its log is lost";

}  // namespace

ControlHost::ControlHost(Parts parts, Instant now)
    : outlet_(parts.outlet),
      executor_(parts.executor),
      core_(std::move(parts.core)),
      lost_jobs_(parts.lost_jobs) {
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
    const std::vector<UnknownRanks> unknown = unknown_in(report);
    // A controller that has taken over may have started them; the agent repeats its report.
    if (!unknown.empty() && !outlet_.may_speak()) return;
    for (const UnknownRanks& each : unknown) {
      const bool known = std::find(halted_by_.begin(), halted_by_.end(), each) != halted_by_.end();
      if (!known && halted_by_.size() < kUnknownMax) halted_by_.push_back(each);
    }
  }
  if (!halted_by_.empty()) return;
  executor_.deliver(report, now);
  drain(now);
  release();
}

Instant ControlHost::next_due() const {
  return halted_by_.empty() ? std::min(executor_.next_due(), core_->wake()) : Instant::max();
}

void ControlHost::advance(Instant now) {
  if (executor_.next_due() > now) return handle({now, Tick{}, {}});
  executor_.advance(state(), now);
  drain(now);
  release();
}

void ControlHost::drop_orders() {
  std::erase_if(waiting_,
                [](const Waiting& each) { return std::holds_alternative<Order>(each.what); });
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
  if (std::holds_alternative<RunFullPass>(action)) {
    outlet_.run_full_pass(*core_, now);
  } else if (const auto* search = std::get_if<SearchPlan>(&action)) {
    outlet_.search_plan(search->key);
  } else {
    executor_.carry_out(action, state(), now);
  }
}

/// Handles effects in order, so that an acknowledgement leaves only after its report is durable.
void ControlHost::drain(Instant now) {
  for (;;) {
    std::vector<ExecutorEffect> effects = executor_.take();
    if (effects.empty()) return;
    for (ExecutorEffect& effect : effects) {
      if (auto* order = std::get_if<Order>(&effect)) {
        waiting_.push_back({newest_, std::move(*order)});
      } else {
        decide({now, std::get<InputKind>(std::move(effect)), {}}, {});
      }
    }
  }
}

void ControlHost::release() {
  while (!waiting_.empty() && waiting_.front().number <= durable_ && outlet_.may_speak()) {
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    if (const auto* order = std::get_if<Order>(&next.what)) {
      outlet_.send(*order);
    } else {
      std::get<Leave>(next.what)();
    }
  }
}

AgentHost::AgentHost(std::unique_ptr<Core> core, const Setup& setup, HostOutlet& outlet,
                     Instant now)
    : LinkOwner{link_of(core->state(), setup.link, now)},
      ControlHost({std::move(core), owned, outlet, setup.lost_jobs}, now),
      link_setup_(setup.link) {}

void AgentHost::renew_link(Instant now) {
  link_setup_.sequence = owned.sequence();
  owned = link_of(state(), link_setup_, now);
}

}  // namespace orrery
