#include "executor/holds/hold_keeper.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "executor/managers/lent_service.hpp"

namespace orrery {
namespace {

/// Orders of one look; more follow with the next.
constexpr std::uint32_t kAsksMost = 64;

/// Whether a job waits for nodes, now or after the pause that follows a failure.
bool waits(const State& state, JobId id) {
  if (!state.has(id)) return false;
  const Job& job = state.job(id);
  const bool pauses =
      job.phase == JobPhase::kHeld && job.hold == JobHold::kNone && job.not_before > state.now();
  return job.phase == JobPhase::kQueued || pauses;
}

/// Returns how many of the nodes are not drained, and of a type that waiting jobs can use.
std::uint32_t fit_nodes(const HoldNodes& lent, const HoldView& view) {
  return static_cast<std::uint32_t>(
      std::count_if(lent.nodes.begin(), lent.nodes.end(), [&](NodeId node) {
        const FleetTypeId type = view.state.setup().topology->group(node).type;
        return !is_drained(view.state, node, view.now) && is_useful(type, view.types);
      }));
}

}  // namespace

/// Returns why a hold that no ranks use is given back; empty: it is kept.
std::string HoldKeeper::why_useless(const Hold& hold, const HoldUse& use, const HoldView& view) {
  ManagerState& known = table_.managers()[hold.manager];
  if (table_.pool(hold.manager).lent.most == 0) return "its manager is to lend no nodes";
  if (hold.state != HoldState::kGranted) {
    const std::vector<std::string>& avoid = known.avoid;
    const bool resumed =
        std::any_of(hold.orders.avoid.begin(), hold.orders.avoid.end(), [&](const auto& name) {
          return std::find(avoid.begin(), avoid.end(), name) == avoid.end();
        });
    if (resumed) return "a node that it avoids is in service again";
    return may_fit(hold, view.types) ? "" : "jobs wait for nodes of other types";
  }
  if (hold.nodes.empty()) return "";
  if (use.drained == use.held) return "its nodes are drained";
  if (is_mute(view.state, hold)) {
    if (view.now - hold.since < view.timing.join) return "";
    constexpr const char* kWhy = "no agent of the hold has joined";
    table_.refuse(hold.manager, {HoldRefusal::kBusy, kWhy, hold.key.job}, view.now);
    return kWhy;
  }
  const bool idle = view.now - hold.busy >= table_.pool(hold.manager).idle;
  if (use.able > 0 || !idle) return "";
  if (hold.ends && view.now >= *hold.ends - view.timing.margin) return "its time is over";
  constexpr const char* kWhy = "the nodes of the hold take no jobs";
  table_.refuse(hold.manager, {HoldRefusal::kBusy, kWhy, hold.key.job}, view.now);
  return kWhy;
}

/// Counts the holds of a manager; those that are of no use are released.
HoldUse HoldKeeper::count(std::uint32_t manager, const HoldView& view) {
  HoldUse all;
  for (Hold& hold : table_.holds()) {
    if (hold.manager != manager || hold.state == HoldState::kReleasing) continue;
    const HoldUse use = use_of(hold, view);
    if (use.used) hold.busy = view.now;
    if (hold.state == HoldState::kGranted && speaks(view.state, hold)) {
      table_.managers()[manager].refused.refusals = 0;
    }
    std::string why;
    if (!use.used) {
      why = hold.key.job ? why_unneeded(hold, use, view) : why_useless(hold, use, view);
    }
    if (why.empty() && hold.key.job && !use.used) {
      all.held += use.held;  // it serves its job alone
      all.fit += use.fit;
    } else if (why.empty()) {
      all += use;
    } else {
      release(hold, why, view.now);
    }
  }
  return all;
}

void HoldKeeper::look(std::uint32_t manager, const Core& core, Instant now) {
  const HoldPool& pool = table_.pool(manager);
  const HoldTiming& timing = table_.setup().timing;
  ManagerState& known = table_.managers()[manager];
  DrainedNodes drained = drained_nodes(pool, core.state(), now);
  known.avoid = std::move(drained.avoid);
  std::erase_if(known.left_out.useless, [&](const auto& each) { return now >= each.second; });
  HoldNodes lent = pool.lent;
  const auto nodes = static_cast<std::uint32_t>(lent.nodes.size());
  const std::uint32_t lendable = nodes - drained.count;
  lent.most = std::min(lent.most, lendable);
  const std::vector<JobNeeds> jobs = job_needs(core, lent, table_.usable(manager));
  if (pool.holds_for == HoldsFor::kOneJob) return look_at_jobs(manager, {core, lent, jobs, now});
  const NodesNeeded needed = nodes_needed(jobs, lent, *core.state().setup().topology);
  const std::vector<FleetTypeId> types = types_needed(jobs);
  const HoldView view{core.state(), now, timing, needed.longest, types};
  recover(manager, core.state(), now);
  HoldUse all = count(manager, view);
  if (!jobs.empty()) release_vain(manager, jobs.front(), view);
  const std::uint32_t for_jobs = std::min(lent.most, all.busy + needed.nodes);
  const std::uint32_t want = std::min(lent.most, std::max(pool.keep, for_jobs));
  if (all.able > want) {
    release_idle(manager, {all.able - want, all.useful - std::min(all.useful, for_jobs)}, view);
  }
  const auto is_enough = [&] { return all.useful >= for_jobs && all.able >= want; };
  if (!may_ask(manager, now)) return;
  const std::uint32_t fit = fit_nodes(lent, view);
  for (std::uint32_t asks = 0; !is_enough() && asks < kAsksMost; ++asks) {
    if (all.held >= pool.lent.most || all.fit >= fit) {
      return release_short(manager, for_jobs - std::min(all.useful, for_jobs), view);
    }
    // A job that needs several whole nodes gets them at once: none of them waits for the others.
    const NodesLacking lacking = nodes_lacking(jobs, all.useful - all.busy);
    const std::uint32_t size = std::min(
        {std::max(pool.pilot_nodes, lacking.nodes), pool.lent.most - all.held, fit - all.fit});
    leave_out(manager, lacking.types, fit - all.fit - size, core.state());
    ask(manager, size, now);
    all.able += size;
    all.useful += size;
    all.held += size;
    all.fit += size;
  }
}

/// Sets the nodes that the next order excludes: those of other types, and those that were useless,
/// unless the order needs some of them, beyond the `spare` nodes that remain.
void HoldKeeper::leave_out(std::uint32_t manager, const std::vector<FleetTypeId>& types,
                           std::uint32_t spare, const State& state) {
  ManagerState::LeftOut& out = table_.managers()[manager].left_out;
  if (out.useless.size() > spare) out.useless.clear();
  if (out.types == types) return;
  out.types = types;
  out.unfit.clear();
  const Topology& topology = *state.setup().topology;
  for (const NodeId node : table_.pool(manager).lent.nodes) {
    if (is_useful(topology.group(node).type, types)) continue;
    out.unfit.push_back(topology.node_name(node));
  }
}

bool HoldKeeper::may_ask(std::uint32_t manager, Instant now) const {
  const ManagerState& known = table_.managers()[manager];
  return now >= known.refused.retry_at && known.newer.empty() && known.trouble.empty();
}

void HoldKeeper::ask(std::uint32_t manager, std::uint32_t nodes, Instant now) {
  const HoldKey key{.id = ++asked_, .epoch = table_.setup().term, .job = {}};
  Hold& hold = table_.add({.key = key, .manager = manager, .asked = nodes}, HoldState::kAsked, now);
  table_.order_hold(hold, now);
}

/// Requests a hold of each lost node on which ranks may be left and which its manager could lend:
/// only its next agent shows what is left there, and the job that had the node waits for it.
void HoldKeeper::recover(std::uint32_t manager, const State& state, Instant now) {
  constexpr std::size_t kOthersMost = 4'096;  // as many as fit into a command
  const HoldPool& pool = table_.pool(manager);
  const ManagerState& known = table_.managers()[manager];
  if (!may_ask(manager, now) || pool.lent.nodes.size() > kOthersMost) return;
  const Topology& topology = *state.setup().topology;
  for (const NodeId node : pool.lent.nodes) {
    const bool is_left = state.node(node).health == NodeHealth::kLost && has_ranks(state, node) &&
                         !table_.is_lent(node) && !is_drained(state, node, now);
    if (!is_left) continue;
    const std::string name = topology.node_name(node);
    const bool out = std::ranges::any_of(known.out_of_service, [&](const std::string& each) {
      return each.starts_with(name + " (");
    });
    const bool is_asked = std::ranges::any_of(
        table_.holds(), [node](const Hold& hold) { return hold.orders.only == node; });
    if (out || is_asked || held_nodes(table_.holds(), manager) >= pool.lent.most) continue;
    const HoldKey key{.id = ++asked_, .epoch = table_.setup().term, .job = {}};
    Hold& hold = table_.add({.key = key, .manager = manager}, HoldState::kAsked, now);
    hold.orders.only = node;
    for (const NodeId other : pool.lent.nodes) {
      if (other != node) hold.orders.others.push_back(topology.node_name(other));
    }
    table_.order_hold(hold, now);
  }
}

// --- Holds of one job each ----------------------------------------------------------------------

/// Returns why the hold of one job is given back on which no ranks are; empty: it is kept.
std::string HoldKeeper::why_unneeded(const Hold& hold, const HoldUse& use, const HoldView& view) {
  if (!waits(view.state, JobId(*hold.key.job))) return "its job does not need it";
  std::string why = why_useless(hold, use, view);
  if (!why.empty() || hold.state != HoldState::kGranted) return why;
  if (view.now - hold.since >= view.timing.join) {
    if (use.able < hold.asked) {
      constexpr const char* kWhy = "a node of the hold takes no jobs";
      table_.refuse(hold.manager, {HoldRefusal::kBusy, kWhy, hold.key.job}, view.now);
      return kWhy;
    }
    if (view.now - hold.busy >= table_.pool(hold.manager).idle) {
      constexpr const char* kWhy = "its job does not start on it";
      table_.refuse(hold.manager, {HoldRefusal::kBusy, kWhy, hold.key.job}, view.now);
      return kWhy;
    }
  }
  return use.useful < use.able ? "the hold ends too soon for its job" : "";
}

/// Looks at a manager whose holds serve one job each.
void HoldKeeper::look_at_jobs(std::uint32_t manager, const JobsLook& look) {
  const State& state = look.core.state();
  const HoldTiming& timing = table_.setup().timing;
  std::map<JobId, Duration> lengths;
  for (const JobNeeds& each : look.needs) lengths[each.job] = each.longest;
  std::uint32_t held = 0;
  std::set<JobId> served;
  for (Hold& hold : table_.holds()) {
    if (hold.manager != manager || hold.state == HoldState::kReleasing) continue;
    const bool of_job = hold.key.job.has_value();
    const auto length = of_job ? lengths.find(JobId(*hold.key.job)) : lengths.end();
    const HoldView view{state, look.now, timing,
                        length == lengths.end() ? Duration() : length->second};
    const HoldUse use = use_of(hold, view);
    if (use.used) hold.busy = look.now;
    if (hold.state == HoldState::kGranted && speaks(state, hold)) {
      table_.managers()[manager].refused.refusals = 0;
    }
    std::string why;
    if (!use.used) why = of_job ? why_unneeded(hold, use, view) : "its manager lends to jobs alone";
    if (!why.empty()) {
      release(hold, why, look.now);
      continue;
    }
    held += use.held;
    if (of_job) served.insert(JobId(*hold.key.job));
  }
  std::map<std::uint32_t, ManagerState::Refused::Retry>& retries =
      table_.managers()[manager].refused.jobs;
  std::erase_if(retries, [&](const auto& each) { return !waits(state, JobId(each.first)); });
  if (!may_ask(manager, look.now)) return;
  std::uint32_t asks = 0;
  for (const JobNeeds& each : look.needs) {
    const auto retry = retries.find(each.job.value());
    const bool pauses = retry != retries.end() && look.now < retry->second.at;
    if (pauses || served.contains(each.job)) continue;
    const std::uint32_t nodes = nodes_needed(each, look.lent, *state.setup().topology);
    if (held + nodes > look.lent.most || ++asks > kAsksMost) return;
    ask_for_job(manager, {each.job, nodes}, look);
    held += nodes;
  }
}

void HoldKeeper::ask_for_job(std::uint32_t manager, const JobWish& wish, const JobsLook& look) {
  Hold hold{.key = {.id = ++asked_, .epoch = table_.setup().term, .job = wish.job.value()},
            .manager = manager,
            .asked = wish.nodes};
  wish_for_job(hold, look.core.state());
  table_.order_hold(table_.add(std::move(hold), HoldState::kAsked, look.now), look.now);
}

/// A hold lasts as long as its job may run, with the times before its start and after its end.
void HoldKeeper::wish_for_job(Hold& hold, const State& state) const {
  if (!hold.key.job || !state.has(JobId(*hold.key.job))) return;
  const Job& job = state.job(JobId(*hold.key.job));
  if (!job.submission) return;  // it has ended, so that its hold is given back
  const HoldPool& pool = table_.pool(hold.manager);
  const HoldTiming& timing = table_.setup().timing;
  const std::optional<Duration> limit = job.submission->request.time_limit;
  hold.orders.time =
      limit ? std::min(pool.lent.time, *limit + timing.join + timing.margin) : pool.lent.time;
  hold.orders.tenant = state.tenants().path(job.tenant);
  if (!hold.nodes.empty()) return;
  const HoldOffer offer{pool.lent, table_.usable(hold.manager)};
  const std::optional<JobNeeds> needs = needs_of(state, job.id, offer);
  if (needs) hold.asked = nodes_needed(*needs, pool.lent, *state.setup().topology);
}

// --- Holds that are given back ------------------------------------------------------------------

bool HoldKeeper::is_idle(const Hold& hold, const HoldUse& use, Instant now) const {
  return hold.state != HoldState::kReleasing && !use.used &&
         now - hold.busy >= table_.pool(hold.manager).idle;
}

/// Releases holds that were idle for long, the newest first, up to that many nodes that take jobs,
/// and that are of use to jobs.
void HoldKeeper::release_idle(std::uint32_t manager, Surplus nodes, const HoldView& view) {
  std::vector<Hold>& holds = table_.holds();
  for (std::size_t at = holds.size(); at-- > 0;) {
    Hold& hold = holds[at];
    const HoldUse use = use_of(hold, view);
    if (hold.manager != manager || !is_idle(hold, use, view.now)) continue;
    if (use.able > nodes.able || use.useful > nodes.useful) continue;
    nodes.able -= use.able;
    nodes.useful -= use.useful;
    release(hold, "the hold was idle", view.now);
  }
}

/// Releases idle holds that no job that waits can use, to make room for that many nodes.
void HoldKeeper::release_short(std::uint32_t manager, std::uint32_t nodes, const HoldView& view) {
  for (Hold& hold : table_.holds()) {
    if (nodes == 0) return;
    const HoldUse use = use_of(hold, view);
    if (hold.manager != manager || !is_idle(hold, use, view.now) || use.useful > 0) continue;
    nodes -= std::min(nodes, use.held);
    release(hold, "no waiting job can use the hold", view.now);
  }
}

/// Releases idle holds when the first waiting job has not started for long although their nodes are
/// enough for it: they are in the wrong place, or the job has another need. Each such release also
/// excludes one node for a while, so that other sets of nodes are tried in turn.
void HoldKeeper::release_vain(std::uint32_t manager, const JobNeeds& first, const HoldView& view) {
  const HoldView own{view.state, view.now, view.timing, first.longest, first.types};
  const HoldPool& pool = table_.pool(manager);
  const Topology& topology = *view.state.setup().topology;
  std::uint32_t needed = nodes_needed(first, pool.lent, topology);
  std::uint32_t free = 0;
  for (const Hold& hold : table_.holds()) {
    if (hold.manager == manager) free += free_nodes(hold, own);
  }
  if (free < needed) {
    vain_.erase(manager);
    return;
  }
  const Instant since = vain_.emplace(manager, view.now).first->second;
  if (view.now - since < pool.idle) return;
  constexpr const char* kWhy = "waiting jobs do not start on the idle nodes of the hold";
  std::vector<Hold>& holds = table_.holds();
  NodeId lowest;
  for (std::size_t at = holds.size(); at-- > 0 && needed > 0;) {
    Hold& hold = holds[at];
    const std::uint32_t here = hold.manager == manager ? free_nodes(hold, own) : 0;
    if (here == 0 || !is_idle(hold, use_of(hold, own), view.now)) continue;
    needed -= std::min(needed, here);
    lowest = std::min(lowest, hold.nodes.front());
    release(hold, kWhy, view.now);
  }
  if (lowest == NodeId()) return;
  vain_.erase(manager);
  constexpr Duration kLeftOut = Duration::hours(1);
  table_.managers()[manager].left_out.useless[topology.node_name(lowest)] = view.now + kLeftOut;
  table_.refuse(manager, {HoldRefusal::kBusy, kWhy, {}}, view.now);
}

/// Precondition: no rank is on its nodes.
void HoldKeeper::release(Hold& hold, const std::string& why, Instant now) {
  table_.take_back(hold, Leftover::kPossible, why);
  hold.reason = why;
  table_.set_state(hold, HoldState::kReleasing, now);
  table_.order_release(hold, now);
}

}  // namespace orrery
