#include "executor/controller.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "base/checksum.hpp"
#include "base/document.hpp"
#include "control/settings.hpp"
#include "control/snapshot.hpp"
#include "fleet/spec.hpp"
#include "store/work_texts.hpp"

namespace orrery {
namespace {

constexpr std::uint64_t kSnapshotEvery = std::uint64_t{32} << 20;  ///< bytes of log
/// Submitted and not durable: beyond it nothing new is taken on.
constexpr std::size_t kWaitingBytesMax = std::size_t{64} << 20;

std::string numbered(const std::string& request_id, std::size_t index) {
  return index == 0 || request_id.empty() ? request_id : fmt::format("{}#{}", request_id, index);
}

Result<std::optional<TenantsSpec>> tenants_of(const std::string& yaml) {
  if (yaml.empty()) return std::nullopt;
  const Result<Document> text = Document::parse(yaml, "tenants.yaml");
  if (!text) return tl::unexpected(text.error());
  Result<TenantsSpec> spec = read_tenants_spec(*text);
  if (!spec) return forward_error(spec);
  return *std::move(spec);
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
  for (const auto& [number, wait] : log_waits_) env_.timers.cancel(wait.timer);
}

Status Controller::begin() {
  const std::string directory = options_.directory + "/store";
  StorageResult<std::unique_ptr<SqliteStore>> store = SqliteStore::open(directory);
  if (!store) return forward_error(store);
  store_ = *std::move(store);
  StorageResult<StoreTerm> term = store_->claim();
  if (!term) return forward_error(term);
  term_ = *term;
  reserve_ = std::make_unique<DiskReserve>(directory);
  Result<SetupTexts> setup = texts();
  if (!setup) return forward_error(setup);
  if (Status made = make_facts(*setup); !made) return made;
  if (Status taken = take_up_works(); !taken) return taken;
  return recover(*setup);
}

/// Those of the log, or, where there is none yet, what it is begun with.
Result<SetupTexts> Controller::texts() {
  StorageResult<StoreTexts> stored = store_->texts();
  if (!stored) return forward_error(stored);
  if (!stored->empty()) return setup_texts(*stored);
  SetupTexts setup = options_.setup;
  setup.begin = env_.clock.now_wall();
  if (StorageStatus put = store_->put_texts(term_, store_texts(setup)); !put) {
    return forward_error(put);
  }
  return setup;
}

Status Controller::make_facts(const SetupTexts& texts) {
  const Result<Document> document = Document::parse(texts.fleet, "fleet.yaml");
  if (!document) return tl::unexpected(document.error());
  const Result<FleetSpec> fleet = read_fleet_spec(*document);
  if (!fleet) return tl::unexpected(fleet.error());
  Result<std::optional<TenantsSpec>> tenants = tenants_of(texts.tenants);
  if (!tenants) return forward_error(tenants);
  Result<Policy> policy = policy_from(texts.policy);
  if (!policy) return forward_error(policy);
  Result<std::unique_ptr<ControlFacts>> facts =
      ControlFacts::make(options_.facts, *fleet, *tenants ? &**tenants : nullptr);
  if (!facts) return forward_error(facts);
  facts_ = *std::move(facts);
  intake_ = std::make_unique<JobIntake>(*facts_);
  agents_ = std::make_unique<AgentBook>(facts_->topology());
  setup_ = facts_->setup(*policy, texts.begin);
  setup_.nodes_begin = NodeHealth::kJoining;
  setup_.timing.grace = Duration::from_seconds(options_.settings.grace.value());
  setup_.timing.backoff = Duration::from_seconds(options_.settings.backoff.value());
  cluster_ = checksum(setup_digest(texts), 0);
  return {};
}

Status Controller::take_up_works() {
  StorageResult<StoreTexts> texts = store_->texts();
  if (!texts) return forward_error(texts);
  for (const auto& [name, text] : *texts) {
    if (!name.starts_with(kWorkText)) continue;
    ++works_;
    if (Status taken = intake_->take_up_work(text); !taken) return taken;
  }
  return {};
}

Status Controller::recover(const SetupTexts& texts) {
  HistoryResult<RecoveredCore> recovered = recover_core(*store_, setup_);
  if (!recovered) return forward_error(recovered);
  for (const std::string& why : recovered->history.passed_over) {
    log_.warning(env_.clock.now_wall(), "snapshot passed over", {{"why", why}});
  }
  const RecoveredHistory& history = recovered->history;
  intake_->take_up_jobs(recovered->core->state());
  const Instant begin = std::max(env_.clock.now_wall(), recovered->core->state().now());
  ahead_ = begin - env_.clock.now_monotonic();
  writer_ = std::make_unique<HistoryWriter>(HistoryWriterOptions{
      .writer = texts.writer, .setup = setup_digest(texts), .before = history.history_hash});
  begin_commits(history);
  HostOutlet& outlet = *this;
  host_ = std::make_unique<ControlHost>(
      std::move(recovered->core),
      ControlHost::Setup{
          .cluster = cluster_,
          .term = static_cast<std::uint64_t>(term_),
          .heartbeats = {.grace = Duration::from_seconds(options_.settings.node_grace.value())}},
      outlet, now());
  flush();
  schedule();
  log_.info(
      env_.clock.now_wall(), "history read",
      {{"jobs", state().jobs()}, {"events", history.read.events}, {"batches", history.newest}});
  return {};
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
      .make_room = [this] { return reserve_->give_up(); }});
}

// --- Time ---------------------------------------------------------------------------------------

Instant Controller::now() const { return env_.clock.now_monotonic() + ahead_; }

void Controller::schedule() {
  const Instant due = host_->next_due();
  const Instant at = due == Instant::max() ? due : due - ahead_;
  if (timer_ && timer_->at == at) return;
  if (timer_) env_.timers.cancel(*timer_);
  timer_.reset();
  if (at < Instant::max()) timer_ = env_.timers.call_at(at, [this] { act_when_due(); });
}

void Controller::act_when_due() {
  timer_.reset();
  const Instant until = now();
  while (host_->next_due() <= until) host_->advance(until);
  if (const std::uint64_t term = host_->link().superseded_by(); term != 0) {
    options_.failed({ErrorKind::kEnvironment, "another controller has taken over", {}});
  }
  snapshot_if_due();
  schedule();
}

// --- The log ------------------------------------------------------------------------------------

std::uint64_t Controller::append(Instant at, std::span<const Event> events) {
  writer_->append(at, events);
  ++inputs_;
  if (!watches_.empty()) {
    for (const Event& event : events) undurable_.push_back({inputs_, {at, event}});
  }
  if (gathering_ == Gathering::kNo) flush();
  return inputs_;
}

void Controller::flush() {
  const std::string bytes = writer_->take();
  if (bytes.empty()) return;
  bytes_since_snapshot_ += bytes.size();
  const std::uint64_t batch = commits_->submit(bytes);
  if (!batches_.empty() && batches_.back().batch == batch) {
    batches_.back().input = inputs_;
  } else {
    batches_.push_back({batch, inputs_});
  }
}

void Controller::batch_durable(std::uint64_t batch) {
  std::uint64_t input = 0;
  while (!batches_.empty() && batches_.front().batch <= batch) {
    input = batches_.front().input;
    batches_.pop_front();
  }
  if (input == 0) return;
  tell_watches(input);
  host_->durable(input);
  schedule();
}

void Controller::tell_watches(std::uint64_t number) {
  while (!undurable_.empty() && undurable_.front().input <= number) {
    const TimedEvent event = std::move(undurable_.front().event);
    undurable_.pop_front();
    // A watch may end itself, or begin another.
    std::vector<EventWatch> watches;
    watches.reserve(watches_.size());
    for (const auto& [id, watch] : watches_) watches.push_back(watch);
    for (const EventWatch& watch : watches) watch(event);
  }
}

void Controller::snapshot_if_due() {
  if (bytes_since_snapshot_ < kSnapshotEvery) return;
  bytes_since_snapshot_ = 0;
  flush();
  commits_->put_snapshot(writer_->snapshot(state()));
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

void Controller::command(InputKind what, const std::string& request_id, Answered<JobId> answered) {
  handle(std::move(what), request_id, [answered = std::move(answered)](const Answer& answer) {
    if (answer.status) return answered(answer.job);
    answered(tl::unexpected(answer.status.error()));
  });
  schedule();
}

Status Controller::admission() {
  if (reserve_->look() == DiskRoom::kLow) {
    return environment_error(fmt::format(
        "the controller's disk is full: only its reserve is left in {}/store", options_.directory));
  }
  if (commits_->waiting_bytes() > kWaitingBytesMax) {
    return environment_error("the controller's disk is too slow for what is asked");
  }
  return {};
}

std::vector<JobId> Controller::answered_before(const std::string& request_id) const {
  std::vector<JobId> jobs;
  if (request_id.empty()) return jobs;
  while (const std::optional<JobId> job = state().answered(numbered(request_id, jobs.size()))) {
    jobs.push_back(*job);
  }
  return jobs;
}

void Controller::submit(const JobText& text, const std::string& request_id,
                        Answered<std::vector<JobId>> answered) {
  if (std::vector<JobId> known = answered_before(request_id); !known.empty()) {
    return host_->after_durable(
        [known = std::move(known), answered = std::move(answered)] { answered(known); });
  }
  const std::size_t works = intake_->works();
  Result<std::vector<SubmitJob>> read = intake_->read(text, state(), now());
  if (intake_->works() > works) {
    commits_->put_texts({{fmt::format("{}{:06}", kWorkText, ++works_), text.text}});
  }
  if (!read) return answered(forward_error(read));
  struct Gathered {
    Answered<std::vector<JobId>> answered;
    std::vector<JobId> jobs;
    Status refused;
    std::size_t left = 0;
  };
  auto all = std::make_shared<Gathered>(Gathered{std::move(answered), {}, {}, read->size()});
  // Of one text all jobs are durable, or none.
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

void Controller::propose(Proposal proposal) {
  env_.post([this, proposal = std::move(proposal)] {
    handle(proposal);
    schedule();
  });
}

void Controller::search_plan(const PlanKey& key) {
  env_.post([this, key] {
    handle(PlanReady{key, facts_->plan(key)});
    schedule();
  });
}

}  // namespace orrery
