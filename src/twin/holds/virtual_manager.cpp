#include "twin/holds/virtual_manager.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace orrery {
namespace {

constexpr Duration kSaves = Duration::seconds(5);
constexpr std::uint64_t kKillWait = 30;      ///< seconds from the end of a job to its last process
constexpr std::uint64_t kRestart = 20;       ///< seconds
constexpr std::uint64_t kKept = 240;         ///< seconds for which an ended job is listed
constexpr std::uint64_t kForeignTime = 120;  ///< seconds
constexpr std::uint64_t kDrainTime = 120;    ///< seconds

bool is_live(HoldPhase phase) {
  return phase == HoldPhase::kRunning || phase == HoldPhase::kEnding;
}

bool is_over(HoldPhase phase) {
  return phase == HoldPhase::kEnded || phase == HoldPhase::kEndedDirty;
}

bool avoids(const ManagerJob& job, const std::string& node) {
  return std::find(job.wish.avoid.begin(), job.wish.avoid.end(), node) != job.wish.avoid.end();
}

Instant whole_seconds(Instant at) { return at - Duration::nanoseconds(at.ns() % 1'000'000'000); }

/// Returns the work of others as a list shows it.
ForeignWork foreign_work(const ManagerJob& job, const Topology& topology, Instant now) {
  ForeignWork work{.id = std::to_string(job.id), .user = "other", .nodes = {}, .left = {}};
  for (const NodeId node : job.nodes) work.nodes.push_back(topology.node_name(node));
  work.left = std::max(job.due - now, Duration());
  return work;
}

/// Draws a time of up to `most` seconds.
Duration draw(ProtocolContext& context, std::uint64_t most) {
  return Duration::milliseconds(static_cast<std::int64_t>(context.rng().below(most * 1000 + 1)));
}

}  // namespace

VirtualManager::VirtualManager(ProtocolContext& context, const Topology& topology,
                               const ManagerRules& rules, Outside outside)
    : context_(context),
      topology_(topology),
      faults_(rules.faults),
      outside_(std::move(outside)),
      first_(static_cast<std::uint32_t>(topology.node_count()) - rules.nodes),
      nodes_(rules.nodes) {}

/// The end of a hold is clean only if none of its starts has left anything.
void VirtualManager::set_phase(ManagerJob& job, HoldPhase phase, std::string reason) {
  const bool left = std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& node) {
    const std::optional<AgentHold>& hold = node.step.hold;
    return hold && hold->key == job.key && hold->id == std::to_string(job.id);
  });
  job.phase = phase == HoldPhase::kEnded && left ? HoldPhase::kEndedDirty : phase;
  if (job.key && context_.traces()) {
    context_.note(fmt::format("{} of {} is {}: {}", job.id, text_of(*job.key),
                              static_cast<int>(job.phase), reason));
  }
  job.reason = std::move(reason);
  job.since = context_.now();
  if (is_over(phase)) job.due = context_.now() + Duration::seconds(10) + draw(context_, kKept);
  if (is_over(phase) && job.record) job.record->ended = whole_seconds(context_.now());
  if (is_over(phase) || phase == HoldPhase::kWaiting) job.nodes.clear();
}

// --- Commands -----------------------------------------------------------------------------------

std::variant<std::uint64_t, HoldRefusal> VirtualManager::submit(const EnsureHold& hold) {
  constexpr std::array<HoldRefusal, 4> kRefusals{HoldRefusal::kBusy, HoldRefusal::kQuota,
                                                 HoldRefusal::kAuth, HoldRefusal::kNever};
  if (hold.nodes > nodes_.size()) return HoldRefusal::kNever;
  if (chance(faults_.answers.refused)) return kRefusals[context_.rng().below(kRefusals.size())];
  ManagerJob& job = jobs_.emplace_back(
      ManagerJob{.id = next_id_++, .key = hold.key, .wish = {hold.nodes, hold.avoid, hold.time}});
  set_phase(job, HoldPhase::kWaiting, "Priority");
  job.due = context_.now() + draw(context_, context_.rng().below(4) == 0 ? 120 : 10);
  return job.id;
}

void VirtualManager::cancel(const ReleaseHold& release) {
  for (ManagerJob& job : jobs_) {
    if (is_over(job.phase) || std::to_string(job.id) != release.id) continue;
    const bool by_id_alone = release.key == HoldKey{};
    if (!by_id_alone && job.key != release.key) continue;
    if (!job.key) outside_.wrong("a release ends the work of others");
    end_job(job, "Cancelled by the cluster's user", kKillWait);
  }
}

ManagerListing VirtualManager::list() const {
  const Instant now = context_.now();
  ManagerListing list{.asked = {},
                      .complete = true,
                      .trouble = {},
                      .holds = {},
                      .nodes = {},
                      .foreign = std::vector<ForeignWork>()};
  list.holds.reserve(jobs_.size());
  for (const ManagerJob& job : jobs_) {
    if (!job.key) {
      if (is_live(job.phase)) list.foreign->push_back(foreign_work(job, topology_, now));
      continue;
    }
    HoldSeen& seen = list.holds.emplace_back(HoldSeen{
        .key = *job.key, .id = std::to_string(job.id), .phase = job.phase, .reason = job.reason});
    if (job.phase == HoldPhase::kWaiting) seen.asked = job.wish.nodes;
    if (job.phase == HoldPhase::kWaiting && job.due > now) seen.starts_in = job.due - now;
    if (job.record && job.phase != HoldPhase::kWaiting) seen.started = job.record->started;
    if (job.record && is_over(job.phase)) {
      seen.ended = job.record->ended;
      seen.nodes = job.record->nodes;
    }
    if (!is_live(job.phase)) continue;
    for (const NodeId node : job.nodes) seen.nodes.push_back(topology_.node_name(node));
    const std::int64_t second = Duration::seconds(1).count_ns();
    const Duration left = std::max(job.due - now, Duration());
    seen.left = Duration::seconds(left.count_ns() / second);
  }
  list.nodes.reserve(nodes_.size());
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const bool down = nodes_[n].down_until > now;
    const bool drained = nodes_[n].drained_until > now;
    list.nodes.push_back({.name = topology_.node_name(NodeId::at(first_ + n)),
                          .out_of_service = down || drained,
                          .drained = drained,
                          .reason = drained ? "fan"
                                    : down  ? "Not responding"
                                            : ""});
  }
  return list;
}

// --- Nodes --------------------------------------------------------------------------------------

void VirtualManager::fail_node(NodeId node) {
  Node& failed = at(node);
  failed.down_until = std::max(failed.down_until, context_.now() + Duration::seconds(10));
  const std::uint64_t run = std::exchange(failed.step, {}).run;
  failed.ending = false;
  failed.doubt = true;
  if (run == 0) return;
  for (ManagerJob& job : jobs_) {
    if (job.run == run && is_live(job.phase)) fail(job, node);
  }
}

void VirtualManager::exit_step(NodeId node) { end_step(node, 5); }

/// Ends the step of a node within that many seconds: its agent first, or all at once.
void VirtualManager::end_step(NodeId node, std::uint64_t grace) {
  Node& here = at(node);
  if (here.step.run == 0 || here.ending) return;
  here.ending = true;
  const auto still = [this, node, run = here.step.run] { return at(node).step.run == run; };
  const Duration agent = draw(context_, grace);
  const Duration rest = context_.rng().below(2) == 0 ? Duration() : draw(context_, grace);
  if (here.step.hold) {
    if (context_.rng().below(4) != 0) outside_.warn(node);
    context_.time().after(agent, [this, node, still] {
      if (still()) outside_.end_agent(node);
    });
  }
  context_.time().after(agent + rest, [this, node, still] {
    if (!still()) return;
    if (at(node).step.hold) outside_.end(node);
    at(node).step = {};
    at(node).ending = false;
  });
}

/// A node of the job fails: what runs there ends at once, without its agent, or later.
void VirtualManager::fail(ManagerJob& job, NodeId node) {
  const std::vector<NodeId> nodes = job.nodes;
  set_phase(job, HoldPhase::kEndedDirty, "NodeFail");
  for (const NodeId other : nodes) {
    at(other).doubt = true;
    if (other != node && at(other).step.run == job.run) end_step(other, kKillWait);
  }
  Node& failed = at(node);
  const Duration away = Duration::seconds(5) + draw(context_, 120);
  failed.down_until = std::max(failed.down_until, context_.now() + away);
  if (failed.step.run != job.run || failed.ending) return;
  const bool hold = failed.step.hold.has_value();
  switch (context_.rng().below(3)) {
    case 0:
      if (hold) outside_.end(node);
      failed.step = {};
      return;
    case 1:
      if (hold) outside_.end_agent(node);
      failed.step = {};
      return;
    default:
      return end_step(node, 120);
  }
}

// --- Life of the jobs ---------------------------------------------------------------------------

void VirtualManager::tick() {
  const Instant now = context_.now();
  if (!answers()) return;
  if (chance(faults_.crash)) return crash();
  if (now - saved_.at >= kSaves) saved_ = {now, jobs_, next_id_};
  compare();
  for (ManagerJob& job : jobs_) {
    if (job.key) strike(job);
    advance(job);
  }
  std::erase_if(jobs_,
                [now](const ManagerJob& job) { return is_over(job.phase) && job.due <= now; });
  if (chance(faults_.foreign)) submit_foreign();
  if (chance(faults_.drained)) {
    context_.note("an administrator of the manager drains a node");
    nodes_[context_.rng().below(nodes_.size())].drained_until = now + draw(context_, kDrainTime);
  }
}

void VirtualManager::crash() {
  context_.note("the resource manager restarts and forgets");
  jobs_ = saved_.jobs;
  next_id_ = saved_.next_id;
  back_at_ = context_.now() + draw(context_, kRestart);
  // Others submit again what was lost, and get the ids of what was lost.
  const std::uint64_t others = faults_.foreign > 0 ? context_.rng().below(4) : 0;
  context_.time().after(back_at_ - context_.now(), [this, others] {
    for (std::uint64_t n = 0; n < others; ++n) submit_foreign();
  });
}

void VirtualManager::compare() {
  for (ManagerJob& job : jobs_) {
    if (job.phase != HoldPhase::kRunning) continue;
    std::erase_if(job.nodes, [&](NodeId node) {
      const bool left = at(node).step.run == job.run;
      if (!left) at(node).doubt = true;
      return !left;
    });
    if (job.nodes.empty()) set_phase(job, HoldPhase::kEnded, "Completed");
  }
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const NodeId node = NodeId::at(first_ + n);
    const std::uint64_t run = nodes_[n].step.run;
    const bool known = std::any_of(jobs_.begin(), jobs_.end(), [&](const ManagerJob& job) {
      return job.run == run && is_live(job.phase);
    });
    if (run == 0 || known) continue;
    nodes_[n].doubt = true;
    end_step(node, context_.rng().below(4) == 0 ? 300 : 30);
  }
}

/// Others interfere with a hold.
void VirtualManager::strike(ManagerJob& job) {
  if (job.phase == HoldPhase::kWaiting && chance(faults_.holds.cancelled)) {
    return end_job(job, "Cancelled by an administrator", kKillWait);
  }
  if (job.phase == HoldPhase::kRunning) strike_running(job);
}

void VirtualManager::strike_running(ManagerJob& job) {
  const HoldFaults& faults = faults_.holds;
  const NodeId one = job.nodes[context_.rng().below(job.nodes.size())];
  if (chance(faults.evicted)) {
    job.requeued = chance(faults.requeued);
    return end_job(job, "Preempted", context_.rng().below(3) * 15);
  }
  if (chance(faults.dirty)) {
    context_.note("the manager says that a node of a hold fails");
    return fail(job, one);
  }
  if (chance(faults.shrunk)) {
    std::erase(job.nodes, one);
    at(one).doubt = true;
    end_step(one, 10);
    if (job.nodes.empty()) end_job(job, "Completed", kKillWait);
  } else if (chance(faults.suspended)) {
    job.reason = "Suspended";
    outside_.freeze(one, Frozen::kYes);
    context_.time().after(draw(context_, 40), [this, one] { outside_.freeze(one, Frozen::kNo); });
  } else if (chance(faults.retimed)) {
    job.due = context_.now() + draw(context_, 1800);
  }
}

void VirtualManager::advance(ManagerJob& job) {
  const Instant now = context_.now();
  if (job.phase == HoldPhase::kRunning && now >= job.due) {
    end_job(job, "TimeLimit", kKillWait);
  } else if (job.phase == HoldPhase::kEnding) {
    const bool left = std::any_of(job.nodes.begin(), job.nodes.end(),
                                  [&](NodeId node) { return at(node).step.run == job.run; });
    if (left) return;
    for (const NodeId node : job.nodes) {
      if (job.key) at(node).proven = now;
      if (job.requeued) at(node).doubt = true;
    }
    set_phase(job, job.requeued ? HoldPhase::kWaiting : HoldPhase::kEnded, job.reason);
    if (job.requeued) job.due = now + draw(context_, 60);
    job.requeued = false;
  } else if (job.phase == HoldPhase::kWaiting && now >= job.due && may_start(job)) {
    std::vector<NodeId> free;
    free.reserve(nodes_.size());
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const NodeId id = NodeId::at(first_ + n);
      const Node& node = nodes_[n];
      const bool serves = node.down_until <= now && node.drained_until <= now;
      if (node.step.run == 0 && serves && !avoids(job, topology_.node_name(id))) free.push_back(id);
    }
    while (free.size() > job.wish.nodes) {
      free.erase(free.begin() + static_cast<std::ptrdiff_t>(context_.rng().below(free.size())));
    }
    if (free.size() == job.wish.nodes) start(job, std::move(free));
  }
}

/// One hold of a key runs at a time, as long as the manager keeps to it.
bool VirtualManager::may_start(const ManagerJob& job) {
  const bool other = job.key && std::any_of(jobs_.begin(), jobs_.end(), [&](const ManagerJob& at) {
                       return at.key == job.key && is_live(at.phase);
                     });
  return !other || chance(faults_.holds.not_singular);
}

void VirtualManager::start(ManagerJob& job, std::vector<NodeId> nodes) {
  job.run = ++runs_;
  set_phase(job, HoldPhase::kRunning, "None");
  job.due = context_.now() + job.wish.time;
  job.nodes = std::move(nodes);
  job.record =
      ManagerJob::Record{.started = whole_seconds(context_.now()), .ended = {}, .nodes = {}};
  for (const NodeId node : job.nodes) job.record->nodes.push_back(topology_.node_name(node));
  for (const NodeId node : job.nodes) {
    Node& here = at(node);
    here.step = {job.run, {}};
    if (!job.key) continue;
    here.step.hold = AgentHold{*job.key, std::to_string(job.id)};
    outside_.begin(node, here.step,
                   chance(faults_.holds.no_agent) ? AgentComes::kNever : AgentComes::kSoon);
  }
}

void VirtualManager::end_job(ManagerJob& job, std::string reason, std::uint64_t grace) {
  if (job.phase == HoldPhase::kWaiting) return set_phase(job, HoldPhase::kEnded, std::move(reason));
  if (job.phase != HoldPhase::kRunning) return;
  set_phase(job, HoldPhase::kEnding, std::move(reason));
  for (const NodeId node : job.nodes) {
    if (at(node).step.run == job.run) end_step(node, grace);
  }
}

void VirtualManager::submit_foreign() {
  ManagerJob& job = jobs_.emplace_back(ManagerJob{.id = next_id_++, .key = {}, .wish = {}});
  job.wish.time = Duration::seconds(10) + draw(context_, kForeignTime);
  set_phase(job, HoldPhase::kWaiting, "Priority");
  job.due = context_.now();
}

void VirtualManager::make_calm() {
  faults_ = {};
  back_at_ = context_.now();
  for (Node& node : nodes_) node.drained_until = context_.now();
}

}  // namespace orrery
