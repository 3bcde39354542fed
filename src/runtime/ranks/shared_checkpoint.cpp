#include "runtime/ranks/shared_checkpoint.hpp"

#include <nlohmann/json.hpp>

#include "base/assert.hpp"
#include "runtime/checkpoint/checkpoint_directory.hpp"

namespace orrery {
namespace {

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

}  // namespace

SharedCheckpoint::SharedCheckpoint(const TrainingSpec& spec, std::string job, std::uint32_t attempt,
                                   TrainingReports& reports)
    : spec_(spec),
      job_(std::move(job)),
      attempt_(attempt),
      reports_(reports),
      writer_(spec.checkpoint.directory) {}

CheckpointId SharedCheckpoint::id(const Makers& makers, std::uint64_t step) const {
  return {job_, {attempt_, makers.generation}, step};
}

bool SharedCheckpoint::begin(const Makers& makers, const TrainingState& state) {
  const ShardName name{id(makers, state.steps()), makers.ranks.rank(), makers.ranks.size()};
  saving_ = state.steps();
  saved_.reset();
  (void)writer_.poll();  // a result from an earlier generation
  unsaved_ = !writer_.idle();
  if (unsaved_) {
    reports_.say(
        fmt::format("step {} is not saved: the checkpoint before the last change of "
                    "ranks is still being written",
                    state.steps()));
  }
  const Shared<SavedPart> part = state.saved_part(makers.ranks);
  if (!part) return false;
  if (unsaved_) return true;
  const Status begun = writer_.begin(name, part->pieces);
  unsaved_ = !begun;
  if (!begun) reports_.say("a checkpoint failed: " + begun.error().text());
  return true;
}

void SharedCheckpoint::poll() {
  if (!saving_ || saved_ || unsaved_) return;
  const auto written = writer_.poll();
  if (!written) return;
  if (*written) saved_ = **written;
  if (!*written) reports_.say("a checkpoint failed: " + written->error().text());
  unsaved_ = !saved_.has_value();
}

Result<bool> SharedCheckpoint::commit(const Makers& makers, std::string_view when) {
  ORRERY_ASSERT(saving_ && saved_, "every rank's part is durable");
  const Shared<std::vector<ShardRecord>> records = gather_records(makers.ranks);
  const std::uint64_t step = *saving_;
  saving_.reset();
  saved_.reset();
  if (!records) return false;
  if (makers.ranks.rank() != 0) return true;
  const std::string path = step_directory(spec_.checkpoint.directory, step);
  nlohmann::json extra{{"samples", step * spec_.batch.sequences}, {"seed", spec_.seed}};
  if (!spec_.data.tokenizer_identity.empty()) extra["tokenizer"] = spec_.data.tokenizer_identity;
  const Manifest manifest{.id = id(makers, step),
                          .world = makers.ranks.size(),
                          .shards = *records,
                          .extra = extra.dump()};
  if (Status done = commit_checkpoint(spec_.checkpoint.directory, manifest); !done) {
    return forward_error(done);
  }
  reports_.saved(step, path);
  reports_.event("checkpoint", fmt::format(R"("step": {}, "path": {}, "when": {})", step,
                                           quoted(path), quoted(std::string(when))));
  const Status pruned =
      prune_checkpoints(spec_.checkpoint.directory, {.newest = spec_.checkpoint.keep});
  if (!pruned) reports_.say("old checkpoints stay: " + pruned.error().text());
  return true;
}

/// Gathers the records of all ranks at the first.
Shared<std::vector<ShardRecord>> SharedCheckpoint::gather_records(Communicator& ranks) const {
  std::string text = shard_record_text(saved_->record);
  std::uint64_t size = text.size();
  std::vector<std::uint64_t> sizes(ranks.size());
  auto told = ranks.all_gather(std::as_bytes(std::span(&size, 1)),
                               std::as_writable_bytes(std::span(sizes)));
  if (!told) return tl::unexpected(told.error());
  std::vector<ShardRecord> records{saved_->record};
  if (ranks.rank() != 0) {
    auto sent = ranks.send(std::as_bytes(std::span(text)), 0);
    if (!sent) return tl::unexpected(sent.error());
    return records;
  }
  for (std::uint32_t rank = 1; rank < ranks.size(); ++rank) {
    text.resize(sizes[rank]);
    auto got = ranks.receive(std::as_writable_bytes(std::span(text)), rank);
    if (!got) return tl::unexpected(got.error());
    Result<ShardRecord> record = parse_shard_record(text, fmt::format("rank {}", rank));
    if (!record) return tl::unexpected(PeerLost{rank});
    records.push_back(std::move(*record));
  }
  return records;
}

Result<bool> SharedCheckpoint::make_now(const Makers& makers, const TrainingState& state,
                                        std::string_view when) {
  if (saving_ && !saved_ && !unsaved_) {
    if (Result<WrittenShard> written = writer_.wait(); written) saved_ = std::move(*written);
  }
  if (saving_ != state.steps()) {
    if (!writer_.idle()) (void)writer_.wait();
    if (!begin(makers, state)) return false;
    if (!unsaved_) {
      Result<WrittenShard> written = writer_.wait();
      if (!written) reports_.say("the last checkpoint failed: " + written.error().text());
      if (written) saved_ = std::move(*written);
    }
  }
  std::int32_t saved = saved_ ? 1 : 0;
  const Elements vote(std::as_writable_bytes(std::span(&saved, 1)), SumType::kInt32);
  if (!makers.ranks.all_reduce(vote)) return false;
  if (saved < static_cast<std::int32_t>(makers.ranks.size())) {
    return environment_error(
        fmt::format("{} of {} ranks could write their part of the last checkpoint to {}", saved,
                    makers.ranks.size(), spec_.checkpoint.directory));
  }
  return commit(makers, when);
}

void SharedCheckpoint::forget() {
  saving_.reset();
  saved_.reset();
  unsaved_ = false;
}

}  // namespace orrery
