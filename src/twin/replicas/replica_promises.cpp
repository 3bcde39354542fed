#include "twin/replicas/replica_promises.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "control/state/snapshot.hpp"

namespace orrery {
namespace {

constexpr Duration kSilenceMin = Duration::seconds(1);

}  // namespace

// --- What the log gets --------------------------------------------------------------------------

void ReplicaPromises::claimed(StoreTerm term, std::size_t process) {
  context_.note(
      fmt::format("process {} has claimed term {}", process, static_cast<std::uint64_t>(term)));
  if (term <= term_) context_.wrong("a term does not rise");
  term_ = term;
  terms_.push_back(process);
  for (const auto& [other, at] : spoke_) {
    const Duration silent = context_.now() - at;
    if (other == process || silent >= kSilenceMin) continue;
    context_.wrong(fmt::format("process {} claims, and process {} has been silent for {} only",
                               process, other, silent.text()));
  }
}

void ReplicaPromises::texts_put() {
  if (core_ == nullptr) return begin();
  const StorageResult<StoreTexts> texts = outside_.log.texts();
  if (Status taken = setup_->take_up(*texts); !taken) context_.wrong(taken.error().text());
}

void ReplicaPromises::begin() {
  const StorageResult<StoreTexts> texts = outside_.log.texts();
  Result<std::unique_ptr<LiveSetup>> setup =
      LiveSetup::make(outside_.facts, *texts, outside_.settings);
  if (!setup) return context_.wrong(setup.error().text());
  setup_ = *std::move(setup);
  auto core = FollowedCore::recover(outside_.log, setup_->control(),
                                    [this](const State&, const TimedEvent& event) { note(event); });
  if (!core) return context_.wrong(core.error().text());
  core_ = *std::move(core);
}

void ReplicaPromises::appended(StoreTerm term, const Batch& batch) {
  if (term != term_) {
    context_.wrong(fmt::format("batch {} is written in term {}, and the newest is {}", batch.number,
                               static_cast<std::uint64_t>(term),
                               static_cast<std::uint64_t>(term_)));
  }
  if (core_ == nullptr) return context_.wrong("a batch is written before the texts of the log");
  if (batch.number != core_->newest() + 1) {
    return context_.wrong(fmt::format("batch {} follows batch {}", batch.number, core_->newest()));
  }
  if (HistoryResult<void> taken = core_->take(batch); !taken) {
    return context_.wrong(taken.error().text());
  }
  hashes_[batch.number] = core_->history_hash();
}

void ReplicaPromises::note(const TimedEvent& event) {
  const auto* submitted = std::get_if<JobSubmitted>(&event.what);
  if (submitted == nullptr) return;
  const std::string& name = submitted->submission.request.name;
  if (!made_.emplace(name, submitted->job).second) {
    context_.wrong(fmt::format("{} became two jobs", name));
  }
  outside_.made(submitted->job, submitted->submission);
}

// --- What processes do --------------------------------------------------------------------------

void ReplicaPromises::spoke(std::size_t process, Instant at) {
  spoke_[process] = at;
  if (terms_.empty() || terms_.back() != process) {
    context_.wrong(fmt::format("process {} speaks, and does not hold the newest term", process));
  }
}

std::optional<Instant> ReplicaPromises::leader_spoke() const {
  if (terms_.empty()) return std::nullopt;
  const auto found = spoke_.find(terms_.back());
  return found == spoke_.end() ? std::nullopt : std::optional(found->second);
}

void ReplicaPromises::acknowledged(const std::string& name, JobId job) {
  const auto found = made_.find(name);
  if (found == made_.end() || found->second != job) {
    context_.wrong(
        fmt::format("{} is acknowledged as job {}, and is not in the log", name, job.value()));
  }
  acknowledged_.emplace(name, job);
  next_acknowledged_ = std::max(next_acknowledged_, std::uint64_t{job.value()} + 1);
}

void ReplicaPromises::was_read(std::uint64_t acknowledged, const State& state) {
  if (state.jobs() >= acknowledged) return;
  context_.wrong(fmt::format("a read finds {} jobs, and {} were acknowledged before it",
                             state.jobs(), acknowledged));
}

void ReplicaPromises::applied(std::uint64_t batch, std::uint64_t history_hash) {
  const auto found = hashes_.find(batch);
  if (found == hashes_.end() || found->second == history_hash) return;
  context_.wrong(fmt::format("a controller has another history at batch {}", batch));
}

void ReplicaPromises::settled(std::uint64_t batch, const State& state) {
  if (core_ == nullptr || core_->newest() != batch) return;
  if (digest_of(core_->state()) == digest_of(state)) return;
  context_.wrong(fmt::format("the leader's state is not that of its log at batch {}", batch));
}

// --- The end ------------------------------------------------------------------------------------

void ReplicaPromises::check_log() {
  if (core_ == nullptr) return context_.wrong("no controller ever led");
  const HistoryResult<VerifiedHistory> verified = verify_history(outside_.log);
  if (!verified) return context_.wrong(verified.error().text());
  if (verified->history_hash != core_->history_hash()) {
    context_.wrong("the log has another history than was written");
  }
  const HistoryResult<RecoveredCore> recovered = recover_core(outside_.log, setup_->control());
  if (!recovered) return context_.wrong(recovered.error().text());
  const State& state = recovered->core->state();
  if (digest_of(state) != digest_of(core_->state())) {
    context_.wrong("the log does not lead to the state that its batches led to");
  }
  for (const auto& [name, job] : acknowledged_) {
    const bool known = job.value() < state.jobs() && made_.contains(name) && made_.at(name) == job;
    const bool other = state.has(job) && state.job(job).name != name;
    if (!known || other) context_.wrong(name + " was acknowledged and is lost");
  }
}

}  // namespace orrery
