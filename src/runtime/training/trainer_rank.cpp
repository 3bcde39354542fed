#include "runtime/training/trainer_rank.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/assert.hpp"
#include "base/checksum.hpp"
#include "runtime/checkpoint/checkpoint_directory.hpp"
#include "runtime/trainer/gemm.hpp"
#include "runtime/trainer/kernels.hpp"

namespace orrery {
namespace {

/// Steps that ranks asked to end wait for the others to be asked, too.
constexpr std::uint32_t kStepsTogether = 2;
/// The least time a rank may be silent.
constexpr Duration kPatience = Duration::seconds(60);

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

}  // namespace

TrainerRank::TrainerRank(const TrainingSpec& spec, const TextStream& stream, Env env,
                         TrainingSeat seat)
    : spec_(spec),
      env_(env),
      seat_(std::move(seat)),
      shards_(spec, stream),
      state_(shards_.layout(), spec.seed),
      optimizer_{.beta1 = spec.optimizer.beta1,
                 .beta2 = spec.optimizer.beta2,
                 .weight_decay = spec.optimizer.weight_decay},
      schedule_{.peak = spec.optimizer.peak_rate,
                .lowest = spec.optimizer.lowest_rate,
                .warmup = static_cast<std::int64_t>(spec.optimizer.warmup),
                .steps = static_cast<std::int64_t>(spec.steps)},
      writer_(spec.checkpoint.directory),
      reports_(spec, env, seat_.progress) {
  if (seat_.flip_in) shards_.flip_in(*seat_.flip_in);
  seat_.group.workspace_bytes = (shards_.layout().size() + kTailSize) * sizeof(float);
}

Result<std::unique_ptr<TrainerRank>> TrainerRank::start(const TrainingSpec& spec,
                                                        const TextStream& stream, Env env,
                                                        TrainingSeat seat) {
  if (seat.group.world > spec.batch.shards) {
    return input_error(spec.batch.where,
                       fmt::format("batch.shards: {} shards are too few for {} ranks",
                                   spec.batch.shards, seat.group.world));
  }
  auto run = std::make_unique<TrainerRank>(spec, stream, env, std::move(seat));
  if (Status met = run->meet(); !met) return forward_error(met);
  return run;
}

Status TrainerRank::restore() {
  Result<FoundCheckpoint> found = open_newest_good(spec_.checkpoint.directory);
  if (!found) return forward_error(found);
  for (const std::string& why : found->passed_over) reports_.say("passed over: " + why);
  if (!found->reader) return {};
  if (Status read = state_.restore(*found->reader); !read) return read;
  reports_.say(fmt::format("goes on from step {} of {}", state_.steps(),
                           step_directory(spec_.checkpoint.directory, state_.steps())));
  return {};
}

bool TrainerRank::over() const {
  const auto listed = list_checkpoints(spec_.checkpoint.directory);
  return listed && !listed->empty() &&
         listed->front().state == ListedCheckpoint::State::kCommitted &&
         listed->front().step >= spec_.steps;
}

Status TrainerRank::meet() {
  const bool founds = seat_.epoch == 0;
  if (founds) {
    if (Status restored = restore(); !restored) return restored;
    has_state_ = true;
  }
  if (!founds) seat_.group.over = [this] { return over(); };
  seat_.group.members_max = spec_.batch.shards;
  auto group = founds ? MemberGroup::found(env_.clock, seat_.group, state_.steps())
                      : MemberGroup::join(env_.clock, seat_.group);
  too_late_ = !group && !founds && over();
  if (too_late_) return {};
  if (!group) return forward_error(group);
  group_ = std::move(*group);
  const Roster& roster = group_->roster();
  if (Status source = check_source(); !source) return source;
  if (!feed_those_behind()) return go_on_without();
  if (!leads()) return {};
  const bool anew = seat_.attempt == 1 && state_.steps() == 0;
  reports_.lead(anew ? TrainingReports::Before::kOfAnother : TrainingReports::Before::kOfThis);
  reports_.event(
      "begin",
      fmt::format(R"("attempt": {}, "generation": {}, "ranks": {}, "step": {}, "memory": {})",
                  seat_.attempt, roster.generation, group_->size(), state_.steps(),
                  quoted(group_->shares_memory() ? "shared" : "sockets")));
  return claim();
}

/// No generation before this one commits a checkpoint any more. A disk that is full now is not the
/// end: every commit claims, too.
Status TrainerRank::claim() {
  Status claimed =
      claim_checkpoints(spec_.checkpoint.directory,
                        {seat_.job, {seat_.attempt, group_->roster().generation}, state_.steps()});
  if (claimed || claimed.error().kind == ErrorKind::kInfeasible) return claimed;
  reports_.say("the checkpoints are not claimed: " + claimed.error().text());
  return {};
}

Result<TrainingOutcome> TrainerRank::run(const std::function<bool()>& stop) {
  if (too_late_) return TrainingOutcome{TrainingOutcome::End::kDone, spec_.steps};
  if (Status room = writer_.reserve(3 * shards_.layout().size() * sizeof(float)); !room) {
    return forward_error(room);
  }
  while (state_.steps() < spec_.steps) {
    Result<bool> went_on = step(stop);
    if (!went_on) return forward_error(went_on);
    if (wrong_) {
      group_.reset();
      return TrainingOutcome{TrainingOutcome::End::kWrong, state_.steps()};
    }
    if (!*went_on) continue;
    if (!leaving_) continue;
    group_->farewell();
    return TrainingOutcome{TrainingOutcome::End::kStopped, state_.steps()};
  }
  for (;;) {
    Result<bool> saved = save_last();
    if (!saved) return forward_error(saved);
    if (*saved && leads()) {
      evaluate();
      reports_.event(
          "end", fmt::format(R"("step": {}, "state_sha256": "{}")", state_.steps(), state_.hash()));
    }
    // Nobody goes before it is written down, or another would have to do it.
    if (*saved && group_->communicator().barrier()) break;
    if (Status again = go_on_without(); !again) {
      // Too few may be left to be sure, but not to see that it is done.
      if (over()) break;
      return forward_error(again);
    }
  }
  group_->farewell();
  return TrainingOutcome{TrainingOutcome::End::kDone, state_.steps()};
}

// --- A step -------------------------------------------------------------------------------------

std::span<float> TrainerRank::gradient() {
  const std::span<std::byte> bytes = group_->workspace();
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

Result<bool> TrainerRank::step(const std::function<bool()>& stop) {
  begun_ = env_.clock.now_monotonic();
  if (!sum_gradient(stop)) {
    if (Status again = go_on_without(); !again) return forward_error(again);
    return false;
  }
  Result<bool> right = verify();
  if (!right) return right;
  if (wrong_) return false;
  if (!*right) {
    if (Status again = go_on_without(); !again) return forward_error(again);
    return false;
  }
  if (Status applied = apply(); !applied) return forward_error(applied);
  if (Status rest = after_step(); !rest) return forward_error(rest);
  return true;
}

bool TrainerRank::sum_gradient(const std::function<bool()>& stop) {
  const std::span<float> sum = gradient();
  const std::vector<LeafRange> owned = share_leaves(spec_.batch.shards, group_->size());
  const auto checked = checked_shard(state_.steps(), spec_.verify_every, owned);
  shards_.watch(checked ? std::optional(checked->shard) : std::nullopt);
  shards_.compute(state_.parameters(), state_.steps(), owned[group_->rank()], sum);
  const std::span<float> tail = sum.subspan(shards_.layout().size());
  std::fill(tail.begin() + 1, tail.end(), 0.0f);
  if (saving_ && !saved_ && !unsaved_) {
    if (auto written = writer_.poll()) {
      if (*written) saved_ = std::move(**written);
      if (!*written) reports_.say("a checkpoint failed: " + written->error().text());
      unsaved_ = !saved_.has_value();
    }
  }
  tail[kJoin] = group_->tend() ? 1.0f : 0.0f;
  tail[kLeave] = stop() ? 1.0f : 0.0f;
  tail[kSaved] = saved_ ? 1.0f : 0.0f;
  tail[kUnsaved] = unsaved_ ? 1.0f : 0.0f;
  asked_ = tail[kLeave] > 0;
  computed_ = env_.clock.now_monotonic();
  return group_->communicator().all_reduce_shards(Elements(sum), owned).has_value();
}

/// Of the steps that are checked, whether all ranks have what they should. False: a peer was lost,
/// or is left out because it computes what the others do not; the step is done again without it.
Result<bool> TrainerRank::verify() {
  const std::vector<LeafRange> owned = share_leaves(spec_.batch.shards, group_->size());
  const auto checked = checked_shard(state_.steps(), spec_.verify_every, owned);
  if (!checked) return true;
  const std::uint32_t self = group_->rank();
  const auto computed = [&] {
    return shards_.checksum_of(state_.parameters(), state_.steps(), checked->shard);
  };
  GradientOpinion own{.sum = checksum_of_floats(gradient().first(shards_.layout().size())),
                      .shard = self == checked->owner ? shards_.watched() : 0,
                      .machine = checksum(gemm_identity() + kernels().isa, 0)};
  if (self == checked->other) own.shard = computed();
  const auto first = opinions(own);
  if (!first) return false;
  if (!comparable(*first) || agree(*first, *checked)) return true;
  own.shard = computed();
  const auto again = opinions(own);
  if (!again) return false;
  const auto wrong = wrong_ranks(*first, *again, *checked);
  const std::uint64_t step = state_.steps() + 1;
  if (!wrong) {
    return environment_error(fmt::format(
        "ranks {} and {} make different gradients of shard {} in step {}, and it cannot be said "
        "which is right",
        checked->owner, checked->other, checked->shard, step));
  }
  const std::string evidence = fmt::format(
      "of shard {} in step {} it makes what {} other ranks do "
      "not",
      checked->shard, step, group_->size() - wrong->size());
  wrong_ = std::binary_search(wrong->begin(), wrong->end(), self);
  if (wrong_) reports_.wrong(evidence, seat_.group.rank);
  if (leads()) {
    reports_.event("wrong", fmt::format(R"("step": {}, "shard": {}, "ranks": [{}])", step,
                                        checked->shard, fmt::join(*wrong, ", ")));
  }
  return false;
}

/// By rank.
Shared<std::vector<GradientOpinion>> TrainerRank::opinions(const GradientOpinion& own) {
  std::vector<GradientOpinion> all(group_->size());
  auto told = group_->communicator().all_gather(std::as_bytes(std::span(&own, 1)),
                                                std::as_writable_bytes(std::span(all)));
  if (!told) return tl::unexpected(told.error());
  return all;
}

Status TrainerRank::apply() {
  const std::span<float> sum = gradient();
  const auto shards = static_cast<float>(spec_.batch.shards);
  const auto number = static_cast<std::int64_t>(state_.steps()) + 1;
  const OptimizerStep how{
      .number = number, .rate = schedule_.rate(number), .gradient_scale = 1.0f / shards};
  Result<double> norm =
      state_.step(optimizer_, sum.first(shards_.layout().size()), how, spec_.optimizer.clip);
  if (!norm) return forward_error(norm);
  const Instant now = env_.clock.now_monotonic();
  longest_ = std::max(longest_, now - begun_);
  group_->set_patience(std::max(kPatience, longest_ + longest_ + longest_));
  reports_.step({.step = state_.steps(),
                 .loss = static_cast<double>(sum[shards_.layout().size()] / shards),
                 .rate = how.rate,
                 .gradient_norm = *norm,
                 .took = now - begun_,
                 .compute = computed_ - begun_,
                 .ranks = group_->size(),
                 .generation = group_->roster().generation},
                group_->rank());
  if (lost_ && leads()) {
    reports_.event("recovered",
                   fmt::format(R"("step": {}, "ranks": {}, "recover_s": {:.4f})", state_.steps(),
                               group_->size(), (now - *lost_).count_seconds()));
  }
  lost_.reset();
  return {};
}

Status TrainerRank::after_step() {
  const std::span<const float> tail = gradient().subspan(shards_.layout().size());
  const auto size = static_cast<float>(group_->size());
  const bool join = tail[kJoin] > 0;
  const float leave = tail[kLeave];
  const bool settled = saving_ && tail[kSaved] + tail[kUnsaved] >= size;
  const bool good = tail[kUnsaved] <= 0;
  if (settled && good) {
    const Result<bool> done = commit_checkpoint("while training goes on");
    if (done && !*done) return go_on_without();
    if (!done) {
      // A newer life of the job has begun: this one must not go on.
      if (done.error().kind == ErrorKind::kInfeasible) return tl::unexpected(done.error());
      reports_.say("a checkpoint failed: " + done.error().text());
    }
  } else if (settled) {
    saving_.reset();
  }
  if (leave >= size) {
    // All leave: what was done is kept for whoever goes on.
    const Result<bool> kept = save_last();
    if (!kept) return tl::unexpected(kept.error());
    if (!*kept || !group_->communicator().barrier()) return go_on_without();
    leaving_ = true;
    return {};
  }
  if (!saving_ && state_.steps() % spec_.checkpoint.every == 0 && state_.steps() < spec_.steps) {
    if (Status begun = begin_checkpoint(); !begun) return begun;
  }
  const bool look = spec_.evaluate_every > 0 && state_.steps() % spec_.evaluate_every == 0;
  if (look && leads() && state_.steps() < spec_.steps) evaluate();
  // A signal to all does not come to all at once.
  some_leave_ = leave > 0 ? some_leave_ + 1 : 0;
  leaving_ = asked_ && some_leave_ > kStepsTogether;
  if (leaving_) return {};
  if (join || some_leave_ > kStepsTogether) return regroup();
  return {};
}

// --- Membership ---------------------------------------------------------------------------------

/// A peer is missed.
Status TrainerRank::go_on_without() {
  if (!lost_) lost_ = env_.clock.now_monotonic();
  return regroup();
}

Status TrainerRank::regroup() {
  do {
    const auto step = has_state_ ? std::optional(state_.steps()) : std::nullopt;
    if (Status again = group_->regroup(step); !again) return again;
    if (Status source = check_source(); !source) return source;
  } while (!feed_those_behind());
  // A snapshot of the generation before is nobody's, even while it is still being written.
  saving_.reset();
  saved_.reset();
  unsaved_ = false;
  some_leave_ = 0;
  const Roster& roster = group_->roster();
  if (!leads()) return {};
  reports_.lead(TrainingReports::Before::kOfThis);
  std::string more = fmt::format(R"("attempt": {}, "generation": {}, "ranks": {}, "step": {})",
                                 seat_.attempt, roster.generation, group_->size(), state_.steps());
  if (lost_) {
    // When the loss was seen, by the clock of the line.
    const Duration ago = env_.clock.now_monotonic() - *lost_;
    const Instant seen = env_.clock.now_wall() - ago;
    more += fmt::format(R"(, "lost_at": {:.3f})", static_cast<double>(seen.ns()) / 1e9);
  }
  reports_.event("regrouped", more);
  return claim();
}

/// Newcomers alone have nothing to go on from but a checkpoint, which the next attempt reads.
Status TrainerRank::check_source() const {
  const Roster& roster = group_->roster();
  if (roster.members[roster.source()].step) return {};
  return environment_error("no rank is left that has the state of the training");
}

/// Whoever has fewer steps than the farthest gets its state. False: a peer was lost; who was being
/// fed then has none.
bool TrainerRank::feed_those_behind() {
  const Roster& roster = group_->roster();
  const std::uint32_t source = roster.source();
  const std::uint32_t self = group_->rank();
  for (std::uint32_t rank = 0; rank < group_->size(); ++rank) {
    if (roster.members[rank].step == roster.members[source].step) continue;
    if (self == source && !state_.send(group_->communicator(), rank)) return false;
    if (self != rank) continue;
    has_state_ = false;
    if (!state_.receive(group_->communicator(), source)) return false;
    has_state_ = true;
  }
  return true;
}

// --- Checkpoints --------------------------------------------------------------------------------

Status TrainerRank::begin_checkpoint() {
  const std::uint32_t generation = group_->roster().generation;
  const ShardName name{
      {seat_.job, {seat_.attempt, generation}, state_.steps()}, group_->rank(), group_->size()};
  saving_ = state_.steps();
  saved_.reset();
  (void)writer_.poll();  // of a generation before
  unsaved_ = !writer_.idle();
  if (unsaved_) {
    reports_.say(
        fmt::format("step {} is not saved: the checkpoint before the last change of "
                    "ranks is still being written",
                    state_.steps()));
    return {};
  }
  const std::vector<PieceView> pieces = state_.pieces(group_->rank(), group_->size());
  const Status begun = writer_.begin(name, pieces);
  unsaved_ = !begun;
  if (!begun) reports_.say("a checkpoint failed: " + begun.error().text());
  return {};
}

/// False: a peer was lost meanwhile; the caller regroups, as all others do, once.
Result<bool> TrainerRank::commit_checkpoint(std::string_view when) {
  ORRERY_ASSERT(saving_ && saved_, "every rank's part is durable");
  const Shared<std::vector<ShardRecord>> records = gather_records();
  const std::uint64_t step = *saving_;
  saving_.reset();
  saved_.reset();
  if (!records) return false;
  if (!leads()) return true;
  const std::string path = step_directory(spec_.checkpoint.directory, step);
  Manifest manifest{.id = {seat_.job, {seat_.attempt, group_->roster().generation}, step},
                    .world = group_->size(),
                    .shards = *records,
                    .extra = fmt::format(R"({{"samples": {}, "seed": {}}})",
                                         step * spec_.batch.sequences, spec_.seed)};
  if (Status done = orrery::commit_checkpoint(spec_.checkpoint.directory, manifest); !done) {
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

/// Of all ranks, at the one that leads.
Shared<std::vector<ShardRecord>> TrainerRank::gather_records() {
  Communicator& ranks = group_->communicator();
  std::string text = shard_record_text(saved_->record);
  std::uint64_t size = text.size();
  std::vector<std::uint64_t> sizes(group_->size());
  auto told = ranks.all_gather(std::as_bytes(std::span(&size, 1)),
                               std::as_writable_bytes(std::span(sizes)));
  if (!told) return tl::unexpected(told.error());
  std::vector<ShardRecord> records{saved_->record};
  if (!leads()) {
    auto sent = ranks.send(std::as_bytes(std::span(text)), 0);
    if (!sent) return tl::unexpected(sent.error());
    return records;
  }
  for (std::uint32_t rank = 1; rank < group_->size(); ++rank) {
    text.resize(sizes[rank]);
    auto got = ranks.receive(std::as_writable_bytes(std::span(text)), rank);
    if (!got) return tl::unexpected(got.error());
    Result<ShardRecord> record = parse_shard_record(text, fmt::format("rank {}", rank));
    if (!record) return tl::unexpected(PeerLost{rank});
    records.push_back(std::move(*record));
  }
  return records;
}

/// What there is now, at once. False: a peer was lost meanwhile.
Result<bool> TrainerRank::save_last() {
  if (saving_ && !saved_ && !unsaved_) {
    if (Result<WrittenShard> written = writer_.wait(); written) saved_ = std::move(*written);
  }
  if (saving_ != state_.steps()) {
    if (!writer_.idle()) (void)writer_.wait();
    if (Status begun = begin_checkpoint(); !begun) return forward_error(begun);
    if (!unsaved_) {
      Result<WrittenShard> written = writer_.wait();
      if (!written) reports_.say("the last checkpoint failed: " + written.error().text());
      if (written) saved_ = std::move(*written);
    }
  }
  std::int32_t saved = saved_ ? 1 : 0;
  const Elements vote(std::as_writable_bytes(std::span(&saved, 1)), SumType::kInt32);
  if (!group_->communicator().all_reduce(vote)) return false;
  if (saved < static_cast<std::int32_t>(group_->size())) {
    return environment_error(
        fmt::format("{} of {} ranks could write their part of the last checkpoint to {}", saved,
                    group_->size(), spec_.checkpoint.directory));
  }
  return commit_checkpoint("at the end");
}

void TrainerRank::evaluate() {
  const auto loss = shards_.evaluate(state_.parameters(), spec_.evaluate_sequences);
  if (!loss) return;
  reports_.event("evaluated",
                 fmt::format(R"("step": {}, "held_out_loss": {:.6g})", state_.steps(), *loss));
}

}  // namespace orrery
