#include "node/keeper/rank_table.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "node/keeper/exit_cause.hpp"
#include "node/keeper/rank_process.hpp"
#include "node/launch/process_stacks.hpp"
#include "workload/slurm/output_pattern.hpp"

namespace orrery {

RankTable::RankTable(RealLoop& loop, Storage& storage, const KeeperFiles& files,
                     std::unique_ptr<ControlGroup> group)
    : loop_(loop), storage_(storage), files_(files), group_(std::move(group)) {}

RankTable::~RankTable() {
  if (copies_due_) loop_.cancel(*copies_due_);
}

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
  using Stream = RankLog::Stream;
  auto log = RankLog::open({loop_, storage_, files_.log(start), launch.logs});
  if (!log) return forward_error(log);
  // The script's holders on the other nodes write nothing.
  const bool copied = launch.facts.style != LaunchStyle::kSlurm || start.rank == 0;
  if (copied && !launch.copies.errors.empty()) {
    if (Status split = (*log)->split_errors(); !split) return split;
    if (Status copying = copy(start, launch, {log->get(), Stream::kErrors}); !copying) {
      return copying;
    }
  }
  if (copied && !launch.copies.output.empty()) {
    if (Status copying = copy(start, launch, {log->get(), Stream::kOutput}); !copying) {
      return copying;
    }
  }
  const ProcessStart process{.command = launch.facts.command,
                             .environment = start.environment,
                             .directory = launch.directory,
                             .user = launch.user,
                             .output = (*log)->writing_end(),
                             .errors = (*log)->writing_end(Stream::kErrors),
                             .groups = groups()};
  const Result<pid_t> pid = start_process(process);
  if (!pid) return tl::unexpected(pid.error());
  (*log)->close_writing_ends();
  std::unique_ptr<RankLog>& kept = logs_[{start.slots.at(0).gang, start.rank}];
  kept = *std::move(log);
  running_.emplace(*pid, Running{start, kept.get()});
  return {};
}

/// A file that ranks may share is never truncated, nor is one of an earlier attempt.
Status RankTable::copy(const RankStart& start, const KeeperLaunch& launch,
                       std::pair<RankLog*, RankLog::Stream> from) {
  const bool errors = from.second == RankLog::Stream::kErrors;
  const std::string& pattern = errors ? launch.copies.errors : launch.copies.output;
  const auto variable = [&](std::string_view name) {
    const auto found = std::ranges::find(start.environment, name, &Variables::value_type::first);
    return found == start.environment.end() ? std::string() : found->second;
  };
  const std::array values{PatternValue{'t', fmt::format("{}", start.rank)},
                          PatternValue{'N', variable("ORRERY_NODE")},
                          PatternValue{'u', variable("USER")}};
  const GangLayout& layout = layout_of(start.slots.at(0).gang, launch.gangs);
  const bool alone = names_each_rank(pattern) || launch.facts.style == LaunchStyle::kSlurm ||
                     (launch.gangs.size() == 1 && layout.nodes.size() == 1 &&
                      layout.nodes[0].ranks.size() == start.slots.size());
  const CopyFile file{output_file_name(pattern, values), alone && launch.facts.attempt.attempt == 1
                                                             ? CopyFile::Begin::kAnew
                                                             : CopyFile::Begin::kAppend};
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return environment_error(
        fmt::format("cannot make a pipe: {}", std::generic_category().message(errno)));
  }
  const FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  (void)::fcntl(writing.get(), F_SETFL, O_NONBLOCK);
  const Result<pid_t> copier = start_copy({.command = {},
                                           .environment = start.environment,
                                           .directory = launch.directory,
                                           .user = launch.user,
                                           .input = reading.get(),
                                           .groups = groups()},
                                          file);
  if (!copier) return tl::unexpected(copier.error());
  copiers_.insert(*copier);
  from.first->copy_to(from.second, std::move(writing));
  return {};
}

/// Copiers end when they have written all output. One whose file hangs is ended.
bool RankTable::waits_for_copies() {
  constexpr Duration kPatience = Duration::seconds(10);
  if (copiers_.empty()) {
    if (copies_due_) loop_.cancel(*copies_due_);
    copies_due_.reset();
    return false;
  }
  for (const auto& [rank, log] : logs_) log->end_copies();
  if (!copies_due_) {
    copies_due_ = loop_.call_after(kPatience, [this] {
      copies_due_.reset();
      for (const pid_t copier : copiers_) (void)::kill(copier, SIGKILL);
    });
  }
  return true;
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
  if (found == running_.end()) {
    if (copiers_.erase(pid) == 0) other_ended_(pid, status);
    return;
  }
  // The process is unreaped, so its number names no other group.
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
      if (waits_for_copies()) return {};  // the attempt is not gone while they write
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

const RankStart* RankTable::running(std::uint32_t gang, std::uint32_t rank) const {
  for (const auto& [pid, running] : running_) {
    const RankStart& start = running.start;
    if (start.rank == rank && start.slots.at(0).gang == gang) return &start;
  }
  return nullptr;
}

std::string RankTable::running_text() const {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranks;
  ranks.reserve(running_.size());
  for (const auto& [pid, running] : running_) {
    ranks.emplace_back(running.start.slots.at(0).gang, running.start.rank);
  }
  std::ranges::sort(ranks);
  std::string text;
  for (const auto& [gang, rank] : ranks) {
    text += fmt::format("{}rank {} of gang {}", text.empty() ? "" : ", ", rank, gang);
  }
  return text;
}

std::vector<int> RankTable::groups() const {
  return group_ ? group_->members() : std::vector<int>();
}

}  // namespace orrery
