#include "tests/scenarios/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>

#include "base/document.hpp"
#include "tests/scenarios/scenario_checks.hpp"
#include "tests/scenarios/scenario_job.hpp"
#include "tests/scenarios/scenario_text.hpp"
#include "tests/scenarios/scenario_world.hpp"

namespace orrery {
namespace {

/// From being told to stop until the devices are free.
constexpr Duration kGrace = Duration::seconds(30);
/// Full passes without a decision after which a scenario with nothing to come is over.
constexpr int kQuietPasses = 3;
constexpr Duration kLongest = Duration::hours(720);

/// A job's text, as a block or as a flow mapping, with the key that every file has.
std::string with_version(const std::string& job) {
  if (job.starts_with('{')) return "{apiVersion: orrery/v1, " + job.substr(1);
  return "apiVersion: orrery/v1\n" + job;
}

struct Happening {
  Instant at;
  const ScenarioEvent* event;
};

class Play {
 public:
  Play(const ScenarioSpec& spec, ScenarioWorld& world, Policy policy)
      : spec_(spec),
        world_(world),
        policy_(std::move(policy)),
        scheduler_(world.tree()),
        checks_(world, policy_),
        now_(spec.start) {}

  Status prepare();
  Result<ScenarioOutcome> run();

 private:
  Status add_jobs(const ScenarioJob& entry);
  Status submit(const JobSpec& job, const ScenarioJob& entry);
  [[nodiscard]] Instant next_time() const;
  [[nodiscard]] bool something_to_come() const;
  Status happen();
  Status happen_to_jobs();
  Status event(const ScenarioEvent& event);
  Status nodes_change(const ScenarioEvent& event);
  void lose(const std::vector<NodeId>& nodes);
  void plans_arrive();

  void pass(PassKind kind);
  void carry_out(const Decision& decision);
  void carry_out(const StartJob& start);
  void carry_out(const PreemptJob& preempt);
  void carry_out(const ResizeJob& resize);
  void carry_out(const SetClock& set);
  void carry_out(const WantPlan& want);
  void resize_now(ScenarioLife& life);
  [[nodiscard]] bool has_room_made(JobId id) const;
  void write_reservations(const std::vector<Reservation>& slots);
  void write_waiting(const std::vector<StillWaits>& waiting);

  void ask_to_stop(ScenarioLife& life);
  void stop(ScenarioLife& life);
  void end(ScenarioLife& life);
  void hold(ScenarioLife& life, const std::vector<PlacedGang>& gangs,
            const std::vector<GangTerms>& terms);
  [[nodiscard]] std::vector<RunningJob> running() const;
  [[nodiscard]] std::vector<WaitingJob> waiting() const;
  [[nodiscard]] ScenarioLife& life(JobId id) { return lives_[id.value()]; }
  [[nodiscard]] std::string done_text(const ScenarioLife& life) const;
  void write(std::string_view what, std::string_view who, std::string_view text);
  void write_end();
  void disturbs(const std::string& who);

  const ScenarioSpec& spec_;
  ScenarioWorld& world_;
  Policy policy_;
  Scheduler scheduler_;
  ScenarioChecks checks_;
  std::deque<ScenarioLife> lives_;  ///< by JobId
  std::vector<Happening> events_;   ///< those to come, the next last
  std::map<PlanKey, Instant> planned_;
  std::vector<Reservation> reserved_;
  Instant now_;
  Instant next_full_;
  Instant until_ = Instant::max();
  Instant quiet_from_ = Instant::max();
  int quiet_ = 0;
  int day_ = 1;
  int preempted_ = 0;
  int resized_ = 0;
  double waited_ = 0;  ///< seconds, of all that started
  std::string log_;
};

Status Play::prepare() {
  for (const ScenarioEvent& event : spec_.events) {
    const Result<Instant> at = time_of(spec_, event.at);
    if (!at) return tl::unexpected(at.error());
    events_.push_back({*at, &event});
  }
  std::stable_sort(events_.begin(), events_.end(),
                   [](const Happening& a, const Happening& b) { return b.at < a.at; });
  if (spec_.until) {
    const Result<Instant> until = time_of(spec_, *spec_.until);
    if (!until) return tl::unexpected(until.error());
    until_ = *until;
  }
  if (spec_.quiet_from) {
    const Result<Instant> quiet = time_of(spec_, *spec_.quiet_from);
    if (!quiet) return tl::unexpected(quiet.error());
    quiet_from_ = *quiet;
  }
  next_full_ = now_ + Duration::from_seconds(spec_.full_every.value());
  for (const ScenarioJob& entry : spec_.jobs) {
    if (Status status = add_jobs(entry); !status) return status;
  }
  return {};
}

Status Play::add_jobs(const ScenarioJob& entry) {
  const Result<Document> document = Document::parse(with_version(entry.job), entry.where.file);
  if (!document) return tl::unexpected(document.error());
  Result<JobSpec> job = read_job_spec(*document);
  if (!job) return forward_error(job);
  const std::string name = job->name;
  for (std::uint32_t i = 1; i <= entry.count; ++i) {
    if (entry.count > 1) job->name = fmt::format("{}-{}", name, i);
    if (Status status = submit(*job, entry); !status) return status;
  }
  return {};
}

Status Play::submit(const JobSpec& job, const ScenarioJob& entry) {
  const Result<Instant> at = time_of(spec_, entry.at);
  if (!at) return tl::unexpected(at.error());
  ScenarioLife life;
  life.arrives = *at;
  if (entry.runs) life.runs = Duration::from_seconds(entry.runs->value());
  Result<JobRequest> request = world_.resolve(job, *at);
  if (!request && request.error().kind != ErrorKind::kInfeasible) return forward_error(request);
  if (!request) {
    write("refused", job.name, request.error().message);
    return {};
  }
  life.request = *std::move(request);
  lives_.push_back(std::move(life));
  return {};
}

Instant Play::next_time() const {
  Instant next = next_full_;
  if (!events_.empty()) next = std::min(next, events_.back().at);
  for (const ScenarioLife& life : lives_) {
    if (life.stage == ScenarioLife::Stage::kToCome) next = std::min(next, life.arrives);
    if (life.stage == ScenarioLife::Stage::kRunning) next = std::min(next, life.ends);
    if (life.leaves) next = std::min(next, *life.leaves);
  }
  for (const auto& [key, at] : planned_) {
    if (at > now_) next = std::min(next, at);
  }
  for (const Reservation& slot : reserved_) {
    if (slot.start > now_) next = std::min(next, slot.start);
  }
  return next;
}

bool Play::something_to_come() const {
  if (!events_.empty()) return true;
  for (const ScenarioLife& life : lives_) {
    if (life.stage == ScenarioLife::Stage::kToCome || life.leaves) return true;
    if (life.stage == ScenarioLife::Stage::kRunning && life.ends != Instant::max()) return true;
  }
  return false;
}

Result<ScenarioOutcome> Play::run() {
  while (now_ <= until_ && now_ - spec_.start < kLongest) {
    if (Status status = happen(); !status) return forward_error(status);
    const bool full = now_ >= next_full_;
    if (full) next_full_ = now_ + Duration::from_seconds(spec_.full_every.value());
    pass(full ? PassKind::kFull : PassKind::kIncremental);
    if (!something_to_come() && quiet_ >= kQuietPasses) break;
    const Instant next = next_time();
    world_.advance(next - now_);
    now_ = next;
  }
  write_end();
  return ScenarioOutcome{std::move(log_), checks_.take()};
}

Status Play::happen() {
  plans_arrive();
  if (Status status = happen_to_jobs(); !status) return status;
  while (!events_.empty() && events_.back().at <= now_) {
    const ScenarioEvent& next = *events_.back().event;
    events_.pop_back();
    quiet_ = 0;
    if (Status status = event(next); !status) return status;
  }
  return {};
}

void Play::plans_arrive() {
  for (auto& [key, at] : planned_) {
    if (at > now_ || world_.plans().find(key) != nullptr) continue;
    write("plan", "", plan_text(world_, key, world_.plan(key)));
  }
}

Status Play::happen_to_jobs() {
  for (ScenarioLife& life : lives_) {
    if (life.stage == ScenarioLife::Stage::kRunning && life.ends <= now_) end(life);
  }
  for (ScenarioLife& life : lives_) {
    if (life.leaves && *life.leaves <= now_ && !life.next) stop(life);
  }
  for (ScenarioLife& life : lives_) {
    if (life.leaves && *life.leaves <= now_) resize_now(life);
  }
  for (ScenarioLife& life : lives_) {
    if (life.stage != ScenarioLife::Stage::kToCome || life.arrives > now_) continue;
    life.stage = ScenarioLife::Stage::kWaiting;
    quiet_ = 0;
  }
  return {};
}

Status Play::event(const ScenarioEvent& event) {
  Status status;
  if (event.nodes) status = nodes_change(event);
  if (status && event.uplinks_of) {
    write("links", "",
          fmt::format("above {}: {:.0f} % of their bandwidth, {:.0f} % loaded", *event.uplinks_of,
                      event.bandwidth * 100, event.load * 100));
    status = world_.set_uplinks(event);
  }
  if (status && event.power) {
    const std::string text = event.cap      ? print(*event.cap) + " at most"
                             : event.supply ? print(*event.supply) + " left of its supply"
                                            : "as built again";
    write("power", "", *event.power + ": " + text);
    status = world_.set_power(event);
  }
  if (status && event.tenants) {
    write("tenants", "", "have other guarantees and limits");
    status = world_.set_tenants(*event.tenants, running());
  }
  for (ScenarioLife& life : lives_) {
    if (!event.cancel || life.request.name != *event.cancel) continue;
    if (life.holds()) world_.leave(life.run);
    life.leaves.reset();
    life.stage = ScenarioLife::Stage::kOver;
    write("cancel", life.request.name, "by its owner");
  }
  return status;
}

Status Play::nodes_change(const ScenarioEvent& event) {
  Result<std::vector<NodeId>> nodes = world_.nodes_named(*event.nodes);
  if (!nodes) return forward_error(nodes);
  std::string health;
  for (const auto& [word, value] : enum_words(NodeHealth())) {
    if (value == event.health) health = word;
  }
  write("nodes", "", fmt::format("{}: {}", *event.nodes, health));
  for (const NodeId node : *nodes) world_.set_health(node, event.health);
  const bool alive = event.health == NodeHealth::kReady || event.health == NodeHealth::kDraining ||
                     event.health == NodeHealth::kSuspect;
  if (!alive) lose(*nodes);
  return {};
}

// Their gangs are over; what the last checkpoint holds is kept.
void Play::lose(const std::vector<NodeId>& nodes) {
  for (ScenarioLife& life : lives_) {
    if (!life.holds()) continue;
    bool hit = false;
    for (const PlacedGang& gang : life.run.gangs) {
      for (const NodeDevices& at : gang.allocation.ranks) {
        hit = hit || std::binary_search(nodes.begin(), nodes.end(), at.node);
      }
    }
    if (!hit) continue;
    const Duration lost = life.seen_at(now_).at_risk(now_);
    write("lost", life.request.name, "since its last checkpoint: " + lost.text());
    stop(life);
  }
}

std::vector<RunningJob> Play::running() const {
  std::vector<RunningJob> jobs;
  for (const ScenarioLife& life : lives_) {
    if (life.holds()) jobs.push_back(life.seen_at(now_));
  }
  return jobs;
}

std::vector<WaitingJob> Play::waiting() const {
  std::vector<WaitingJob> jobs;
  for (std::uint32_t i = 0; i < lives_.size(); ++i) {
    const ScenarioLife& life = lives_[i];
    if (life.stage != ScenarioLife::Stage::kWaiting) continue;
    jobs.push_back({JobId(i), &life.request, life.arrives, life.saved, life.attained});
  }
  return jobs;
}

void Play::pass(PassKind kind) {
  const std::vector<RunningJob> run = running();
  const std::vector<WaitingJob> wait = waiting();
  Situation situation = world_.situation(now_);
  situation.running = run;
  situation.waiting = wait;
  situation.reserved = reserved_;
  checks_.pass_begins(run);
  const PassResult result = scheduler_.decide(situation, policy_, kind);
  for (const Decision& decision : result.decisions) carry_out(decision);
  const bool leaving = std::any_of(lives_.begin(), lives_.end(),
                                   [](const ScenarioLife& one) { return one.leaves.has_value(); });
  if (!leaving) checks_.power_holds();
  write_reservations(result.reservations);
  // A job without its plan waits for nothing else yet.
  const bool planning =
      std::any_of(result.decisions.begin(), result.decisions.end(),
                  [](const Decision& one) { return std::holds_alternative<WantPlan>(one); });
  if (!planning) write_waiting(result.waiting);
  reserved_ = result.reservations;
  quiet_ = result.decisions.empty() ? quiet_ + 1 : 0;
}

void Play::carry_out(const Decision& decision) {
  std::visit([this](const auto& one) { carry_out(one); }, decision);
}

void Play::carry_out(const StartJob& start) {
  ScenarioLife& job = life(start.job);
  checks_.starts(job.request, start.gangs, start.terms);
  if (job.attempts == 0) waited_ += (now_ - job.arrives).count_seconds();
  ++job.attempts;
  job.stage = ScenarioLife::Stage::kRunning;
  job.shown.reset();
  job.slot.reset();
  job.run = RunningJob{.id = start.job, .request = &job.request, .submitted = job.arrives};
  const Instant begins = now_ + start.delay;
  job.run.started = begins;
  job.run.expected_end = start.expected ? begins + *start.expected : Instant::max();
  hold(job, start.gangs, start.terms);
  checks_.started(job.request);
  job.begin(begins, start.expected);
  std::string text = where_text(world_, job.request, start.gangs) +
                     terms_text(world_, job.request, start.gangs, start.terms);
  if (start.delay > Duration()) text += ", begins after " + start.delay.text();
  if (start.price) text += ", " + price_text(*start.price, spec_.show);
  if (job.saved > 0) text += fmt::format(", {:.0f} % done", job.saved * 100);
  write("start", job.request.name, text + done_text(job));
}

void Play::carry_out(const PreemptJob& preempt) {
  ScenarioLife& job = life(preempt.job);
  const bool for_power = !preempt.in_favour_of.valid();
  checks_.stops(job.seen_at(now_), for_power ? nullptr : &life(preempt.in_favour_of).request);
  disturbs(job.request.name);
  ++preempted_;
  write("preempt", job.request.name,
        fmt::format("for {}, loses {} x {}",
                    for_power ? "want of power" : life(preempt.in_favour_of).request.name,
                    job.seen_at(now_).at_risk(now_).text(), job.run.devices()));
  ask_to_stop(job);
}

void Play::carry_out(const ResizeJob& resize) {
  ScenarioLife& job = life(resize.job);
  disturbs(job.request.name);
  ++resized_;
  std::uint32_t devices = 0;
  for (const PlacedGang& gang : resize.gangs) devices += gang.allocation.devices();
  const bool moves = devices == job.run.devices();
  std::string text = moves ? "to " : fmt::format("from {} to ", job.run.devices());
  text += where_text(world_, job.request, resize.gangs) +
          terms_text(world_, job.request, resize.gangs, resize.terms);
  if (resize.in_favour_of) text += ", for " + life(*resize.in_favour_of).request.name;
  if (resize.gained_device_seconds > 0) {
    text += fmt::format(", gains {:.0f} device-hours for {:.0f}",
                        resize.gained_device_seconds / 3600, resize.cost_device_seconds / 3600);
  }
  write(moves ? "move" : "resize", job.request.name, text);
  job.next = resize;
  ask_to_stop(job);
}

void Play::carry_out(const SetClock& set) {
  ScenarioLife& job = life(set.job);
  const double before = job.run.terms[set.gang].clock;
  world_.set_terms(job.run, set.gang, set.terms);
  job.stretch(now_, before / set.terms.clock);
  write("clock", job.request.name,
        fmt::format("{:.2f} to {:.2f}, {} a device{}", before, set.terms.clock,
                    print(set.terms.draw), done_text(job)));
}

void Play::carry_out(const WantPlan& want) {
  planned_.emplace(want.key, now_ + Duration::from_seconds(spec_.plan_time.value()));
  if (spec_.plan_time > Seconds()) return;
  // At once means: in time for the pass that follows in no time.
  planned_[want.key] = now_ + Duration::milliseconds(1);
}

void Play::ask_to_stop(ScenarioLife& job) {
  job.saved = job.saved_at(now_);
  job.attained = job.attained_at(now_);
  job.stage = ScenarioLife::Stage::kStopping;
  job.leaves = now_ + kGrace;
}

void Play::stop(ScenarioLife& job) {
  if (job.stage == ScenarioLife::Stage::kRunning) ask_to_stop(job);
  world_.leave(job.run);
  job.leaves.reset();
  job.next.reset();
  job.stage = ScenarioLife::Stage::kWaiting;
}

void Play::end(ScenarioLife& job) {
  world_.leave(job.run);
  job.stage = ScenarioLife::Stage::kOver;
  write("done", job.request.name, "after " + (now_ - job.arrives).text());
}

void Play::hold(ScenarioLife& job, const std::vector<PlacedGang>& gangs,
                const std::vector<GangTerms>& terms) {
  job.run.gangs = gangs;
  job.run.terms = terms;
  world_.enter(job.run);
}

// A move saves first: nothing is lost but the time of it.
void Play::resize_now(ScenarioLife& job) {
  const ResizeJob resize = *std::exchange(job.next, std::nullopt);
  world_.leave(job.run);
  job.leaves.reset();
  checks_.starts(job.request, resize.gangs, resize.terms);
  hold(job, resize.gangs, resize.terms);
  job.stage = ScenarioLife::Stage::kRunning;
  job.run.started = now_;
  const std::optional<Duration> length = resize.terms.front().length;
  job.run.expected_end = length ? now_ + *length : Instant::max();
  job.begin(now_, length);
}

// Its victims are about to leave: there is nothing to explain.
bool Play::has_room_made(JobId id) const {
  return std::any_of(reserved_.begin(), reserved_.end(),
                     [&](const Reservation& slot) { return slot.job == id && slot.start <= now_; });
}

void Play::write_reservations(const std::vector<Reservation>& slots) {
  for (const Reservation& slot : slots) {
    ScenarioLife& job = life(slot.job);
    if (slot.start <= now_ || job.slot == slot.start) continue;
    job.slot = slot.start;
    write("reserve", job.request.name,
          fmt::format("{} from {}", where_text(world_, job.request, slot.gangs),
                      clock_text(spec_, slot.start)));
  }
}

void Play::write_waiting(const std::vector<StillWaits>& waits) {
  for (const StillWaits& one : waits) {
    ScenarioLife& job = life(one.job);
    const bool known =
        job.shown && job.shown->kind == one.refusal.kind && job.shown->level == one.refusal.level;
    if (known || has_room_made(one.job)) continue;
    job.shown = one.refusal;
    write("waits", job.request.name, refusal_text(one.refusal));
  }
}

std::string Play::done_text(const ScenarioLife& job) const {
  if (job.run.expected_end == Instant::max()) return ", runs until it is stopped";
  return ", done " + clock_text(spec_, job.run.expected_end);
}

void Play::disturbs(const std::string& who) {
  if (now_ >= quiet_from_) checks_.broken("not quiet: " + who);
}

void Play::write(std::string_view what, std::string_view who, std::string_view text) {
  const std::string clock = clock_text(spec_, now_);
  const std::size_t day = clock.find("d ");
  if (day != std::string::npos && std::stoi(clock) != day_) {
    day_ = std::stoi(clock);
    log_ += fmt::format("-- day {}\n", day_);
  }
  std::string line = fmt::format("{}  {:<8}{:<15}", clock.substr(clock.size() - 8), what, who);
  if (!who.empty() && who.size() >= 15) line += ' ';
  log_ += line + std::string(text) + "\n";
}

void Play::write_end() {
  int over = 0;
  int holding = 0;
  int waits = 0;
  int started = 0;
  for (const ScenarioLife& life : lives_) {
    over += life.stage == ScenarioLife::Stage::kOver ? 1 : 0;
    holding += life.holds() ? 1 : 0;
    waits += life.stage == ScenarioLife::Stage::kWaiting ? 1 : 0;
    started += life.attempts > 0 ? 1 : 0;
  }
  const Duration wait = Duration::seconds(started > 0 ? std::lround(waited_ / started) : 0);
  log_ += fmt::format(
      "{} done, {} running, {} waiting; {} preempted, {} resized or moved; mean wait {}\n", over,
      holding, waits, preempted_, resized_, wait.text());
}

}  // namespace

Result<ScenarioOutcome> play(const ScenarioSpec& spec, const std::string& root) {
  Result<Policy> policy = policy_named(spec.policy);
  if (!policy) return forward_error(policy);
  auto world = ScenarioWorld::make(spec, root);
  if (!world) return forward_error(world);
  Play play(spec, **world, *std::move(policy));
  if (Status status = play.prepare(); !status) return forward_error(status);
  return play.run();
}

}  // namespace orrery
