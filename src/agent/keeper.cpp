#include "agent/keeper.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/assert.hpp"

namespace orrery {
namespace {

std::vector<RankSlot> slots_of(const std::vector<RankShare>& shares) {
  std::vector<RankSlot> slots;
  slots.reserve(shares.size() * 8);
  for (const RankShare& share : shares) {
    for (std::uint64_t left = share.devices; left != 0; left &= left - 1) {
      slots.push_back({share.gang, static_cast<std::uint32_t>(std::countr_zero(left))});
    }
  }
  std::sort(slots.begin(), slots.end());
  return slots;
}

std::uint32_t rank_on(const RankSlot& slot, const std::vector<RankShare>& shares) {
  for (const RankShare& share : shares) {
    if (share.gang != slot.gang) continue;
    const std::uint64_t below = share.devices & ((std::uint64_t{1} << slot.device) - 1);
    const auto at = static_cast<std::size_t>(std::popcount(below));
    if (at < share.ranks.size()) return share.ranks[at];
  }
  return 0;
}

/// Returns "exit status 3 of rank 5" or "signal 9 ended rank 5", with further evidence if there is
/// any.
std::string evidence_of(const ProcessExit& exit, std::uint32_t rank) {
  std::string text = exit.status > 128
                         ? fmt::format("signal {} ended rank {}", exit.status - 128, rank)
                         : fmt::format("exit status {} of rank {}", exit.status, rank);
  if (!exit.cause.evidence.empty()) text += ": " + exit.cause.evidence;
  return text;
}

}  // namespace

Keeper::Keeper(OrderStamp stamp, const LaunchRanks& launch, Instant now)
    : fence_(launch.token), launch_(launch), start_at_(now + launch.delay), heard_(launch.heard) {
  ORRERY_ASSERT(!slots_of(launch.shares).empty(), "a keeper holds at least one rank");
  report_.token = launch.token;
  report_.stage = RankStage::kPreparing;
  report_.applied = stamp;
  expect_clocks();
  tell();
  keep_time(now);
}

void Keeper::on_order(const KeeperOrder& order, Instant now) {
  keep_time(now);
  const auto takes = [&](const FenceToken& token) {
    if (token < report_.token || report_.stage == RankStage::kGone) return false;
    report_.applied = std::max(report_.applied, order.stamp);
    return true;
  };
  if (const auto* launch = std::get_if<LaunchRanks>(&order.what)) {
    if (report_.stage < RankStage::kEnding && takes(launch->token)) follow(*launch, now);
  } else if (const auto* ending = std::get_if<EndRanks>(&order.what)) {
    if (takes(ending->token)) end(ending->grace, now);
  } else if (const auto* killing = std::get_if<KillRanks>(&order.what)) {
    if (takes(killing->token)) kill();
  } else if (const auto* renewal = std::get_if<RenewLease>(&order.what)) {
    if (renewal->heard <= now) heard_ = std::max(heard_, renewal->heard);
    return;
  } else if (std::holds_alternative<ReleaseKeeper>(order.what)) {
    if (report_.stage == RankStage::kGone) effects_.push_back(ExitKeeper{});
    return;
  }
  tell();
}

void Keeper::follow(const LaunchRanks& launch, Instant now) {
  heard_ = std::max(heard_, std::min(launch.heard, now));
  if (launch.token == report_.token) {
    change_clocks(launch.shares);
    return;
  }
  launch_ = launch;
  report_.token = launch.token;
  expect_clocks();
  (void)fence_.admit(launch.token);  // from here on no line of an older epoch counts
  if (report_.stage == RankStage::kPreparing) return;
  report_.stage = RankStage::kStarting;
  const std::vector<RankSlot> wanted = slots_of(launch.shares);
  std::vector<RankSlot> surplus;
  surplus.reserve(processes_.size());
  for (const Process& process : processes_) {
    if (!std::binary_search(wanted.begin(), wanted.end(), process.slot)) {
      surplus.push_back(process.slot);
    }
  }
  leave(surplus, now + launch.grace);
  start_processes();
}

/// Expects the ordered clocks until on_clock says otherwise.
void Keeper::expect_clocks() {
  report_.clocks.clear();
  for (const RankShare& share : launch_.shares) report_.clocks.push_back(share.clock);
}

void Keeper::on_clock(std::uint32_t gang, double clock) {
  for (std::size_t at = 0; at < launch_.shares.size(); ++at) {
    if (launch_.shares[at].gang == gang) report_.clocks[at] = clock;
  }
  tell();
}

/// Changes clocks; a resent order is tried again.
void Keeper::change_clocks(const std::vector<RankShare>& shares) {
  for (std::size_t at = 0; at < launch_.shares.size(); ++at) {
    RankShare& held = launch_.shares[at];
    for (const RankShare& share : shares) {
      if (share.gang != held.gang || share.clock == report_.clocks[at]) continue;
      held.clock = report_.clocks[at] = share.clock;
      // Processes that have not started get the clock with their start.
      if (report_.stage > RankStage::kPreparing) effects_.push_back(CapClock{held});
    }
  }
}

/// Starts the processes, but waits while a process that must leave still has a device that is
/// needed.
void Keeper::start_processes() {
  const std::vector<RankSlot> wanted = slots_of(launch_.shares);
  for (const Process& process : processes_) {
    if (process.leaving && std::binary_search(wanted.begin(), wanted.end(), process.slot)) return;
  }
  std::vector<Process> processes;
  processes.reserve(wanted.size() + processes_.size());
  for (const Process& process : processes_) {
    if (process.leaving) processes.push_back(process);
  }
  std::vector<RankSlot> fresh;
  fresh.reserve(wanted.size());
  for (const RankSlot& slot : wanted) {
    processes.push_back({slot});
    const bool runs = std::any_of(processes_.begin(), processes_.end(),
                                  [&](const Process& process) { return process.slot == slot; });
    if (!runs) fresh.push_back(slot);
  }
  std::sort(processes.begin(), processes.end(),
            [](const Process& a, const Process& b) { return a.slot < b.slot; });
  processes_ = std::move(processes);
  started_epoch_ = report_.token.epoch;
  report_.stage = RankStage::kStarting;
  effects_.push_back(StartProcesses{launch_.token, launch_.shares, std::move(fresh)});
}

void Keeper::on_process_up(const ProcessUp& up, Instant now) {
  keep_time(now);
  for (Process& process : processes_) {
    if (process.slot == up.slot) process.up_epoch = std::max(process.up_epoch, {up.epoch});
  }
  note_up();
}

void Keeper::note_up() {
  const std::uint32_t epoch = report_.token.epoch;
  if (report_.stage != RankStage::kStarting || started_epoch_ != epoch) return;
  for (const Process& process : processes_) {
    if (!process.leaving && process.up_epoch < epoch) return;
  }
  report_.stage = RankStage::kRunning;
  report_.up_epoch = epoch;
  tell();
}

void Keeper::on_process_exit(const ProcessExit& exit, Instant now) {
  keep_time(now);
  const auto at = std::find_if(processes_.begin(), processes_.end(),
                               [&](const Process& process) { return process.slot == exit.slot; });
  if (at == processes_.end()) return;
  const bool asked = at->leaving || report_.stage >= RankStage::kEnding;
  processes_.erase(at);
  if (!asked && exit.status != 0) {
    const std::uint32_t rank = rank_on(exit.slot, launch_.shares);
    Blame blame = exit.cause;
    blame.evidence = evidence_of(exit, rank);
    const bool own = blame.layer == FaultLayer::kProgram;
    report_.end = AttemptEnd{own ? ExitKind::kProgram : ExitKind::kClaim, std::move(blame),
                             RankExit{rank, static_cast<std::uint32_t>(exit.status)}};
    end(launch_.grace, now);
    if (!processes_.empty()) tell();
  } else if (asked && report_.stage == RankStage::kStarting &&
             started_epoch_ < report_.token.epoch) {
    start_processes();
  } else if (processes_.empty() && report_.stage < RankStage::kEnding) {
    // This also applies if a process that was to leave exits last.
    report_.end = AttemptEnd{.exit = RankExit{rank_on(exit.slot, launch_.shares), 0}};
    report_.stage = RankStage::kEnding;
  }
  if (asked && report_.stage < RankStage::kEnding && all_shed()) tell();
  note_up();
  note_gone();
}

void Keeper::on_hang(std::string evidence, Instant now) {
  keep_time(now);
  if (report_.stage < RankStage::kStarting || report_.stage >= RankStage::kEnding) return;
  report_.end = AttemptEnd{ExitKind::kProgram,
                           {.layer = FaultLayer::kProgram, .evidence = std::move(evidence)}};
  end(launch_.grace, now);
  if (!processes_.empty()) tell();
}

void Keeper::on_signal(Instant now) {
  keep_time(now);
  if (report_.stage < RankStage::kEnding) {
    report_.end = AttemptEnd{
        ExitKind::kInfra,
        {.layer = FaultLayer::kHost, .evidence = "a signal ended the keeper of its ranks"}};
  }
  kill();
  if (report_.stage != RankStage::kGone) tell();
}

bool Keeper::all_shed() const {
  return std::none_of(processes_.begin(), processes_.end(),
                      [](const Process& process) { return process.leaving; });
}

void Keeper::tell() {
  if (all_shed()) report_.shed_epoch = report_.token.epoch;
  effects_.push_back(report_);
}

void Keeper::note_gone() {
  if (!processes_.empty() || report_.stage < RankStage::kEnding) return;
  if (report_.stage == RankStage::kGone) return;
  report_.stage = RankStage::kGone;
  tell();
}

void Keeper::on_progress(const FenceToken& token, const Progress& progress) {
  if (fence_.admit(token)) report_.progress = progress;
}

void Keeper::on_replica(const FenceToken& token, const ReplicaReport& replica) {
  if (!fence_.admit(token) || report_.replica == replica) return;
  report_.replica = replica;
  tell();
}

void Keeper::on_timer(Instant now) { keep_time(now); }

/// Runs first in every input: an input that comes late, after a sleep, must not find the lease
/// still held.
void Keeper::keep_time(Instant now) {
  if (now >= heard_ + launch_.lease.patience()) give_up(now);
  if (now >= kill_at_) {
    kill_at_ = Instant::max();
    if (report_.stage >= RankStage::kEnding) {
      kill();
      tell();
    } else {
      std::vector<RankSlot> late;
      late.reserve(processes_.size());
      for (const Process& process : processes_) {
        if (process.leaving) late.push_back(process.slot);
      }
      effects_.push_back(SignalProcesses{ProcessSignal::kKill, std::move(late)});
    }
  }
  if (report_.stage == RankStage::kPreparing && now >= start_at_) {
    start_processes();
    tell();
  }
}

void Keeper::give_up(Instant now) {
  const bool binding = launch_.lease.kind == Lease::Kind::kBinding;
  if (report_.stage >= (binding ? RankStage::kKilled : RankStage::kEnding)) return;
  if (!report_.end) {
    std::string evidence = fmt::format("no controller for {}", launch_.lease.patience().text());
    report_.end = AttemptEnd{ExitKind::kInfra,
                             {.layer = FaultLayer::kController, .evidence = std::move(evidence)}};
  }
  if (binding) {
    kill();
  } else {
    end(launch_.grace, now);
  }
  if (report_.stage != RankStage::kGone) tell();
}

void Keeper::end(Duration grace, Instant now) {
  if (report_.stage < RankStage::kEnding) report_.stage = RankStage::kEnding;
  if (report_.stage == RankStage::kEnding) leave(living(), now + grace);
  note_gone();
}

void Keeper::kill() {
  if (report_.stage == RankStage::kGone) return;
  report_.stage = RankStage::kKilled;
  kill_at_ = Instant::max();
  if (!processes_.empty()) {
    effects_.push_back(SignalProcesses{ProcessSignal::kKill, living()});
  }
  note_gone();
}

/// Makes processes leave; an earlier kill deadline stays.
void Keeper::leave(const std::vector<RankSlot>& slots, Instant kill_at) {
  if (slots.empty()) return;
  SignalProcesses term{ProcessSignal::kTerm, {}};
  term.slots.reserve(slots.size());
  for (Process& process : processes_) {
    if (process.leaving || !std::binary_search(slots.begin(), slots.end(), process.slot)) continue;
    process.leaving = true;
    term.slots.push_back(process.slot);
  }
  kill_at_ = std::min(kill_at_, kill_at);
  if (!term.slots.empty()) effects_.push_back(std::move(term));
}

std::vector<RankSlot> Keeper::living() const {
  std::vector<RankSlot> slots;
  slots.reserve(processes_.size());
  for (const Process& process : processes_) slots.push_back(process.slot);
  return slots;
}

Instant Keeper::next_due() const {
  if (report_.stage == RankStage::kGone) return Instant::max();
  Instant due = kill_at_;
  if (report_.stage == RankStage::kPreparing) due = std::min(due, start_at_);
  const bool binding = launch_.lease.kind == Lease::Kind::kBinding;
  if (report_.stage < (binding ? RankStage::kKilled : RankStage::kEnding)) {
    due = std::min(due, heard_ + launch_.lease.patience());
  }
  return due;
}

std::vector<KeeperEffect> Keeper::take() { return std::exchange(effects_, {}); }

}  // namespace orrery
