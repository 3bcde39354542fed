#include "twin/nodes/protocol_processes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace orrery {
namespace {

constexpr Duration kRankStart = Duration::seconds(1);
constexpr Duration kReplicaReady = Duration::seconds(6);  ///< from its start to its first token
constexpr Duration kEffects = Duration::seconds(20);      ///< between two of a rank

}  // namespace

std::string attempt_text(const AttemptId& id) {
  return fmt::format("attempt {} of job {}", id.attempt, id.job.value());
}

void ProtocolProcesses::check_start(NodeId node, const StartProcesses& start) {
  const AttemptId& attempt = start.token.id;
  const bool fenced = jobs_.at(attempt.job).restart == RestartPolicy::kAtOnce;
  std::map<std::uint32_t, std::uint32_t> taken;  // of each accelerator, by others
  for (const auto& [at, processes] : keepers_) {
    const AttemptId& other = at.attempt;
    if (other == attempt) continue;
    if (other.job == attempt.job && !fenced) {
      outside_.wrong(fmt::format("{} starts on node {} beside {} on node {}", attempt_text(attempt),
                                 node.value(), attempt_text(other), at.node.value()));
    }
    if (at.node != node) continue;
    for (const auto& [slot, process] : processes) taken[slot.device] += process.share;
  }
  for (const RankShare& share : start.shares) {
    for (const auto& [device, others] : taken) {
      if ((share.devices >> device & 1) == 0 || others + share.share <= kWholeDevice) continue;
      outside_.wrong(fmt::format("{} starts on accelerator {} of node {}, which others have",
                                 attempt_text(attempt), device, node.value()));
    }
  }
}

void ProtocolProcesses::start(NodeId node, const StartProcesses& start) {
  check_start(node, start);
  const KeeperAt at{node, start.token.id};
  for (const RankShare& share : start.shares) {
    for (std::uint64_t left = share.devices; left != 0; left &= left - 1) {
      const RankSlot slot{share.gang, static_cast<std::uint32_t>(std::countr_zero(left))};
      if (std::binary_search(start.fresh.begin(), start.fresh.end(), slot)) {
        start_process(at, slot, share.share);
      }
      join_epoch(at, start.token, slot, share.clock);
    }
  }
}

void ProtocolProcesses::start_process(const KeeperAt& at, const RankSlot& slot,
                                      std::uint16_t share) {
  const std::uint64_t pid = ++pids_;
  const Process process{pid, rng_.uniform() < ignores_term_, {}, share, 1};
  if (!keepers_[at].emplace(slot, process).second) {
    outside_.wrong(attempt_text(at.attempt) + " has two processes on one accelerator");
  }
  const ProtocolJob& job = jobs_.at(at.attempt.job);
  const int status = job.replica == ProtocolReplica::kFails ? 1 : 0;
  if (job.replica != ProtocolReplica::kServes) {
    outside_.time.after(job.work, [this, at, pid, status] { end(at, {pid, status}); });
  }
  have_effect(at, pid);
}

void ProtocolProcesses::join_epoch(const KeeperAt& at, const FenceToken& token,
                                   const RankSlot& slot, double clock) {
  const auto processes = keepers_.find(at);
  if (processes == keepers_.end()) return;
  const auto found = processes->second.find(slot);
  if (found == processes->second.end()) return;
  found->second.token = token;
  found->second.clock = clock;
  const std::uint64_t pid = found->second.pid;
  outside_.time.after(kRankStart, [this, at, pid, up = ProcessUp{slot, token.epoch}] {
    if (find(at, pid) != nullptr) outside_.up(at, up);
  });
  report_replica(at, token, pid);
}

void ProtocolProcesses::report_replica(const KeeperAt& at, const FenceToken& token,
                                       std::uint64_t pid) {
  if (jobs_.at(at.attempt.job).replica != ProtocolReplica::kServes) return;
  for (const ReplicaPhase phase : {ReplicaPhase::kLoading, ReplicaPhase::kReady}) {
    const Duration after = phase == ReplicaPhase::kLoading ? kRankStart : kReplicaReady;
    const ReplicaReport report{.phase = phase, .endpoint = "10.0.0.1:80", .pid = pid};
    outside_.time.after(after, [this, at, token, pid, report] {
      if (find(at, pid) != nullptr) outside_.replica(at, token, report);
    });
  }
}

void ProtocolProcesses::cap_clock(const KeeperAt& at, const RankShare& share) {
  const auto processes = keepers_.find(at);
  if (processes == keepers_.end()) return;
  for (auto& [slot, process] : processes->second) {
    const bool of_share = slot.gang == share.gang && (share.devices >> slot.device & 1) != 0;
    if (of_share) process.clock = share.clock;
  }
}

void ProtocolProcesses::have_effect(const KeeperAt& at, std::uint64_t pid) {
  outside_.time.after(kEffects, [this, at, pid] {
    const auto* process = find(at, pid);
    if (process == nullptr) return;
    const JobId job = at.attempt.job;
    Fence& fence = fences_.try_emplace(job, job).first->second;
    if (!fence.admit(process->second.token)) {
      const bool older = at.attempt < fence.newest().id;
      if (older && jobs_.at(job).restart != RestartPolicy::kAtOnce) {
        outside_.wrong(attempt_text(at.attempt) + " works on after its successor did");
      }
    }
    have_effect(at, pid);
  });
}

ProtocolProcesses::Processes::value_type* ProtocolProcesses::find(const KeeperAt& at,
                                                                  std::uint64_t pid) {
  const auto processes = keepers_.find(at);
  if (processes == keepers_.end()) return nullptr;
  for (Processes::value_type& each : processes->second) {
    if (each.second.pid == pid) return &each;
  }
  return nullptr;
}

void ProtocolProcesses::end(const KeeperAt& at, const Ending& ending) {
  const auto* process = find(at, ending.pid);
  if (process == nullptr) return;
  const RankSlot slot = process->first;
  const auto processes = keepers_.find(at);
  processes->second.erase(slot);
  if (processes->second.empty()) keepers_.erase(processes);
  outside_.exit(at, {slot, ending.status});
}

void ProtocolProcesses::signal(const KeeperAt& at, const SignalProcesses& signal) {
  const auto processes = keepers_.find(at);
  if (processes == keepers_.end()) return;
  const bool term = signal.signal == ProcessSignal::kTerm;
  for (const RankSlot& slot : signal.slots) {
    const auto found = processes->second.find(slot);
    if (found == processes->second.end() || (term && found->second.ignores_term)) continue;
    outside_.time.after(
        term ? Duration::seconds(2) : Duration::milliseconds(100),
        [this, at, ending = Ending{found->second.pid, term ? 143 : 137}] { end(at, ending); });
  }
}

void ProtocolProcesses::fail_one(const KeeperAt& at) {
  const auto processes = keepers_.find(at);
  if (processes != keepers_.end()) end(at, {processes->second.begin()->second.pid, 1});
}

void ProtocolProcesses::kill_all(NodeId node) {
  std::erase_if(keepers_, [node](const auto& each) { return each.first.node == node; });
}

std::size_t ProtocolProcesses::count(const AttemptId& attempt) const {
  std::size_t sum = 0;
  for (const auto& [at, processes] : keepers_) {
    if (at.attempt == attempt) sum += processes.size();
  }
  return sum;
}

double ProtocolProcesses::clock(const AttemptId& attempt) const {
  double least = 1;
  for (const auto& [at, processes] : keepers_) {
    if (at.attempt != attempt) continue;
    for (const auto& [slot, process] : processes) least = std::min(least, process.clock);
  }
  return least;
}

}  // namespace orrery
