#include "runtime/training/trainer_rank.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/assert.hpp"
#include "base/format/checksum.hpp"
#include "runtime/checkpoint/checkpoint_directory.hpp"
#include "runtime/kernels/gemm.hpp"
#include "runtime/kernels/kernels.hpp"

namespace orrery {
namespace {

/// How many steps ranks that were asked to end wait for the others to be asked, too.
constexpr std::uint32_t kStepsTogether = 2;
/// The least time a rank may be silent.
constexpr Duration kPatience = Duration::seconds(60);

/// Returns the floats of the largest part.
std::size_t largest_part(const TrainingSpec& spec) {
  std::size_t most = 0;
  ModelPart part = spec.layout.parts();
  for (; part.stage < part.stages; ++part.stage) {
    most = std::max(most, ParameterLayout(spec.model, part).size());
  }
  return most;
}

std::string layout_json(const TrainingSpec& spec) {
  const bool recomputes = spec.model.recompute == ActivationRecompute::kFull;
  const TrainingLayout& layout = spec.layout;
  return fmt::format(R"({{"tp": {}, "pp": {}, "vpp": {}, "ep": {}, "zero": {}, "micro_batch": {}, )"
                     R"("recompute": "{}"}})",
                     layout.tp, layout.pp, layout.vpp, layout.ep, layout.zero, spec.batch.micro,
                     recomputes ? "full" : "none");
}

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

}  // namespace

TrainerRank::TrainerRank(const TrainingSpec& spec, const TextStream& stream, Env env,
                         TrainingSeat seat)
    : spec_(spec),
      stream_(stream),
      env_(env),
      seat_(std::move(seat)),
      gradient_floats_(largest_part(spec)),
      optimizer_{.beta1 = spec.optimizer.beta1,
                 .beta2 = spec.optimizer.beta2,
                 .weight_decay = spec.optimizer.weight_decay},
      schedule_{.peak = spec.optimizer.peak_rate,
                .lowest = spec.optimizer.lowest_rate,
                .warmup = static_cast<std::int64_t>(spec.optimizer.warmup),
                .steps = static_cast<std::int64_t>(spec.steps)},
      reports_(spec, env, seat_.progress),
      checkpoint_(spec, seat_.job, seat_.attempt, reports_) {
  const std::size_t floats = gradient_floats_ + kTailSize + ReplicaPeers::room_floats(spec);
  seat_.group.workspace_bytes = floats * sizeof(float);
  seat_.group.members_max = spec.batch.shards * spec.layout.ranks();
  seat_.group.members_unit = spec.layout.ranks();
  if (spec.layout.cut()) return;
  shards_.emplace(spec, stream);
  if (seat_.flip_in) shards_->flip_in(*seat_.flip_in);
  state_.emplace(spec.model, spec.seed);
}

Result<std::unique_ptr<TrainerRank>> TrainerRank::start(const TrainingSpec& spec,
                                                        const TextStream& stream, Env env,
                                                        TrainingSeat seat) {
  const std::uint32_t of_a_replica = spec.layout.ranks();
  if (seat.group.world % of_a_replica != 0) {
    return input_error(spec.layout.where,
                       fmt::format("layout: {} ranks are no whole number of replicas of {}",
                                   seat.group.world, of_a_replica));
  }
  if (seat.group.world / of_a_replica > spec.batch.shards) {
    return input_error(
        spec.batch.where,
        fmt::format("batch.shards: {} shards are too few for {} {}", spec.batch.shards,
                    seat.group.world / of_a_replica, of_a_replica == 1 ? "ranks" : "replicas"));
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
  if (Status read = state_->restore(*found->reader); !read) return read;
  reports_.say(fmt::format("goes on from step {} of {}", state_->steps(),
                           step_directory(spec_.checkpoint.directory, state_->steps())));
  return {};
}

std::uint64_t TrainerRank::saved_steps() const {
  const auto listed = list_checkpoints(spec_.checkpoint.directory);
  const bool saved =
      listed && !listed->empty() && listed->front().state == ListedCheckpoint::State::kCommitted;
  return saved ? listed->front().step : 0;
}

bool TrainerRank::over() const { return saved_steps() >= spec_.steps; }

Status TrainerRank::meet() {
  const bool founds = seat_.epoch == 0;
  if (founds && state_) {
    if (Status restored = restore(); !restored) return restored;
    has_state_ = true;
  }
  if (!founds) seat_.group.over = [this] { return over(); };
  auto group = founds
                   ? MemberGroup::found(env_.clock, seat_.group, has_state_ ? state_->steps() : 0)
                   : MemberGroup::join(env_.clock, seat_.group);
  too_late_ = !group && !founds && over();
  if (too_late_) return {};
  if (!group) return forward_error(group);
  group_ = std::move(*group);
  Result<bool> placed = take_place();
  if (!placed) return forward_error(placed);
  if (!*placed) return go_on_without();
  if (too_late_ || !leads()) return {};
  const bool anew = seat_.attempt == 1 && state_->steps() == 0;
  reports_.lead(anew ? TrainingReports::Before::kOfAnother : TrainingReports::Before::kOfThis);
  reports_.event(
      "begin",
      fmt::format(R"("attempt": {}, "generation": {}, "ranks": {}, "step": {}, "memory": {}, )"
                  R"("layout": {})",
                  seat_.attempt, group_->roster().generation, grid_->all().size(), state_->steps(),
                  quoted(group_->shares_memory() ? "shared" : "sockets"), layout_json(spec_)));
  return claim();
}

/// Keeps earlier generations from committing a checkpoint. A full disk is no error here, because
/// every commit claims, too.
Status TrainerRank::claim() {
  Status claimed = claim_checkpoints(
      spec_.checkpoint.directory,
      {seat_.job, {seat_.attempt, group_->roster().generation}, state_ ? state_->steps() : 0});
  if (claimed || claimed.error().kind == ErrorKind::kInfeasible) return claimed;
  reports_.say("the checkpoints are not claimed: " + claimed.error().text());
  return {};
}

Result<TrainingOutcome> TrainerRank::run(const std::function<bool()>& stop) {
  const TrainingOutcome done{TrainingOutcome::End::kDone, spec_.steps};
  if (too_late_) return done;
  // A single rank may have to save a whole state; a divided state is always saved by all ranks.
  const std::uint32_t savers = spec_.layout.cut() ? grid_->all().size() : 1;
  const std::size_t saved = ParameterLayout(spec_.model).size() / savers;
  if (Status room = checkpoint_.reserve(3 * saved * sizeof(float)); !room) {
    return forward_error(room);
  }
  while (state_->steps() < spec_.steps) {
    Result<bool> went_on = step(stop);
    if (!went_on) return forward_error(went_on);
    if (too_late_) return done;
    if (wrong_) {
      group_.reset();
      return TrainingOutcome{TrainingOutcome::End::kWrong, state_->steps()};
    }
    if (!*went_on) continue;
    if (!leaving_) continue;
    group_->farewell();
    return TrainingOutcome{TrainingOutcome::End::kStopped, state_->steps()};
  }
  for (;;) {
    Result<bool> finished = finish();
    if (!finished) return forward_error(finished);
    if (*finished) break;
    if (Status again = go_on_without(); !again) {
      // Too few ranks may be left to regroup, but enough to see that training is complete.
      if (over()) break;
      return forward_error(again);
    }
    if (too_late_) return done;
  }
  group_->farewell();
  return done;
}

/// Saves the last step and reports it. False: a peer was lost meanwhile.
Result<bool> TrainerRank::finish() {
  Result<bool> saved = checkpoint_.make_now(makers(), *state_, "at the end");
  if (!saved || !*saved) return saved;
  evaluate();
  const Shared<std::string> hash = state_->hash(grid_->all());
  if (hash && leads()) {
    reports_.event("end",
                   fmt::format(R"("step": {}, "state_sha256": "{}")", state_->steps(), *hash));
  }
  // No rank leaves before it is saved, or the others would have to do it again.
  return hash && grid_->all().barrier();
}

// --- A step -------------------------------------------------------------------------------------

std::span<float> TrainerRank::gradient() {
  return {reinterpret_cast<float*>(group_->workspace().data()), gradient_floats_ + kTailSize};
}

Result<bool> TrainerRank::step(const std::function<bool()>& stop) {
  begun_ = env_.clock.now_monotonic();
  Result<bool> done = sum_gradient(stop);
  if (*done) done = verify();
  if (!done) return done;
  if (wrong_) return false;
  if (*done) done = apply();
  if (!done) return done;
  if (!*done) {
    if (Status again = go_on_without(); !again) return forward_error(again);
    return false;
  }
  if (Status rest = after_step(); !rest) return forward_error(rest);
  return true;
}

bool TrainerRank::sum_gradient(const std::function<bool()>& stop) {
  const auto checked = checked_shard(state_->steps(), spec_.checked_every(), grid_->shards());
  shards_->watch(checked ? std::optional(checked->shard) : std::nullopt);
  shards_->compute(state_->parameters(), state_->steps(), grid_->own_shards(), gradient());
  if (peers_ && peers_->broken()) return false;
  const std::span<float> told = tail();
  std::ranges::fill(told.subspan(shards_->losses()), 0.0f);
  checkpoint_.poll();
  told[kJoin] = group_->tend() ? 1.0f : 0.0f;
  told[kLeave] = stop() ? 1.0f : 0.0f;
  told[kSaved] = checkpoint_.saved() ? 1.0f : 0.0f;
  told[kUnsaved] = checkpoint_.unsaved() ? 1.0f : 0.0f;
  asked_ = told[kLeave] > 0;
  computed_ = env_.clock.now_monotonic();
  return exchange_gradient();
}

/// Sums over all shards the part of the gradient that this rank steps by and the losses in the
/// tail, and over all ranks the flags in the tail.
bool TrainerRank::exchange_gradient() {
  Communicator& column = grid_->column();
  if (spec_.layout.zero == 0) {
    if (!column.all_reduce_shards(Elements(gradient()), grid_->shards())) return false;
  } else {
    const auto parts = held_parts(gradient_floats_, column.size());
    const Elements sum(gradient().first(gradient_floats_));
    if (!column.reduce_scatter_shards(sum, grid_->shards(), parts)) return false;
    if (!column.all_reduce_shards(Elements(tail()), grid_->shards())) return false;
  }
  // Each rank of a last stage has the loss; only one must count.
  const bool tells = grid_->part().last() && grid_->part().tensor_rank == 0;
  if (!tells) tail()[kLoss] = 0;
  // Each rank of a stage has the router loss of its layers.
  if (grid_->part().tensor_rank > 0) tail()[kRouterLoss] = 0;
  return grid_->replica().all_reduce(Elements(tail())).has_value();
}

/// In a checked step, verifies that all ranks have equal results. False: a peer was lost, or is
/// left out because its result differs; the step is then repeated without it.
Result<bool> TrainerRank::verify() {
  const auto checked = checked_shard(state_->steps(), spec_.checked_every(), grid_->shards());
  if (!checked) return true;
  const std::uint32_t self = group_->rank();
  const auto computed = [&] {
    return shards_->checksum_of(state_->parameters(), state_->steps(), checked->shard);
  };
  GradientOpinion own{.sum = checksum_of_floats(gradient().first(gradient_floats_)),
                      .shard = self == checked->owner ? shards_->watched() : 0,
                      .machine = checksum(gemm_identity() + kernels().isa, 0)};
  if (self == checked->other) own.shard = computed();
  const auto first = opinions(own);
  if (!first) return false;
  if (!comparable(*first) || agree(*first, *checked)) return true;
  own.shard = computed();
  const auto again = opinions(own);
  if (!again) return false;
  const auto wrong = wrong_ranks(*first, *again, *checked);
  const std::uint64_t step = state_->steps() + 1;
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

/// Gathers the opinions of all ranks, by rank.
Shared<std::vector<GradientOpinion>> TrainerRank::opinions(const GradientOpinion& own) {
  std::vector<GradientOpinion> all(group_->size());
  auto told = group_->communicator().all_gather(std::as_bytes(std::span(&own, 1)),
                                                std::as_writable_bytes(std::span(all)));
  if (!told) return tl::unexpected(told.error());
  return all;
}

/// Steps by the gradient. False: a peer was lost meanwhile, and the state is of no step.
Result<bool> TrainerRank::apply() {
  const FloatRange own = state_->stepped();
  const std::span<const float> sum = gradient().subspan(own.begin, own.size());
  const Shared<double> squares = squared_length(*grid_, shards_->layout(), {own, sum});
  if (!squares) return false;
  const auto shards = static_cast<float>(spec_.batch.shards);
  const auto number = static_cast<std::int64_t>(state_->steps()) + 1;
  const OptimizerStep how{
      .number = number, .rate = schedule_.rate(number), .gradient_scale = 1.0f / shards};
  const double norm = std::sqrt(*squares) * static_cast<double>(how.gradient_scale);
  Status stepped = state_->step(optimizer_, sum, how, {norm, spec_.optimizer.clip});
  if (!stepped) return forward_error(stepped);
  if (!state_->gather_weights(grid_->column(), gradient().first(gradient_floats_))) return false;
  const Instant now = env_.clock.now_monotonic();
  longest_ = std::max(longest_, now - begun_);
  group_->set_patience(std::max(kPatience, longest_ + longest_ + longest_));
  reports_.step({.step = state_->steps(),
                 .loss = static_cast<double>(tail()[kLoss] / shards),
                 .router_loss = static_cast<double>(tail()[kRouterLoss] / shards) /
                                static_cast<double>(spec_.model.layers),
                 .rate = how.rate,
                 .gradient_norm = norm,
                 .took = now - begun_,
                 .compute = computed_ - begun_,
                 .ranks = grid_->all().size(),
                 .generation = group_->roster().generation},
                group_->rank());
  if (lost_ && leads()) {
    reports_.event("recovered",
                   fmt::format(R"("step": {}, "ranks": {}, "recover_s": {:.4f})", state_->steps(),
                               grid_->all().size(), (now - *lost_).count_seconds()));
  }
  lost_.reset();
  return true;
}

Status TrainerRank::after_step() {
  const auto size = static_cast<float>(grid_->all().size());
  const bool join = tail()[kJoin] > 0;
  const float leave = tail()[kLeave];
  const std::uint32_t generation = group_->roster().generation;
  if (checkpoint_.making() && tail()[kSaved] + tail()[kUnsaved] >= size) {
    Status committed = commit_when_written();
    if (!committed || too_late_ || group_->roster().generation != generation) return committed;
  }
  if (leave >= size) {
    // All leave: the state is saved for the next attempt.
    const Result<bool> kept = checkpoint_.make_now(makers(), *state_, "at the end");
    if (!kept) return tl::unexpected(kept.error());
    if (!*kept || !grid_->all().barrier()) return go_on_without();
    leaving_ = true;
    return {};
  }
  if (!checkpoint_.making() && state_->steps() % spec_.checkpoint.every == 0 &&
      state_->steps() < spec_.steps) {
    if (!checkpoint_.begin(makers(), *state_)) return go_on_without();
  }
  if (spec_.copied_every() > 0 && state_->steps() % spec_.copied_every() == 0) {
    if (!copies_.keep(grid_->all(), *state_)) return go_on_without();
  }
  const bool look = spec_.evaluate_every > 0 && state_->steps() % spec_.evaluate_every == 0;
  if (look && state_->steps() < spec_.steps) evaluate();
  // A signal to all ranks does not reach all at the same time.
  some_leave_ = leave > 0 ? some_leave_ + 1 : 0;
  const bool some_go = some_leave_ > kStepsTogether;
  leaving_ = asked_ && some_go;
  return join || some_go ? change_ranks() : Status();
}

/// All ranks have finished writing: commits the checkpoint, or drops it.
Status TrainerRank::commit_when_written() {
  if (tail()[kUnsaved] > 0) {
    checkpoint_.forget();
    return {};
  }
  const Result<bool> done = checkpoint_.commit(makers(), "while training goes on");
  if (done && !*done) return go_on_without();
  if (done) return {};
  // A newer incarnation of the job has begun: this one must not continue.
  if (done.error().kind == ErrorKind::kInfeasible) return tl::unexpected(done.error());
  reports_.say("a checkpoint failed: " + done.error().text());
  return {};
}

/// Changes the ranks when some join or leave and none is lost; saving first avoids losing a step.
Status TrainerRank::change_ranks() {
  if (spec_.layout.cut()) {
    const Result<bool> kept = checkpoint_.make_now(makers(), *state_, "before ranks change");
    if (!kept) reports_.say(kept.error().text());
    const bool lost = (kept && !*kept) || !grid_->all().barrier();
    if (lost) return go_on_without();
  }
  return leaving_ ? Status() : regroup();
}

// --- Membership ---------------------------------------------------------------------------------

/// Continues without a lost peer.
Status TrainerRank::go_on_without() {
  if (!lost_) lost_ = env_.clock.now_monotonic();
  return regroup();
}

Status TrainerRank::regroup() {
  for (bool placed = false; !placed;) {
    const auto step = has_state_ ? std::optional(state_->steps()) : std::nullopt;
    peers_.reset();
    grid_.reset();
    if (Status again = group_->regroup(step); !again) return again;
    Result<bool> taken = take_place();
    if (!taken) return forward_error(taken);
    placed = *taken;
  }
  // A snapshot of the previous generation is dropped, even while it is still being written.
  checkpoint_.forget();
  some_leave_ = 0;
  if (too_late_ || !leads()) return {};
  const Roster& roster = group_->roster();
  reports_.lead(TrainingReports::Before::kOfThis);
  std::string more =
      fmt::format(R"("attempt": {}, "generation": {}, "ranks": {}, "step": {})", seat_.attempt,
                  roster.generation, grid_->all().size(), state_->steps());
  if (lost_) {
    // The time when the loss was seen, by the clock that stamps the line.
    const Duration ago = env_.clock.now_monotonic() - *lost_;
    const Instant seen = env_.clock.now_wall() - ago;
    more += fmt::format(R"(, "lost_at": {:.3f})", static_cast<double>(seen.ns()) / 1e9);
  }
  reports_.event("regrouped", more);
  return claim();
}

/// Determines this rank's place in a new generation, and gets the state for it. False: a peer was
/// lost meanwhile.
Result<bool> TrainerRank::take_place() {
  Result<bool> same = compare_specs();
  if (!same || !*same) return same;
  if (!spec_.layout.cut()) {
    if (Status source = check_source(); !source) return forward_error(source);
    grid_.emplace(spec_, *group_);
    return feed_those_behind();
  }
  while (!too_late_ && group_->rank() >= RankGrid::places(spec_, group_->size())) {
    if (Status waited = wait_for_place(); !waited) return forward_error(waited);
    if (same = too_late_ ? true : compare_specs(); !same || !*same) return same;
  }
  if (too_late_) return true;
  grid_.emplace(spec_, *group_);
  return take_share();
}

/// Refuses a spec that was edited between the start of the ranks and that of a newcomer. False: a
/// peer was lost.
Result<bool> TrainerRank::compare_specs() {
  std::uint64_t of_source = spec_.checksum;
  const auto told = std::as_writable_bytes(std::span(&of_source, 1));
  if (!group_->communicator().broadcast(told, group_->roster().source())) return false;
  if (of_source == spec_.checksum) return true;
  return environment_error(
      fmt::format("{}: changed since attempt {} began, whose ranks go on by the text it had then; "
                  "the next attempt reads it anew",
                  spec_.where.file, seat_.attempt));
}

/// Ranks that make no whole replica leave, and ask for a place as newcomers do until there is one.
Status TrainerRank::wait_for_place() {
  if (group_->size() < spec_.layout.ranks()) {
    return environment_error(
        fmt::format("{} of the {} ranks of a replica are left; the next attempt goes on from the "
                    "newest checkpoint",
                    group_->size(), spec_.layout.ranks()));
  }
  reports_.say("waits until there are enough ranks for another replica");
  group_->farewell();
  group_.reset();
  has_state_ = false;
  if (seat_.group.addresses.empty()) seat_.group.addresses = {seat_.group.master};
  seat_.group.over = [this] { return over(); };
  auto group = MemberGroup::join(env_.clock, seat_.group);
  too_late_ = !group && over();
  if (too_late_) return {};
  if (!group) return forward_error(group);
  group_ = std::move(*group);
  return {};
}

/// Gets this rank's share of the state, which all read from one copy or checkpoint, or draw anew.
Result<bool> TrainerRank::take_share() {
  // From now on the previous generation can commit no newer checkpoint.
  if (leads()) {
    if (Status claimed = claim(); !claimed) return forward_error(claimed);
  }
  has_state_ = false;
  if (!grid_->all().barrier()) return false;
  // Each rank computes what all of a replica have; with other products the copies would diverge.
  const std::uint64_t products = checksum(gemm_identity(), 0);
  std::uint64_t of_first = products;
  const auto compared = std::as_writable_bytes(std::span(&of_first, 1));
  if (!grid_->replica().broadcast(compared, 0)) return false;
  if (of_first != products) {
    return environment_error(
        fmt::format("this machine multiplies by {}, other ranks of its replica otherwise: they "
                    "share no layers",
                    gemm_identity()));
  }
  const ModelPart& part = grid_->part();
  peers_.reset();
  shards_.emplace(spec_, stream_, part);
  gradient_floats_ = shards_->layout().size();
  if (!part.whole()) {
    const std::size_t floats = ReplicaPeers::room_floats(spec_);
    const std::span<std::byte> room = group_->workspace().last(floats * sizeof(float));
    peers_.emplace(spec_, *grid_, std::span(reinterpret_cast<float*>(room.data()), floats));
    shards_->model().share(*peers_);
  }
  const bool zero = spec_.layout.zero > 0;
  state_.emplace(
      spec_.model, spec_.seed,
      StateShare{part, grid_->replica_number(), grid_->column().size(),
                 zero ? StateShare::Moments::kOfHeldRange : StateShare::Moments::kOfPart});
  return read_share();
}

/// Reads the copies that ranks have kept in memory, unless a checkpoint is newer.
Result<bool> TrainerRank::read_share() {
  Communicator& all = grid_->all();
  const Shared<std::optional<std::uint64_t>> kept = copies_.newest(all);
  if (!kept) return false;
  std::uint8_t from_memory = *kept && **kept >= saved_steps() ? 1 : 0;
  if (!all.broadcast(std::as_writable_bytes(std::span(&from_memory, 1)), 0)) return false;
  if (from_memory == 0) return read_saved_share();
  has_state_ = copies_.restore(all, *state_).has_value();
  if (has_state_ && leads()) {
    reports_.say(fmt::format("goes on from step {}, which ranks had in memory", state_->steps()));
  }
  return has_state_;
}

Result<bool> TrainerRank::read_saved_share() {
  constexpr std::uint64_t kNone = ~std::uint64_t{0};
  if (Status restored = restore(); !restored) return forward_error(restored);
  std::uint64_t step = leads() ? state_->steps() : kNone;
  const auto told = std::as_writable_bytes(std::span(&step, 1));
  if (!grid_->all().broadcast(told, 0)) return false;
  has_state_ = step == state_->steps();
  if (has_state_) return true;
  return environment_error(
      fmt::format("{}: this rank reads the checkpoint of step {}, another "
                  "that of step {}",
                  spec_.checkpoint.directory, state_->steps(), step));
}

/// Newcomers alone can continue only from a checkpoint, which the next attempt reads.
Status TrainerRank::check_source() const {
  const Roster& roster = group_->roster();
  if (roster.members[roster.source()].step) return {};
  return environment_error("no rank is left that has the state of the training");
}

/// Sends the state of the farthest rank to ranks with fewer steps. False: a peer was lost; a rank
/// that was receiving then has no state.
bool TrainerRank::feed_those_behind() {
  const Roster& roster = group_->roster();
  const std::uint32_t source = roster.source();
  const std::uint32_t self = group_->rank();
  for (std::uint32_t rank = 0; rank < group_->size(); ++rank) {
    if (roster.members[rank].step == roster.members[source].step) continue;
    if (self == source && !state_->send(group_->communicator(), rank)) return false;
    if (self != rank) continue;
    has_state_ = false;
    if (!state_->receive(group_->communicator(), source)) return false;
    has_state_ = true;
  }
  return true;
}

/// Evaluates on the first replica, while the others continue.
void TrainerRank::evaluate() {
  if (grid_->replica_number() != 0) return;
  auto loss = shards_->evaluate(state_->parameters(), spec_.evaluate_sequences);
  if (!loss) return;
  // The first rank of the last stage has the loss.
  const ModelPart& part = grid_->part();
  const auto told = std::as_writable_bytes(std::span(&*loss, 1));
  if (!grid_->replica().broadcast(told, part.ranks() - part.tensor_ranks)) return;
  if (!leads() || (peers_ && peers_->broken())) return;
  reports_.event("evaluated",
                 fmt::format(R"("step": {}, "held_out_loss": {:.6g})", state_->steps(), *loss));
}

}  // namespace orrery
