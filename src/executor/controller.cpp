#include "executor/controller.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/assert.hpp"
#include "base/format/checksum.hpp"
#include "base/format/little_endian.hpp"
#include "control/core/held_situation.hpp"
#include "control/state/snapshot.hpp"

namespace orrery {
namespace {

/// Whether the fleet is another one than that which the log began with.
bool fleet_has_changed(const State& state) { return !state.setup().fleets.text.empty(); }

/// The most bytes submitted and not yet durable; beyond it no new work is accepted.
constexpr std::size_t kWaitingBytesMax = std::size_t{64} << 20;

Duration retain_of(const ControllerSettings& settings) {
  return Duration::from_seconds(settings.retain.value());
}

std::string numbered(const std::string& request_id, std::size_t index) {
  return index == 0 || request_id.empty() ? request_id : fmt::format("{}#{}", request_id, index);
}

}  // namespace

// --- Begin --------------------------------------------------------------------------------------

Result<std::unique_ptr<Controller>> Controller::open(const Env& env, const Log& log,
                                                     ControllerOptions options) {
  auto controller = std::make_unique<Controller>(env, log, std::move(options));
  if (Status begun = controller->begin(); !begun) return forward_error(begun);
  return controller;
}

Controller::Controller(const Env& env, const Log& log, ControllerOptions options)
    : env_(env), log_(log), options_(std::move(options)), started_(env.clock.now_wall()) {}

Controller::~Controller() {
  if (timer_) env_.timers.cancel(*timer_);
  if (disk_timer_) env_.timers.cancel(*disk_timer_);
}

Status Controller::open_store() {
  const std::string directory = options_.directory + "/store";
  std::error_code none;
  if (!std::filesystem::exists(directory, none)) {
    if (Status room = DiskReserve::check_new(options_.directory); !room) return room;
  } else if (DiskReserve::give_up_for_start(directory) == RoomMade::kYes) {
    log_.warning(env_.clock.now_wall(), "reserve given up for the start", {{"store", directory}});
  }
  StorageResult<std::unique_ptr<SqliteStore>> store = SqliteStore::open(directory);
  if (!store) return forward_error(store);
  store_ = *std::move(store);
  StorageResult<StoreTerm> term = store_->claim();
  if (!term) return forward_error(term);
  term_ = *term;
  reserve_ = std::make_unique<DiskReserve>(directory);
  // For reads beside the thread that commits.
  StorageResult<std::unique_ptr<StoreReader>> reader = SqliteStore::open_to_read(directory);
  if (!reader) return forward_error(reader);
  archive_reader_ = *std::move(reader);
  return {};
}

Status Controller::read_step_key() {
  constexpr std::size_t kBytes = 32;
  const std::string path = options_.directory + "/steps.key";
  StorageResult<std::string> key = env_.storage.read_file(path, kBytes);
  if (!key && key.error().failure == StorageFailure::kNotFound) {
    std::string made(kBytes, '\0');
    for (std::size_t at = 0; at < kBytes; at += sizeof(std::uint64_t)) {
      store_little_endian(env_.entropy.draw(), made.data() + at);
    }
    const StorageStatus written = env_.storage.write_file(path, made);
    if (!written) return tl::unexpected<Error>(written.error());
    key = std::move(made);
  }
  if (!key) return forward_error(key);
  if (key->size() != kBytes) {
    return environment_error(fmt::format("{}: {} bytes, expected {}", path, key->size(), kBytes));
  }
  launches_ = LaunchPrograms(*std::move(key));
  return {};
}

Status Controller::begin() {
  if (Status opened = open_store(); !opened) return opened;
  if (Status read = read_step_key(); !read) return read;
  Result<AgentKeys> keys = AgentKeys::open(env_, options_.directory);
  if (!keys) return forward_error(keys);
  agent_keys_.emplace(*std::move(keys));
  Result<StoreTexts> texts = this->texts();
  if (!texts) return forward_error(texts);
  cluster_ = checksum(setup_digest(setup_->texts()), 0);
  limits_.set(options_.settings);
  return recover(*std::move(texts));
}

/// Returns the texts of the log, or those of a new log. The latter are stored only after a setup
/// could be made of them, so that a refused file can be corrected.
Result<StoreTexts> Controller::texts() {
  StorageResult<StoreTexts> stored = store_->texts();
  if (!stored) return forward_error(stored);
  const bool begins = stored->empty();
  if (begins) {
    SetupTexts setup = options_.setup;
    setup.begin = env_.clock.now_wall();
    *stored = store_texts(setup);
  }
  Result<std::unique_ptr<LiveSetup>> setup =
      LiveSetup::make(options_.facts, *stored, options_.settings);
  if (!setup) return forward_error(setup);
  setup_ = *std::move(setup);
  if (!begins) return *std::move(stored);
  if (StorageStatus put = store_->put_texts(term_, *stored); !put) return forward_error(put);
  return *std::move(stored);
}

/// Skips job numbers that the store's mark has and the log has not: a part of the log was lost, and
/// an operator has continued without it.
Status Controller::pass_over_lost(const State& state, StoreTexts& texts) {
  const std::uint64_t next = setup_->control().next_job(state.jobs());
  const std::uint64_t marked = store_->mark().next_job;
  if (marked <= next) return {};
  const StoreTexts added = setup_->lose_jobs({next, marked});
  if (StorageStatus put = store_->put_texts(term_, added); !put) return forward_error(put);
  texts.insert(added.begin(), added.end());
  log_.warning(env_.clock.now_wall(), "job numbers lost with a part of the log",
               {{"from", next}, {"to", marked - 1}});
  return {};
}

Status Controller::recover(StoreTexts texts) {
  HistoryResult<RecoveredCore> recovered = recover_core(*store_, setup_->control());
  if (!recovered) {
    recovered.error().message += repair_commands(options_.directory + "/store");
    return forward_error(recovered);
  }
  for (const std::string& why : recovered->history.passed_over) {
    log_.warning(env_.clock.now_wall(), "snapshot passed over", {{"why", why}});
  }
  const RecoveredHistory& history = recovered->history;
  if (Status passed = pass_over_lost(recovered->core->state(), texts); !passed) return passed;
  setup_->use(recovered->core->state());
  agents_ = std::make_unique<AgentBook>(setup_->facts().topology());
  commands_.emplace(*agents_, env_.entropy);
  passes_.emplace(*recovered->core->state().setup().tree);
  archive_.take_up(recovered->core->state());
  const Instant begin = std::max(env_.clock.now_wall(), recovered->core->state().now());
  ahead_ = begin - env_.clock.now_monotonic();
  const SetupTexts& facts = setup_->texts();
  writer_ = std::make_unique<HistoryWriter>(HistoryWriterOptions{
      .writer = facts.writer, .setup = setup_digest(facts), .before = history.history_hash});
  if (Status begun = begin_record(texts, recovered->core->state()); !begun) return begun;
  bytes_since_snapshot_ = history.read.bytes;
  begin_commits(history);
  HostOutlet& outlet = *this;
  const LinkSetup link{
      .cluster = cluster_,
      .term = static_cast<std::uint64_t>(term_),
      .heartbeats = {.grace = Duration::from_seconds(options_.settings.node_grace.value())}};
  host_ = std::make_unique<AgentHost>(std::move(recovered->core),
                                      AgentHost::Setup{link, options_.lost_jobs}, outlet, now());
  number_nodes();
  logs_.emplace(env_, state(), *agents_);
  decisions_ = std::make_unique<DecisionLog>(env_, log_, state());
  events_ = std::make_unique<EventHistory>(env_, options_.directory + "/store");
  flush();
  if (fleet_has_changed(state()) && halted().empty()) setup_->renewal().add_waiting(state());
  schedule();
  look_at_disk();
  log_.info(
      env_.clock.now_wall(), "history read",
      {{"jobs", state().jobs()}, {"events", history.read.events}, {"batches", history.newest}});
  return {};
}

/// Checks the free disk space every few seconds; logs when it becomes low, and when it is enough
/// again.
void Controller::look_at_disk() {
  constexpr Duration kEvery = Duration::seconds(5);
  const DiskRoom room = reserve_->look();
  if (room != disk_room_) {
    disk_room_ = room;
    const Instant at = env_.clock.now_wall();
    const std::uint64_t free = reserve_->free_bytes();
    if (room == DiskRoom::kLow) {
      log_.error(at, "disk full, submissions are refused",
                 {{"store", options_.directory + "/store"},
                  {"free_bytes", free},
                  {"reserve", reserve_->held() ? "held" : "given up"}});
    } else {
      log_.info(at, "disk has room again, submissions are taken", {{"free_bytes", free}});
    }
  }
  disk_timer_ = env_.timers.call_after(kEvery, [this] { look_at_disk(); });
}

/// Begins one record for each start: DIR/0000000007 for the seventh.
Status Controller::begin_record(const StoreTexts& texts, const State& state) {
  if (options_.record.empty()) return {};
  const std::string directory =
      fmt::format("{}/{:010}", options_.record, static_cast<std::uint64_t>(term_));
  const std::uint64_t hash = writer_->history_hash();
  Result<std::unique_ptr<LiveRecord>> record =
      LiveRecord::create(directory, {.texts = texts,
                                     .settings = options_.settings,
                                     .catalog = options_.catalog,
                                     .snapshot = seal_snapshot(hash, snapshot_of(state)),
                                     .history_hash = hash,
                                     .writer = setup_->texts().writer});
  if (!record) return forward_error(record);
  record_ = *std::move(record);
  return {};
}

/// Ends a recording that failed; the cluster goes on.
void Controller::look_at_record(const Status& status) {
  if (status || record_ == nullptr) return;
  log_.warning(env_.clock.now_wall(), "recording ends", {{"why", status.error().text()}});
  record_.reset();
}

void Controller::begin_commits(const RecoveredHistory& history) {
  commits_ = std::make_unique<GroupCommit>(GroupCommitOptions{
      .store = *store_,
      .term = term_,
      .newest = history.newest,
      .inbox = env_.inbox,
      .durable = [this](std::uint64_t batch) { batch_durable(batch); },
      .failed = [this](const StorageError& error) { options_.failed(error); },
      .snapshot_put =
          [this](const StorageStatus& put) {
            if (!put)
              log_.warning(env_.clock.now_wall(), "no snapshot", {{"why", put.error().message}});
          },
      .archive_put = [this](const StorageStatus& put) { archive_put(put); },
      .make_room = [this] { return reserve_->give_up(); }});
}

// --- Time ---------------------------------------------------------------------------------------

Instant Controller::now() const { return env_.clock.now_monotonic() + ahead_; }

void Controller::schedule() {
  Instant due = host_->next_due();
  if (options_.archived_form && archiving_.empty()) {
    due = std::min(due, archive_.next_due(retain_of(options_.settings)));
  }
  if (!setup_->renewal().empty()) due = std::min(due, now());
  const Instant at = due == Instant::max() ? due : due - ahead_;
  if (timer_ && timer_->at == at) return;
  if (timer_) env_.timers.cancel(*timer_);
  timer_.reset();
  if (at < Instant::max()) timer_ = env_.timers.call_at(at, [this] { act_when_due(); });
}

void Controller::act_when_due() {
  timer_.reset();
  const Instant until = now();
  const Instant began = env_.clock.now_monotonic();
  const std::uint64_t passes = core().passes().incremental;
  while (host_->next_due() <= until) host_->advance(until);
  if (core().passes().incremental != passes) {
    counts_.pass.observe(env_.clock.now_monotonic() - began);
  }
  if (const std::uint64_t term = link().superseded_by(); term != 0) {
    options_.failed({ErrorKind::kEnvironment, "another controller has taken over", {}});
  }
  // Some in each turn: other calls do not wait until thousands are resolved.
  std::vector<ResolveJob> renewed = setup_->renewal().take(state(), setup_->intake(), until);
  if (!renewed.empty()) {
    log_.info(wall(), "jobs resolved for the changed fleet", {{"jobs", renewed.size()}});
  }
  for (ResolveJob& job : renewed) handle(std::move(job));
  snapshot_if_due();
  archive_if_due();
  schedule();
}

// --- The log ------------------------------------------------------------------------------------

void Controller::note(const Input& input) {
  if (record_ != nullptr) record_->note(input);
}

std::uint64_t Controller::append(Instant at, std::span<const Event> events) {
  writer_->append(at, events);
  if (record_ != nullptr) record_->append(at, events);
  for (const Event& event : events) {
    if (decisions_ != nullptr) decisions_->note(event);
    count(event);
    if (const auto* end = std::get_if<JobEnded>(&event)) archive_.on_end(at, end->job);
    const auto* waits = std::get_if<JobRequeued>(&event);
    if (waits != nullptr && fleet_has_changed(state())) setup_->renewal().add(waits->job);
  }
  ++inputs_;
  if (!watches_.empty()) {
    for (const Event& event : events) undurable_.push_back({inputs_, {at, event}});
  }
  if (gathering_ == Gathering::kNo) flush();
  return inputs_;
}

void Controller::count(const Event& event) {
  const auto* start = std::get_if<JobStarted>(&event);
  if (start == nullptr || start->attempt != 1) return;
  const Job& job = state().job(start->job);
  counts_.queue_wait.observe(job.since - job.submitted);
}

void Controller::flush() {
  if (record_ != nullptr) look_at_record(record_->flush());
  const std::string bytes = writer_->take();
  if (bytes.empty()) return;
  bytes_since_snapshot_ += bytes.size();
  const std::uint64_t batch = commits_->submit(bytes, state().jobs());
  if (!batches_.empty() && batches_.back().batch == batch) {
    batches_.back().input = inputs_;
  } else {
    batches_.push_back({batch, inputs_, env_.clock.now_monotonic()});
  }
}

void Controller::batch_durable(std::uint64_t batch) {
  std::uint64_t input = 0;
  while (!batches_.empty() && batches_.front().batch <= batch) {
    input = batches_.front().input;
    counts_.commit.observe(env_.clock.now_monotonic() - batches_.front().submitted);
    batches_.pop_front();
  }
  if (input == 0) return;
  tell_watches(input);
  host_->durable(input);
  snapshot_if_due();
  schedule();
}

void Controller::tell_watches(std::uint64_t number) {
  while (!undurable_.empty() && undurable_.front().input <= number) {
    const TimedEvent event = std::move(undurable_.front().event);
    undurable_.pop_front();
    // A watch may remove itself, or add another.
    std::vector<EventWatch> watches;
    watches.reserve(watches_.size());
    for (const auto& [id, watch] : watches_) watches.push_back(watch);
    for (const EventWatch& watch : watches) watch(event);
  }
}

void Controller::snapshot_if_due() {
  if (static_cast<double>(bytes_since_snapshot_) < options_.settings.snapshot_every.value()) return;
  bytes_since_snapshot_ = 0;
  flush();
  commits_->put_snapshot(writer_->snapshot(state()));
  writer_->begin_segment();
}

/// Jobs are written to the archive first, then leave the state: after a crash in between they are
/// in both, and are archived again.
void Controller::archive_if_due() {
  if (!host_->halted_by().empty() || !options_.archived_form || !archiving_.empty()) return;
  archiving_ = archive_.take_due(state(), now(), retain_of(options_.settings));
  if (archiving_.empty()) return;
  std::vector<ArchivedJob> rows;
  rows.reserve(archiving_.size());
  for (const JobId job : archiving_) {
    rows.push_back({job.value(), options_.archived_form(*this, job)});
  }
  commits_->put_archived(std::move(rows));
}

void Controller::archive_put(const StorageStatus& put) {
  const std::vector<JobId> jobs = std::exchange(archiving_, {});
  if (put) {
    handle(ArchiveJobs{jobs});
  } else {
    log_.warning(env_.clock.now_wall(), "jobs not archived", {{"why", put.error().message}});
  }
  for (const JobId job : jobs) {
    if (state().has(job)) archive_.on_stayed(now(), job);
  }
  schedule();
}

void Controller::compact(Answered<CompactedLog> answered) {
  if (const std::string why = halted(); !why.empty()) return answered(environment_error(why));
  flush();
  const std::string snapshot = snapshot_of(state());
  State again(setup_->control());
  if (Status restored = restore(again, snapshot); !restored) {
    return answered(forward_error(restored));
  }
  if (digest_of(again) != digest_of(state())) {
    return answered(
        environment_error("the snapshot is not the state it was made of; the log stays as it is"));
  }
  bytes_since_snapshot_ = 0;
  commits_->compact(seal_snapshot(writer_->history_hash(), snapshot),
                    [answered = std::move(answered)](const StorageResult<CompactedLog>& log) {
                      if (log) return answered(*log);
                      answered(tl::unexpected<Error>(log.error()));
                    });
  writer_->begin_segment();
}

Controller::WatchNumber Controller::watch(EventWatch watch) {
  watches_.emplace(++watch_numbers_, std::move(watch));
  return watch_numbers_;
}

void Controller::unwatch(WatchNumber number) { watches_.erase(number); }

// --- Commands -----------------------------------------------------------------------------------

void Controller::handle(InputKind what, const std::string& request_id,
                        ControlHost::Answered answered) {
  host_->handle({now(), std::move(what), request_id}, std::move(answered));
}

std::string Controller::halted() const {
  const std::vector<UnknownRanks>& unknown = host_->halted_by();
  if (unknown.empty()) return {};
  const UnknownRanks& first = unknown.front();
  std::string text =
      fmt::format("the controller is halted: {} runs attempt {} of job {}, which the log never had",
                  state().setup().topology->node_name(first.node), first.attempt.attempt,
                  first.attempt.job.value());
  if (unknown.size() > 1) text += fmt::format(", and {} more", unknown.size() - 1);
  return text + fmt::format(
                    ": a part of the log is lost. Nothing is decided and no rank is ended. Stop "
                    "orreryd, then put a newer log back (orrery store restore BACKUP --dir {}) or "
                    "start it with --accept-lost-jobs, which ends those ranks",
                    options_.directory);
}

void Controller::command(InputKind what, const std::string& request_id, Answered<JobId> answered) {
  if (const std::string why = halted(); !why.empty()) return answered(environment_error(why));
  handle(std::move(what), request_id, [answered = std::move(answered)](const Answer& answer) {
    if (answer.status) return answered(answer.job);
    answered(tl::unexpected(answer.status.error()));
  });
  schedule();
}

void Controller::classify(ChangeJob& change) {
  JobRequest request = state().job(change.job).submission->request;
  request.time_limit = change.time_limit;
  request.estimate = change.estimate;
  change.class_id = setup_->intake().class_of(request);
}

void Controller::set_limits(const ControllerSettings& settings) {
  options_.settings = settings;
  limits_.set(settings);
  schedule();
}

Status Controller::admission(const std::string& tenant) {
  if (const std::string why = halted(); !why.empty()) return environment_error(why);
  if (reserve_->look() == DiskRoom::kLow) {
    return environment_error(fmt::format(
        "the controller's disk is full: only its reserve is left in {}/store", options_.directory));
  }
  if (commits_->waiting_bytes() > kWaitingBytesMax) {
    return environment_error("the controller's disk is too slow for what is asked");
  }
  if (static_cast<double>(state().jobs() - state().ended_jobs()) >= options_.settings.jobs_max) {
    return environment_error(
        fmt::format("jobs_max is reached: {:g} have not ended", options_.settings.jobs_max));
  }
  return limits_.admit(tenant, now());
}

std::vector<JobId> Controller::answered_before(const std::string& request_id) const {
  std::vector<JobId> jobs;
  if (request_id.empty()) return jobs;
  while (const std::optional<JobId> job = state().answered(numbered(request_id, jobs.size()))) {
    jobs.push_back(*job);
  }
  return jobs;
}

Result<std::vector<SubmitJob>> Controller::read_jobs(const JobText& text) {
  JobIntake& intake = setup_->intake();
  const std::size_t works = intake.works();
  Result<std::vector<SubmitJob>> read = intake.read(text, state(), now());
  if (intake.works() > works) {
    const StoreTexts added = setup_->work_text(text.text);
    commits_->put_texts(added);
    if (record_ != nullptr) look_at_record(record_->put_texts(added));
  }
  return read;
}

Result<std::string> Controller::appraise(const JobText& text, const std::string& request_id) {
  const auto names = [&](const char* key) { return text.text.find(key) != std::string::npos; };
  const bool asks = names("deadline") || names("budget");
  if (!asks || !halted().empty() || !answered_before(request_id).empty()) return std::string();
  Result<std::vector<SubmitJob>> read = read_jobs(text);
  if (!read) return forward_error(read);
  return setup_->intake().appraise(read->front().submission, state(), now());
}

void Controller::submit(const JobText& text, const std::string& request_id,
                        Answered<std::vector<JobId>> answered) {
  if (const std::string why = halted(); !why.empty()) return answered(environment_error(why));
  if (std::vector<JobId> known = answered_before(request_id); !known.empty()) {
    return host_->after_durable(
        [known = std::move(known), answered = std::move(answered)] { answered(known); });
  }
  Result<std::vector<SubmitJob>> read = read_jobs(text);
  if (!read) return answered(forward_error(read));
  if (Status possible = agents_->check_user(read->front().run_as); !possible) {
    return answered(forward_error(possible));
  }
  struct Gathered {
    Answered<std::vector<JobId>> answered;
    std::vector<JobId> jobs;
    Status refused;
    std::size_t left = 0;
  };
  auto all = std::make_shared<Gathered>(Gathered{std::move(answered), {}, {}, read->size()});
  // The jobs of one text become durable together.
  gathering_ = Gathering::kYes;
  for (std::size_t i = 0; i < read->size(); ++i) {
    handle(std::move((*read)[i]), numbered(request_id, i), [all](const Answer& answer) {
      if (answer.status) {
        all->jobs.push_back(answer.job);
      } else {
        all->refused = answer.status;
      }
      if (--all->left > 0) return;
      if (all->refused) return all->answered(std::move(all->jobs));
      all->answered(tl::unexpected(all->refused.error()));
    });
  }
  gathering_ = Gathering::kNo;
  flush();
  schedule();
}

// --- What the host wants ------------------------------------------------------------------------

void Controller::run_full_pass(Core& core, Instant now) {
  beside_.run([this, held = std::shared_ptr<const HeldSituation>(core.hold(now))] {
    const Instant began = env_.clock.now_monotonic();
    Proposal proposal = full_pass(*held, *passes_);
    const Duration took = env_.clock.now_monotonic() - began;
    env_.post([this, took, proposal = std::move(proposal)] {
      counts_.full_pass.observe(took);
      handle(proposal);
      schedule();
    });
  });
}

void Controller::search_plan(const PlanKey& key) {
  searches_.run([this, key, fleet = fleets_, search = setup_->facts().search(key)] {
    env_.post([this, key, fleet, found = search()] {
      if (fleet != fleets_) return;  // its types have other ids now; it is requested again
      setup_->facts().keep(key, found);
      handle(PlanReady{key, found});
      schedule();
    });
  });
}

}  // namespace orrery
