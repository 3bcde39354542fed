#include "node/rank_table.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <set>

#include "node/exit_cause.hpp"
#include "node/process_stacks.hpp"
#include "node/rank_process.hpp"

namespace orrery {

RankTable::RankTable(RealLoop& loop, Storage& storage, const KeeperFiles& files,
                     std::unique_ptr<ControlGroup> group)
    : loop_(loop), storage_(storage), files_(files), group_(std::move(group)) {}

Status RankTable::limit(const GroupLimits& limits) {
  if (std::exchange(limits_, limits) == limits && limited_) return {};
  Status set = group_
                   ? group_->limit(limits)
                   : environment_error("CPU and memory are not limited: there is no control group");
  limited_ = set.has_value();
  return set;
}

Status RankTable::fence(std::uint64_t processes_max, std::vector<DeviceNumber> denied) {
  if (!group_) {
    if (denied.empty() && processes_max == 0) return {};
    return environment_error("processes and devices are not limited: there is no control group");
  }
  Status devices = group_->deny_devices(std::move(denied));
  Status processes = group_->limit_processes(processes_max);
  return devices ? processes : devices;
}

bool RankTable::runs(const RankStart& start) const {
  return std::any_of(running_.begin(), running_.end(), [&](const auto& each) {
    const auto& own = each.second.start.slots;
    return std::any_of(own.begin(), own.end(), [&](const RankSlot& slot) {
      return std::find(start.slots.begin(), start.slots.end(), slot) != start.slots.end();
    });
  });
}

Status RankTable::start(const RankStart& start, const KeeperLaunch& launch) {
  auto log = RankLog::open({loop_, storage_, files_.log(start), launch.logs});
  if (!log) return forward_error(log);
  const ProcessStart process{.command = launch.facts.command,
                             .environment = start.environment,
                             .directory = launch.directory,
                             .user = launch.user,
                             .output = (*log)->writing_end(),
                             .groups = group_ ? group_->members() : std::vector<int>()};
  const Result<pid_t> pid = start_process(process);
  if (!pid) return tl::unexpected(pid.error());
  (*log)->close_writing_end();
  std::unique_ptr<RankLog>& kept = logs_[{start.slots.at(0).gang, start.rank}];
  kept = *std::move(log);
  running_.emplace(*pid, Running{start, kept.get()});
  return {};
}

void RankTable::signal(ProcessSignal signal, const std::vector<RankSlot>& slots) {
  const int number = signal == ProcessSignal::kTerm ? SIGTERM : SIGKILL;
  bool all = true;
  for (const auto& [pid, running] : running_) {
    const auto& own = running.start.slots;
    const bool meant = std::any_of(own.begin(), own.end(), [&](const RankSlot& slot) {
      return std::find(slots.begin(), slots.end(), slot) != slots.end();
    });
    if (meant) (void)::kill(-pid, number);
    all = all && meant;
  }
  if (group_ && all && number == SIGKILL) group_->kill();
}

Status RankTable::save_stacks() const {
  if (auto made = storage_.make_directories(files_.stacks()); !made) return forward_error(made);
  for (const auto& [pid, running] : running_) {
    auto written = storage_.write_file(files_.stack(running.start), stacks_under(pid));
    if (!written) return forward_error(written);
  }
  return {};
}

void RankTable::note_end(pid_t pid, int status) {
  const auto found = running_.find(pid);
  if (found == running_.end()) return;
  // Still unreaped, so its number names no other group.
  (void)::kill(-pid, SIGKILL);
  found->second.log->drain();
  Blame cause = exit_cause(status, found->second.log->tail());
  const std::uint64_t kills = status != 0 && group_ ? group_->memory_kills() : 0;
  if (kills > 0) cause = out_of_memory(kills, limits_.memory);
  for (const RankSlot& slot : found->second.start.slots) ended_.push_back({slot, status, cause});
  running_.erase(found);
}

std::vector<ProcessExit> RankTable::reap() {
  while (true) {
    siginfo_t child{};
    if (::waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) != 0) break;  // no child is left
    if (child.si_pid == 0) {
      if (!running_.empty()) break;
      if (group_) group_->kill();
      kill_children();
      return {};
    }
    note_end(child.si_pid, child.si_code == CLD_EXITED ? child.si_status : 128 + child.si_status);
    (void)::waitpid(child.si_pid, nullptr, 0);
  }
  return std::exchange(ended_, {});
}

const RankLog* RankTable::log(std::uint32_t gang, std::uint32_t rank) const {
  const auto found = logs_.find({gang, rank});
  return found == logs_.end() ? nullptr : found->second.get();
}

std::vector<RankSlot> RankTable::slots_of(std::uint32_t rank) const {
  for (const auto& [pid, running] : running_) {
    if (running.start.rank == rank) return running.start.slots;
  }
  return {};
}

}  // namespace orrery
