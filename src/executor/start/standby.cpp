#include "executor/start/standby.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fleet/spec/spec.hpp"

namespace orrery {
namespace {

/// The pause before a claim that got no answer is repeated.
constexpr Duration kClaimAgain = Duration::milliseconds(100);
/// How often texts are asked for; each try waits for every member of the store.
constexpr int kTextTries = 10;
/// The pause before a store that gave no answer is opened again.
constexpr Duration kOpenAgain = Duration::milliseconds(500);

/// The next batch may need the texts, so this waits for a store that gives no answer.
StorageResult<StoreTexts> texts_of(SharedStore& store) {
  StorageResult<StoreTexts> texts = store.texts();
  for (int i = 0; i < kTextTries && !texts; ++i) {
    if (texts.error().failure != StorageFailure::kUnavailable) break;
    texts = store.texts();
  }
  return texts;
}

/// Error: the files of this machine are those of another cluster than the log. A file that cannot
/// be read is not compared: the log has the fleet that is in use.
Status check_cluster(const SetupTexts& own, const LiveSetup& begun, const State& state) {
  const Result<FleetFile> file = read_fleet_file(own.fleet, "fleet.yaml");
  if (!file) return {};
  const std::string& name = state.setup().topology->name();
  const std::string& found = file->spec.name;
  if (found == name || found == begun.control().topology->name()) return {};
  return input_error({"fleet.yaml", 0, 0},
                     fmt::format("it is of the cluster \"{}\", and the log of the cluster \"{}\": "
                                 "start the controller with the log or the files of the other one",
                                 found, name));
}

}  // namespace

Standby::Standby(const Env& env, const Log& log, const ControllerOptions& options, Events events)
    : env_(env),
      log_(log),
      options_(options),
      events_(std::move(events)),
      sight_(env.clock.now_monotonic()) {}

Standby::~Standby() {
  if (timer_) env_.timers.cancel(*timer_);
}

Result<std::unique_ptr<Standby>> Standby::begin(const Env& env, const Log& log,
                                                const ControllerOptions& options, Events events) {
  auto standby = std::make_unique<Standby>(env, log, options, std::move(events));
  if (Status opened = standby->open(); !opened) return forward_error(opened);
  return standby;
}

Status Standby::open() {
  StorageResult<std::unique_ptr<SharedStore>> store = options_.shared->open();
  if (!store && store.error().failure == StorageFailure::kUnavailable) {
    if (std::exchange(phase_, Phase::kWaits) != Phase::kWaits) {
      log_.warning(env_.clock.now_wall(), "waits for the store", {{"why", store.error().message}});
    }
    call_at(env_.clock.now_monotonic() + kOpenAgain, &Standby::open_again);
    return {};
  }
  if (!store) return forward_error(store);
  store_ = *std::move(store);
  phase_ = Phase::kFollows;
  Status recovered = recover();
  if (!recovered && is_away()) {
    store_.reset();
    call_at(env_.clock.now_monotonic() + kOpenAgain, &Standby::open_again);
    return {};
  }
  if (recovered) follow();
  return recovered;
}

void Standby::wait_for_store(const Error& why) {
  phase_ = Phase::kWaits;
  log_.warning(env_.clock.now_wall(), "waits for the store", {{"why", why.message}});
  call_at(env_.clock.now_monotonic() + kOpenAgain, &Standby::open_again);
}

bool Standby::is_away() const {
  const StorageResult<WriterSeen> seen = store_->look();
  return !seen && seen.error().failure == StorageFailure::kUnavailable;
}

void Standby::open_again() {
  follower_.reset();
  core_.reset();
  store_.reset();
  texts_due_ = true;
  if (Status opened = open(); !opened) give_up(opened.error());
}

/// Reads what the store has; nothing, where the log has not begun.
Status Standby::recover() {
  StorageResult<StoreTexts> texts = store_->texts();
  if (!texts) return forward_error(texts);
  if (texts->empty()) return {};
  Result<std::unique_ptr<LiveSetup>> setup =
      LiveSetup::make(options_.facts, *texts, options_.settings);
  if (!setup) return forward_error(setup);
  auto core = FollowedCore::recover(
      *store_, (*setup)->control(),
      [this](const State& state, const TimedEvent& event) { note_archived(state, event); });
  if (!core) return forward_error(core);
  if (Status same = check_cluster(options_.setup, **setup, (*core)->state()); !same) return same;
  keep_archived();
  texts_ = {*std::move(texts), *std::move(setup)};
  core_ = *std::move(core);
  events_.texts(texts_.texts);
  log_.info(env_.clock.now_wall(), "follows the log",
            {{"store", store_->name()}, {"batches", core_->newest()}});
  return {};
}

void Standby::follow() {
  follower_ = store_->follow({.after = newest(),
                              .inbox = env_.inbox,
                              .seen = [this](const WriterSeen& seen) { see(seen); },
                              .batch = [this](const Batch& batch) { take(batch); },
                              .texts_put = [this] { take_texts(); },
                              .failed = [this](const StorageError& why) { note_store(why); },
                              .ahead = [this](std::uint64_t batch) { sight_.expect(batch); }});
}

void Standby::take_texts() {
  if (phase_ != Phase::kFollows) return;
  texts_due_ = false;
  if (core_ == nullptr) {
    const Status recovered = recover();
    if (!recovered && is_away()) return wait_for_store(recovered.error());
    if (!recovered) give_up(recovered.error());
    return;
  }
  StorageResult<StoreTexts> texts = texts_of(*store_);
  if (!texts && texts.error().failure == StorageFailure::kUnavailable) {
    return wait_for_store(texts.error());
  }
  if (!texts) return give_up(texts.error());
  if (*texts == texts_.texts) return;
  if (Status taken = texts_.setup->take_up(*texts); !taken) return give_up(taken.error());
  texts_.texts = *std::move(texts);
  events_.texts(texts_.texts);
}

void Standby::take(const Batch& batch) {
  if (texts_due_ || core_ == nullptr) take_texts();
  if (phase_ != Phase::kFollows || batch.number <= newest()) return;
  if (core_ == nullptr) {
    return give_up({ErrorKind::kEnvironment,
                    fmt::format("{}: batch {} is there without the texts of the log",
                                store_->name(), batch.number),
                    {}});
  }
  if (HistoryResult<void> taken = core_->take(batch); !taken) return give_up(taken.error());
  keep_archived();
}

void Standby::note_archived(const State& state, const TimedEvent& event) {
  const auto* archived = std::get_if<JobsArchived>(&event.what);
  if (archived == nullptr || !options_.archived_form) return;
  archived_.reserve(archived_.size() + archived->jobs.size());
  for (const JobId job : archived->jobs) {
    archived_.push_back({job.value(), options_.archived_form({state, job, event.at, nullptr})});
  }
}

/// Jobs that cannot be kept here are in the archives of the other controllers.
void Standby::keep_archived() {
  if (archived_.empty()) return;
  const StorageStatus kept = store_->keep_archived(std::exchange(archived_, {}));
  if (!kept) {
    log_.warning(env_.clock.now_wall(), "jobs not archived", {{"why", kept.error().message}});
  }
}

void Standby::see(const WriterSeen& seen) {
  if (texts_due_) take_texts();
  if (phase_ != Phase::kFollows) return;
  const WriterSeen& before = sight_.writer();
  if (seen.writer != before.writer || seen.term != before.term) {
    log_.info(env_.clock.now_wall(), "another controller leads",
              {{"leader", seen.writer}, {"term", seen.term}});
    events_.leader(seen.writer);
  }
  const Instant now = env_.clock.now_monotonic();
  sight_.see(seen, now);
  const std::uint64_t next_job = core_ == nullptr ? 0 : core_->state().jobs();
  if (StorageStatus noted = store_->note_seen(seen, next_job); !noted) {
    return give_up(noted.error());
  }
  claim_at(seen.term == 0 ? now : now + patience());
}

void Standby::note_store(const StorageError& why) {
  if (phase_ != Phase::kFollows) return;
  if (why.failure == StorageFailure::kUnavailable || why.failure == StorageFailure::kFull) {
    return log_.warning(env_.clock.now_wall(), "the store cannot be followed or claimed now",
                        {{"why", why.message}});
  }
  give_up(why);
}

Duration Standby::patience() const {
  const Duration longer = sight_.writer().speaks_for - store_->traits().speaks_for;
  return options_.shared->claims_after + std::max(longer, Duration());
}

void Standby::call_at(Instant at, void (Standby::*then)()) {
  if (timer_) env_.timers.cancel(*timer_);
  timer_ = env_.timers.call_at(at, [this, then] {
    timer_.reset();
    (this->*then)();
  });
}

void Standby::claim() {
  if (phase_ != Phase::kFollows) return;
  const Instant began = env_.clock.now_monotonic();
  const WriterSeen& seen = sight_.writer();
  if (seen.term != 0 && seen.newest != newest()) {  // its batches have not come yet
    return claim_at(began + kClaimAgain);
  }
  const Instant first = sight_.begin_claim(began);
  const StorageResult<StoreTerm> term = store_->claim_after(seen, options_.shared->writer);
  if (term) return lead(*term, first);
  const StorageFailure failure = term.error().failure;
  if (failure == StorageFailure::kSuperseded) {  // what was written is on its way to here
    return claim_at(env_.clock.now_monotonic() + patience());
  }
  if (failure == StorageFailure::kUnavailable || failure == StorageFailure::kFull) {
    note_store(term.error());
    return call_at(env_.clock.now_monotonic() + kClaimAgain, &Standby::probe);
  }
  give_up(term.error());
}

/// The writer has heard as little of the store as this standby: when the store answers again, it
/// has its time to write.
void Standby::probe() {
  if (phase_ != Phase::kFollows) return;
  const Instant now = env_.clock.now_monotonic();
  if (is_away()) return call_at(now + kClaimAgain, &Standby::probe);
  claim_at(now + patience());
}

void Standby::lead(StoreTerm term, Instant began) {
  phase_ = Phase::kLeads;
  follower_.reset();
  RecoveredStart start{.began = env_.clock.now_wall(), .store = {}, .log = {}, .recovered = {}};
  start.store.store = std::move(store_);
  start.store.term = term;
  start.store.claimed = began;
  const auto complete = [&]() -> Result<LiveStart> {
    if (Status whole = start.store.complete(env_, log_, *options_.shared, options_.directory);
        !whole) {
      return forward_error(whole);
    }
    events_.claimed(*start.store.store, term);
    if (core_ != nullptr) {
      start.log = std::move(texts_);
      start.recovered = core_->lead();
    } else {
      Result<LogTexts> texts = begin_texts(env_, start.store, options_);
      if (!texts) return forward_error(texts);
      start.log = *std::move(texts);
      HistoryResult<RecoveredCore> core =
          recover_core(*start.store.store, start.log.setup->control());
      if (!core) return forward_error(core);
      start.recovered = *std::move(core);
    }
    return complete_start(env_, log_, options_, std::move(start));
  };
  Result<LiveStart> live = complete();
  if (!live) return events_.failed(live.error());
  log_.info(env_.clock.now_wall(), "leads",
            {{"term", static_cast<std::uint64_t>(term)}, {"batches", live->history.newest}});
  events_.lead(*std::move(live));
}

void Standby::give_up(const Error& why) {
  phase_ = Phase::kFailed;
  events_.failed(why);
}

}  // namespace orrery
