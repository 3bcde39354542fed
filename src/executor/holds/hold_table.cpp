#include "executor/holds/hold_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/format/field_writer.hpp"

namespace orrery {
namespace {

std::string loan_text(const HoldPool& pool, const Hold& hold) {
  return loan_text(pool, hold.key, hold.id);
}

JobId job_of(const HoldKey& key) { return key.job ? JobId(*key.job) : JobId(); }

/// Reads such a text; none: it is of another manager, or no such text.
std::optional<AgentHold> loan_of(const HoldPool& pool, std::string_view text) {
  if (!text.starts_with(pool.manager)) return std::nullopt;
  text.remove_prefix(pool.manager.size());
  const std::size_t colon = text.find(':');
  if (!text.starts_with('/') || colon == std::string_view::npos) return std::nullopt;
  const std::optional<HoldKey> key = hold_key_of(text.substr(1, colon - 1));
  if (!key) return std::nullopt;
  return AgentHold{*key, std::string(text.substr(colon + 1))};
}

/// Returns the nodes that a hold must not have, as many as fit into a command.
std::vector<std::string> all_avoided(const ManagerState& manager, const Hold& hold) {
  constexpr std::size_t kMost = 4'096;
  const ManagerState::LeftOut& out = manager.left_out;
  std::vector<std::string> all = hold.orders.avoid;
  all.reserve(all.size() + out.useless.size() + out.outside.size() + out.unfit.size());
  for (const auto& [name, until] : out.useless) all.push_back(name);
  all.insert(all.end(), out.outside.begin(), out.outside.end());
  if (!hold.key.job) all.insert(all.end(), out.unfit.begin(), out.unfit.end());
  if (all.size() > kMost) all.resize(kMost);
  return all;
}

/// Whether two ends of a loan are the same: a list gives the time left in seconds.
bool about_the_same(Instant a, Instant b) {
  constexpr Duration kRounding = Duration::seconds(5);
  if (a == b) return true;
  if (a == Instant::max() || b == Instant::max()) return false;
  return a - b < kRounding && b - a < kRounding;
}

}  // namespace

// The id belongs to it: the end of another hold of the same key proves nothing.
std::string loan_text(const HoldPool& pool, const HoldKey& key, std::string_view id) {
  return fmt::format("{}/{}:{}", pool.manager, text_of(key), id);
}

bool is_lent_now(const NodeRecord& record, Instant now) {
  const NodeRecord::Loan& loan = record.loan;
  return !loan.hold.empty() && (loan.until > now || loan.used != Instant::max());
}

HoldTable::HoldTable(HoldSetup setup, const State& state, Instant now)
    : setup_(std::move(setup)), managers_(setup_.pools.size()) {
  for (std::uint32_t manager = 0; manager < setup_.pools.size(); ++manager) {
    managers_[manager].lists.newest = now;
    managers_[manager].next_list = now;
    managers_[manager].next_foreign = now;
    managers_[manager].refused.retry_at = now;
    for (const NodeId node : pool(manager).lent.nodes) {
      const NodeRecord& record = state.node(node);
      const std::optional<AgentHold> loan = loan_of(pool(manager), record.loan.hold);
      if (!loan) continue;
      Hold* hold = find(manager, loan->key);
      if (hold == nullptr) {
        hold = &add({.key = loan->key, .manager = manager, .id = loan->id, .asked = 0},
                    HoldState::kGranted, now);
        if (record.loan.until != Instant::max()) {
          hold->ends = record.loan.until + setup_.timing.margin;
        }
        hold->orders.seen = state.now();
      }
      hold->nodes.push_back(node);
      ++hold->asked;
    }
  }
  for (std::uint32_t n = 0; n < state.setup().topology->node_count(); ++n) {
    const NodeId node(n);
    const NodeRecord& record = state.node(node);
    // A hold that lends the node now has ranks there, whether or not its manager is known.
    if (!manager_of(node) && record.loan.managed && !is_lent_now(record, now)) {
      effects_.emplace_back(NodeGranted{.node = node});
    }
    const bool watched = std::any_of(setup_.pools.begin(), setup_.pools.end(), [&](const auto& of) {
      return std::binary_search(of.nodes.begin(), of.nodes.end(), node);
    });
    // No list of a manager shows the node any more, so no report would end the use by others.
    if (!watched && record.foreign.claim != ForeignClaim::kNone) {
      effects_.emplace_back(ForeignUse{.node = node});
    }
  }
}

std::optional<std::uint32_t> HoldTable::manager_of(NodeId node) const {
  for (std::uint32_t manager = 0; manager < setup_.pools.size(); ++manager) {
    const std::vector<NodeId>& nodes = pool(manager).lent.nodes;
    if (std::binary_search(nodes.begin(), nodes.end(), node)) return manager;
  }
  return std::nullopt;
}

Hold* HoldTable::find(std::uint32_t manager, const HoldKey& key) {
  const auto found = std::find_if(holds_.begin(), holds_.end(), [&](const Hold& hold) {
    return hold.manager == manager && hold.key == key;
  });
  return found == holds_.end() ? nullptr : &*found;
}

bool HoldTable::is_lent(NodeId node) const {
  return std::any_of(holds_.begin(), holds_.end(), [node](const Hold& hold) {
    return std::binary_search(hold.nodes.begin(), hold.nodes.end(), node);
  });
}

Hold& HoldTable::add(Hold hold, HoldState state, Instant now) {
  Hold& added = holds_.emplace_back(std::move(hold));
  set_state(added, state, now);
  return added;
}

void HoldTable::set_state(Hold& hold, HoldState state, Instant now) {
  hold.state = state;
  hold.since = now;
  hold.busy = now;
  hold.orders.missing.reset();
}

void HoldTable::forget(const Hold& hold) { holds_.erase(holds_.begin() + (&hold - holds_.data())); }

// --- Loans --------------------------------------------------------------------------------------

void HoldTable::lend(Hold& hold, NodeId node, const State& state, Instant now) {
  if (hold.state != HoldState::kGranted) {
    ManagerState& manager = managers_[hold.manager];
    if (manager.waits.size() == kWaitsMax) manager.waits.erase(manager.waits.begin());
    manager.waits.push_back(now - hold.since);
    manager.refused.text.clear();
    manager.refused.retry_at = now;
    set_state(hold, HoldState::kGranted, now);
  }
  const auto at = std::lower_bound(hold.nodes.begin(), hold.nodes.end(), node);
  if (at == hold.nodes.end() || *at != node) hold.nodes.insert(at, node);
  const Instant until = hold.ends ? *hold.ends - setup_.timing.margin : Instant::max();
  const NodeRecord& record = state.node(node);
  const std::string text = loan_text(pool(hold.manager), hold);
  if (record.loan.hold == text && about_the_same(record.loan.until, until)) return;
  effects_.emplace_back(NodeGranted{node, text, until, job_of(hold.key)});
}

void HoldTable::take_back(Hold& hold, NodeId node, const std::string& why) {
  std::erase(hold.nodes, node);
  effects_.emplace_back(NodeAbsent{node, false, why});
}

void HoldTable::take_back(Hold& hold, Leftover leftover, const std::string& why) {
  for (const NodeId node : std::exchange(hold.nodes, {})) {
    effects_.emplace_back(NodeAbsent{node, leftover == Leftover::kNone, why});
  }
}

void HoldTable::give_up(Hold& hold, const State& state) {
  const std::string text = loan_text(pool(hold.manager), hold);
  for (const NodeId node : hold.nodes) {
    const NodeRecord::Loan& loan = state.node(node).loan;
    if (loan.hold != text || loan.until <= hold.orders.seen) continue;
    effects_.emplace_back(NodeGranted{node, text, hold.orders.seen, job_of(hold.key)});
  }
  take_back(hold, Leftover::kPossible, "its resource manager has forgotten the hold");
}

void HoldTable::expire(Hold& hold, const std::string& why, Instant now) {
  if (hold.state == HoldState::kReleasing) return;
  const std::string text = loan_text(pool(hold.manager), hold);
  for (const NodeId node : hold.nodes)
    effects_.emplace_back(NodeGranted{node, text, now, job_of(hold.key)});
  hold.ends = now;
  hold.reason = why;
  set_state(hold, HoldState::kReleasing, now);
}

void HoldTable::leave_out(NodeId node) {
  effects_.emplace_back(NodeAbsent{node, false, "its resource manager does not lend it"});
}

void HoldTable::tell(std::vector<InputKind> inputs) {
  for (InputKind& input : inputs) effects_.emplace_back(std::move(input));
}

// --- Orders -------------------------------------------------------------------------------------

void HoldTable::order_list(std::uint32_t manager, Instant now) {
  ManagerState& state = managers_[manager];
  state.listing = now;
  const bool foreign = pool(manager).use != PoolUse::kLent || now >= state.next_foreign;
  effects_.emplace_back(ManagerOrder{manager, ListHolds{.asked = now, .foreign = foreign}});
}

void HoldTable::order_hold(Hold& hold, Instant now) {
  Hold::Orders& orders = hold.orders;
  orders.newest = now;
  orders.missing.reset();
  orders.avoid = managers_[hold.manager].avoid;
  const ManagerState& manager = managers_[hold.manager];
  if (!hold.key.job && !orders.only.valid()) orders.types = manager.left_out.types;
  const Duration time = orders.time > Duration() ? orders.time : pool(hold.manager).lent.time;
  effects_.emplace_back(ManagerOrder{
      hold.manager,
      EnsureHold{.key = hold.key,
                 .nodes = hold.asked,
                 .time = time,
                 .avoid = orders.only.valid() ? orders.others : all_avoided(manager, hold),
                 .tenant = orders.tenant}});
}

void HoldTable::order_release(std::uint32_t manager, const HoldKey& key, const std::string& id) {
  effects_.emplace_back(ManagerOrder{manager, ReleaseHold{key, id}});
}

void HoldTable::order_release(Hold& hold, Instant now) {
  hold.orders.newest = now;
  if (!hold.id.empty()) order_release(hold.manager, hold.key, hold.id);
}

void HoldTable::refuse(std::uint32_t manager, const Refusal& refusal, Instant now) {
  ManagerState& known = managers_[manager];
  const bool busy = refusal.why == HoldRefusal::kBusy;
  const std::string of_job = refusal.job ? fmt::format("job {}: ", *refusal.job) : "";
  const std::string text =
      busy ? refusal.text : fmt::format("{}: {}", word_of(refusal.why), refusal.text);
  known.refused.text = of_job + text;
  known.refused.is_of_job = refusal.job.has_value();
  if (refusal.job) known.refused.jobs[*refusal.job].text = text;
  std::uint32_t& refusals =
      refusal.job ? known.refused.jobs[*refusal.job].refusals : known.refused.refusals;
  Instant& retry_at = refusal.job ? known.refused.jobs[*refusal.job].at : known.refused.retry_at;
  const std::uint32_t doublings = std::min(refusals++, 16u);
  const Duration wait =
      std::min(setup_.timing.retry * (std::int64_t{1} << doublings), setup_.timing.retry_max);
  retry_at = now + (refusal.why == HoldRefusal::kNever ? setup_.timing.retry_max : wait);
}

void HoldTable::forgive(Instant now) {
  for (ManagerState& manager : managers_) {
    manager.refused.retry_at = now;
    manager.refused.refusals = 0;
    manager.refused.jobs.clear();
  }
}

}  // namespace orrery
