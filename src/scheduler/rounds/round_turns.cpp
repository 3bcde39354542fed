#include "scheduler/rounds/round_turns.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "base/numbers/math.hpp"
#include "scheduler/price/run_time.hpp"
#include "scheduler/rounds/deadline_shares.hpp"
#include "scheduler/rounds/goodput_assignment.hpp"
#include "scheduler/rounds/turn_ends.hpp"
#include "scheduler/tenants/finish_time.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {
namespace {

/// A turn with its sort key: ascending.
struct Ranked {
  double first = 0;
  double second = 0;
  double third = 0;
  Instant submitted;
  JobId id;
  Turn turn;

  friend bool operator<(const Ranked& a, const Ranked& b) {
    return std::tie(a.first, a.second, a.third, a.submitted, a.id, a.turn.option) <
           std::tie(b.first, b.second, b.third, b.submitted, b.id, b.turn.option);
  }
};

std::vector<Turn> in_order(std::vector<Ranked> ranked) {
  std::sort(ranked.begin(), ranked.end());
  std::vector<Turn> turns;
  turns.reserve(ranked.size());
  for (const Ranked& one : ranked) turns.push_back(one.turn);
  return turns;
}

/// Rounds a speed to so many binary digits after the first.
double in_digits(double speed, int digits) {
  int exponent = 0;
  const double part = std::frexp(speed, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(part, digits + 1)), exponent - digits - 1);
}

/// The jobs for which max-min shares are computed, by the outcome of their options. Shares are
/// computed when a period begins (SharePeriod); jobs that arrived since have none. There are at
/// most kShareClasses classes: jobs of more classes have their speeds distinguished by fewer
/// digits, and if there are still too many classes, the remaining jobs have equal shares.
class ShareClasses {
 public:
  ShareClasses(std::span<const RoundJob> jobs, const SharePeriod* period) {
    for (const int digits : {kAllDigits, 4, 2, 0}) {
      if (classify(jobs, period, digits) <= kShareClasses) return;
    }
  }

  /// By job and option; `found`: by class, of those of all().
  [[nodiscard]] double share(std::size_t job, std::size_t option,
                             const std::vector<std::vector<double>>& found) const {
    const std::uint32_t at = of_job_[job];
    if (at == kNone) return 0;
    return at < found.size() ? found[at][option] : beyond_[at - found.size()][option];
  }
  [[nodiscard]] const std::vector<ShareClass>& all() const { return classes_; }

  /// Equal shares of the jobs that belong to no class of all().
  void share_equally(std::span<const std::uint32_t> devices) {
    for (const ShareClass& alike : more_) beyond_.push_back(equal_shares(alike, devices));
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr int kAllDigits = 52;

  /// The number of their classes.
  std::size_t classify(std::span<const RoundJob> jobs, const SharePeriod* period, int digits) {
    classes_.clear();
    more_.clear();
    of_job_.clear();
    std::map<std::vector<ShareClass::Option>, std::uint32_t> known;
    for (const RoundJob& job : jobs) {
      const bool has = period == nullptr || period->jobs.empty() ||
                       std::binary_search(period->jobs.begin(), period->jobs.end(), job.job.id);
      of_job_.push_back(kNone);
      if (!has) continue;
      ShareClass alike = class_of(job, digits);
      const auto next = static_cast<std::uint32_t>(known.size());
      const std::uint32_t at = known.emplace(alike.options, next).first->second;
      of_job_.back() = at;
      std::vector<ShareClass>& among = at < kShareClasses ? classes_ : more_;
      if (at == next) {
        among.push_back(std::move(alike));
      } else if (at < kShareClasses) {
        ++among[at].jobs;
      }
    }
    return known.size();
  }

  // With fewer digits, speeds are relative to the job's best, since units mean nothing.
  static ShareClass class_of(const RoundJob& job, int digits) {
    ShareClass alike;
    const std::vector<GangOption>& options = options_of(job);
    double most = 0;
    for (const GangOption& option : options) most = std::max(most, option.speed);
    for (const GangOption& option : options) {
      const bool exact = digits == kAllDigits || most <= 0;
      const double speed = exact ? option.speed : in_digits(option.speed / most, digits);
      alike.options.push_back({option.gang.type, option.gang.devices, speed});
    }
    return alike;
  }

  std::vector<ShareClass> classes_;
  std::vector<ShareClass> more_;
  std::vector<std::uint32_t> of_job_;  ///< more_ count on from classes_
  std::vector<std::vector<double>> beyond_;
};

/// By type, its place among the types: those on which jobs are fastest, on average, first.
std::vector<double> places_of_types(const RoundInputs& in) {
  std::vector<double> speeds(in.devices.size());
  for (const RoundJob& job : in.jobs) {
    double most = 0;
    for (const GangOption& option : options_of(job)) most = std::max(most, option.speed);
    std::vector<double> best(in.devices.size());
    for (const GangOption& option : options_of(job)) {
      double& speed = best[option.gang.type.value()];
      speed = std::max(speed, most > 0 ? option.speed / most : 0);
    }
    for (std::size_t t = 0; t < speeds.size(); ++t) speeds[t] += best[t];
  }
  std::vector<double> places(speeds.size());
  for (std::size_t t = 0; t < speeds.size(); ++t) {
    for (std::size_t other = 0; other < speeds.size(); ++other) {
      if (std::pair(-speeds[other], other) < std::pair(-speeds[t], t)) places[t] += 1;
    }
  }
  return places;
}

/// Seconds for which a job has had devices of a type: in total, and since the period began.
struct TimeHad {
  double ever = 0;
  double lately = 0;
};
TimeHad time_had(const RoundInputs& in, const WaitingJob& job, const GangRequest& gang) {
  const DeviceHistory* history = in.situation.history;
  if (history == nullptr) return {};
  const double had = history->device_seconds(job.id, gang.type, in.situation.now) / gang.devices;
  const auto& before = history->share_period().had;
  const auto found = before.find({job.id, gang.type});
  return {had, found == before.end() ? had : had - found->second / gang.devices};
}

std::vector<Turn> turns_by_shares(const RoundInputs& in, ThroughputShares& memory) {
  const Situation& s = in.situation;
  const SharePeriod* period = s.history == nullptr ? nullptr : &s.history->share_period();
  ShareClasses classes(in.jobs, period);
  classes.share_equally(in.devices);
  const auto& shares = memory.of(classes.all(), in.devices);
  const std::vector<double> places = places_of_types(in);
  const double half_round = in.policy.full_interval.value() / 2;
  std::vector<Ranked> ranked;
  for (std::uint32_t i = 0; i < in.jobs.size(); ++i) {
    const WaitingJob& job = in.jobs[i].job;
    const double age = (s.now - job.submitted).count_seconds();
    const std::vector<GangOption>& options = options_of(in.jobs[i]);
    for (std::uint32_t o = 0; o < options.size(); ++o) {
      const double share = classes.share(i, o, shares);
      const TimeHad had = time_had(in, job, options[o].gang);
      const double priority = share / (had.lately + half_round);
      const double deficit = share * age - had.ever;
      ranked.push_back({places[options[o].gang.type.value()],
                        -priority,
                        -deficit,
                        job.submitted,
                        job.id,
                        {i, o}});
    }
  }
  return in_order(std::move(ranked));
}

/// Turns of the jobs that wait: first the job that has had devices for the shortest time.
std::vector<Turn> turns_by_time_had(const RoundInputs& in) {
  const std::vector<double> places = places_of_types(in);
  std::vector<Ranked> ranked;
  for (std::uint32_t i = 0; i < in.jobs.size(); ++i) {
    if (in.jobs[i].option) continue;
    const WaitingJob& job = in.jobs[i].job;
    const std::vector<GangOption>& options = options_of(in.jobs[i]);
    const double had = job.attained / devices_wanted(*job.request);
    for (std::uint32_t o = 0; o < options.size(); ++o) {
      const double place = places[options[o].gang.type.value()];
      ranked.push_back({place, had, 0, job.submitted, job.id, {i, o}});
    }
  }
  return in_order(std::move(ranked));
}

/// Turns of jobs in this order; each keeps the option it has if possible.
std::vector<Turn> turns_of_each(const RoundInputs& in, std::span<const std::uint32_t> order) {
  std::vector<Turn> turns;
  for (const std::uint32_t i : order) {
    const std::optional<std::uint32_t> has = in.jobs[i].option;
    if (has) turns.push_back({i, *has});
    for (std::uint32_t o = 0; o < options_of(in.jobs[i]).size(); ++o) {
      if (has != o) turns.push_back({i, o});
    }
  }
  return turns;
}

std::vector<std::uint32_t> by_key(const RoundInputs& in) {
  std::vector<OrderKey> keys;
  keys.reserve(in.jobs.size());
  for (const RoundJob& job : in.jobs) keys.push_back(key_of(job.job, in.policy, in.situation));
  std::vector<std::uint32_t> order(in.jobs.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
  return order;
}

/// The value of an offered lease to a job, per device.
double gain_of_lease(const RoundInputs& in, const WaitingJob& job) {
  const double rho = finish_time_fairness(job, in.policy, in.situation);
  const double later =
      in.policy.full_interval.value() / time_on_its_part(job, in.policy, in.situation);
  return math::log((rho + later) / rho) / devices_wanted(*job.request);
}

std::vector<std::uint32_t> by_finish_time(const RoundInputs& in) {
  constexpr double kOffered = 1 - 0.8;
  std::vector<std::uint32_t> order = by_key(in);
  const auto offered = std::min<std::size_t>(
      order.size(), static_cast<std::size_t>(static_cast<double>(order.size()) * kOffered) + 1);
  std::vector<double> gains(in.jobs.size());
  for (std::size_t i = 0; i < offered; ++i) {
    gains[order[i]] = gain_of_lease(in, in.jobs[order[i]].job);
  }
  std::stable_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(offered),
                   [&](std::uint32_t a, std::uint32_t b) { return gains[a] > gains[b]; });
  return order;
}

std::uint32_t restarts_of(const RoundInputs& in, const RoundJob& job) {
  if (in.situation.history == nullptr) return 0;
  const std::uint32_t starts = in.situation.history->past(job.job.id).starts;
  return starts > 0 ? starts - 1 : 0;
}

std::vector<Turn> turns_by_goodput(const RoundInputs& in) {
  const bool begins = in.phase == RoundPhase::kBegins;
  std::vector<std::uint32_t> who;
  std::vector<GoodputJob> jobs;
  for (std::uint32_t i = 0; i < in.jobs.size(); ++i) {
    const RoundJob& job = in.jobs[i];
    if (job.option && !begins) continue;
    who.push_back(i);
    jobs.push_back({.request = job.job.request,
                    .has = job.option,
                    .age = (in.situation.now - job.job.submitted).count_seconds(),
                    .restarts = restarts_of(in, job),
                    .restart = job.job.request->restart.count_seconds()});
  }
  const GoodputAssignment found = assign_goodput(jobs, in.devices);
  std::vector<Ranked> ranked;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const WaitingJob& job = in.jobs[who[i]].job;
    const std::vector<GangOption>& options = options_of(in.jobs[who[i]]);
    for (std::uint32_t o = 0; o < options.size(); ++o) {
      const double gain = goodput_gain(jobs[i], o) / options[o].gang.devices;
      ranked.push_back({-found[i][o], -gain, 0, job.submitted, job.id, {who[i], o}});
    }
  }
  return in_order(std::move(ranked));
}

/// Sizes that are faster than all smaller ones of their type.
std::vector<SizeLadder> ladders_of(const JobRequest& request, const Situation& s,
                                   const Policy& policy) {
  constexpr double kShortest = 1e-3;  // second
  const RoleRequest& role = request.roles.front();
  std::vector<SizeLadder> ladders;
  for (std::uint32_t o = 0; o < role.options.size(); ++o) {
    const GangOption& option = role.options[o];
    const std::optional<Duration> whole =
        whole_run_time(request, role, option, {best_plan(s.plans, option), 1});
    const double seconds =
        whole ? whole->count_seconds() : policy.unknown_run.value() / option.speed;
    const std::uint32_t type = option.gang.type.value();
    auto at = std::ranges::find(ladders, type, &SizeLadder::type);
    if (at == ladders.end()) at = ladders.insert(at, {type, {}});
    at->sizes.push_back({o, option.gang.devices, 1 / std::max(seconds, kShortest)});
  }
  for (SizeLadder& ladder : ladders) {
    std::ranges::sort(ladder.sizes, {}, [](const SizeRate& size) {
      return std::tuple(size.devices, -size.rate, size.option);
    });
    double fastest = 0;
    std::erase_if(ladder.sizes, [&](const SizeRate& size) {
      const bool slower = size.rate <= fastest;
      fastest = std::max(fastest, size.rate);
      return slower;
    });
  }
  return ladders;
}

DeadlineJob deadline_job(const RoundJob& job, const Situation& s, const Policy& policy) {
  const JobRequest& request = *job.job.request;
  DeadlineJob made;
  made.ladders = ladders_of(request, s, policy);
  made.left = 1 - job.job.done;
  made.has = job.option;
  const bool worked = job.option || job.job.attained > 0;
  made.restart = (s.launch + (worked ? request.restart : Duration())).count_seconds();
  if (may_be_promised(job.job, s)) {
    const double due = (*request.deadline - s.now).count_seconds();
    const double reserve = (s.launch + request.restart).count_seconds();
    made.due = std::max(due - reserve, std::min(due, policy.full_interval.value()));
  }
  return made;
}

/// What is held by running jobs that do not take turns among these.
class DevicesOfOthers {
 public:
  DevicesOfOthers(const Situation& s, const Policy& policy, std::span<const RoundJob> jobs)
      : s_(s), least_(least_turn(s, policy)), turns_(s.running.size()) {
    for (const RoundJob& job : jobs) {
      if (job.option) turns_[job.at] = 1;
    }
  }

  /// When they are expected to come free: of a job that runs for longer than was expected, after as
  /// much time again as it has run; of one that takes turns later, unless it is promised its
  /// deadline, once its turn may end. `promised`: ascending.
  [[nodiscard]] std::vector<DeviceRelease> releases(std::span<const JobId> promised) const {
    std::vector<DeviceRelease> found;
    for (std::size_t i = 0; i < s_.running.size(); ++i) {
      const RunningJob& job = s_.running[i];
      if (turns_[i] != 0 || job.stopping) continue;
      const bool stays = std::ranges::binary_search(promised, job.id);
      const Instant end = stays ? end_of_run(job) : std::min(end_of_run(job), end_of_turn(job));
      if (end == Instant::max()) continue;
      const double after = (end - s_.now).count_seconds();
      for_each_gang(job, [&](const GangRequest& gang) {
        found.push_back({gang.type.value(), gang.devices, after});
      });
    }
    return found;
  }

  /// By type, what is free beside them.
  [[nodiscard]] std::vector<std::uint32_t> rest() const {
    std::vector<std::uint32_t> free(s_.fleet.topology().type_count());
    for (std::uint32_t t = 0; t < free.size(); ++t) {
      free[t] = s_.fleet.free(Topology::root(), FleetTypeId(t)).devices;
    }
    for (std::size_t i = 0; i < s_.running.size(); ++i) {
      if (turns_[i] == 0 && !s_.running[i].stopping) continue;
      for_each_gang(s_.running[i],
                    [&](const GangRequest& gang) { free[gang.type.value()] += gang.devices; });
    }
    return free;
  }

 private:
  [[nodiscard]] Instant end_of_run(const RunningJob& job) const {
    const bool over = job.expected_end <= s_.now;
    return over ? s_.now + (s_.now - job.started) : job.expected_end;
  }
  /// Max: it does not end because of others, or ends in this round.
  [[nodiscard]] Instant end_of_turn(const RunningJob& job) const {
    if (!takes_turns(*job.request)) return Instant::max();
    const Instant from = turn_ends_from(job, s_, least_);
    return from > s_.now ? from : Instant::max();
  }

  /// Calls visit(request) for each gang of the job that has whole devices.
  template <class Visit>
  static void for_each_gang(const RunningJob& job, const Visit& visit) {
    for (const PlacedGang& gang : job.gangs) {
      const GangRequest& has = job.request->roles[gang.role].options[gang.option].gang;
      if (has.share == kWholeDevice) visit(has);
    }
  }

  const Situation& s_;
  Duration least_;
  std::vector<char> turns_;  ///< by running job
};

/// In the order in which jobs were submitted.
constexpr auto kBySubmission = [](const RoundJob& job) {
  return std::pair(job.job.submitted, job.job.id);
};

std::vector<Turn> turns_by_deadline(const RoundInputs& in) {
  const Situation& s = in.situation;
  const bool begins = in.phase == RoundPhase::kBegins;
  std::vector<std::uint32_t> who;
  for (std::uint32_t i = 0; i < in.jobs.size(); ++i) {
    if (begins || !in.jobs[i].option) who.push_back(i);
  }
  std::ranges::sort(who, {}, [&](std::uint32_t i) { return kBySubmission(in.jobs[i]); });
  std::vector<DeadlineJob> jobs;
  std::vector<char> admitted;
  jobs.reserve(who.size());
  admitted.reserve(who.size());
  for (const std::uint32_t i : who) {
    const RoundJob& job = in.jobs[i];
    jobs.push_back(deadline_job(job, s, in.policy));
    const bool promised = begins && s.history != nullptr && jobs.back().due &&
                          std::ranges::binary_search(s.history->share_period().jobs, job.job.id);
    admitted.push_back(promised ? 1 : 0);
  }
  std::vector<DeviceRelease> releases;
  if (begins) {
    std::span<const JobId> promised;
    if (s.history != nullptr) promised = s.history->share_period().jobs;
    releases = DevicesOfOthers(s, in.policy, in.jobs).releases(promised);
  }
  const DeadlineShares shares =
      share_by_deadline({jobs, in.devices, releases, in.policy.full_interval.value()}, admitted);
  std::vector<Ranked> ranked;
  for (std::size_t i = 0; i < who.size(); ++i) {
    const std::vector<GangOption>& options = options_of(in.jobs[who[i]]);
    const std::uint32_t most = shares[i] ? options[*shares[i]].gang.devices : 0;
    for (std::uint32_t o = 0; o < options.size(); ++o) {
      const std::uint32_t devices = options[o].gang.devices;
      if (shares[i] && devices > most) continue;
      // Where the share finds no place, smaller ones are tried, and by those without one the least.
      const double size = shares[i] ? most - devices : devices;
      const double part = (shares[i] == o ? 0 : 2) + (admitted[i] != 0 ? 0 : 1);
      const WaitingJob& job = in.jobs[who[i]].job;
      ranked.push_back({part, static_cast<double>(i), size, job.submitted, job.id, {who[i], o}});
    }
  }
  return in_order(std::move(ranked));
}

/// The jobs of a situation that may be promised their deadlines, and those that run and whose turns
/// may end now, by submission. One that stops waits as far as its deadline goes. One whose turn may
/// end later is among the first.
std::vector<RoundJob> jobs_that_ask(const Situation& s, const Policy& policy) {
  std::vector<RoundJob> jobs;
  for (std::uint32_t i = 0; i < s.waiting.size(); ++i) {
    const WaitingJob& job = s.waiting[i];
    const bool asks = may_be_promised(job, s) && takes_turns(*job.request);
    if (asks) jobs.push_back({job, i, std::nullopt});
  }
  keep_first(jobs, policy, s);
  const Duration least = least_turn(s, policy);
  for (std::uint32_t i = 0; i < s.running.size(); ++i) {
    const RunningJob& job = s.running[i];
    const Instant from = turn_ends_from(job, s, least);
    if (from == Instant::max() || !takes_turns(*job.request)) continue;
    const WaitingJob as_it_is = as_waiting(job, s.now);
    if (!job.stopping && from > s.now && !may_be_promised(as_it_is, s)) continue;
    jobs.push_back({as_it_is, i, std::nullopt});
    if (!job.stopping) jobs.back().option = job.gangs.front().option;
  }
  std::ranges::sort(jobs, {}, kBySubmission);
  return jobs;
}

/// The jobs that are admitted from now on, ascending. Jobs that arrived before the last round asked
/// then.
std::vector<JobId> admitted_jobs(const Situation& s, const Policy& policy,
                                 const SharePeriod& last) {
  const std::span<const JobId> before = last.jobs;
  const std::vector<RoundJob> asking = jobs_that_ask(s, policy);
  std::vector<DeadlineJob> jobs;
  std::vector<char> admitted;
  std::vector<JobId> ids;
  const Duration least = least_turn(s, policy);
  jobs.reserve(asking.size());
  for (const RoundJob& job : asking) {
    DeadlineJob made = deadline_job(job, s, policy);
    if (!made.due) continue;
    made.asked = job.job.submitted < last.since;
    if (job.option) {
      const Instant from = turn_ends_from(s.running[job.at], s, least);
      made.stays = std::max(0.0, (from - s.now).count_seconds());
    }
    jobs.push_back(std::move(made));
    ids.push_back(job.job.id);
    admitted.push_back(std::ranges::binary_search(before, job.job.id) ? 1 : 0);
  }
  const DevicesOfOthers others(s, policy, asking);
  const std::vector<std::uint32_t> devices = others.rest();
  const std::vector<DeviceRelease> releases = others.releases(before);
  const double slot = policy.full_interval.value();
  const double rounds = (s.now - Instant()).count_seconds() / slot;
  const auto round = static_cast<std::uint64_t>(std::clamp(rounds, 0.0, 1e15));
  const std::vector<char> found =
      admit_by_deadline({jobs, devices, releases, slot, round}, admitted).promised;
  std::vector<JobId> now;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (found[i] != 0) now.push_back(ids[i]);
  }
  std::ranges::sort(now);
  return now;
}

}  // namespace

std::vector<Turn> turns_of(const RoundInputs& in, ThroughputShares& shares) {
  switch (in.policy.order) {
    case QueueOrder::kMaxMin:
      return in.phase == RoundPhase::kBegins ? turns_by_shares(in, shares) : turns_by_time_had(in);
    case QueueOrder::kFinishTime:
      return turns_of_each(in, by_finish_time(in));
    case QueueOrder::kGoodput:
      return turns_by_goodput(in);
    case QueueOrder::kDeadlineShares:
      return turns_by_deadline(in);
    case QueueOrder::kSubmitted:
    case QueueOrder::kPriority:
    case QueueOrder::kShortest:
    case QueueOrder::kRemaining:
    case QueueOrder::kRemainingService:
    case QueueOrder::kAttained:
    case QueueOrder::kAttainedQueues:
    case QueueOrder::kFair:
      break;
  }
  return turns_of_each(in, by_key(in));
}

bool keeps_share_period(const Policy& policy) {
  return policy.preemption == PreemptionRule::kRounds &&
         (policy.order == QueueOrder::kMaxMin || policy.order == QueueOrder::kDeadlineShares);
}

void renew_share_period(const Situation& situation, const Policy& policy, SharePeriod& period) {
  if (policy.order == QueueOrder::kDeadlineShares) {
    period = {situation.now, admitted_jobs(situation, policy, period), {}};
    return;
  }
  constexpr Duration kLeast = Duration::seconds(1920);
  std::vector<JobId> jobs;
  jobs.reserve(situation.waiting.size() + situation.running.size());
  for (const WaitingJob& job : situation.waiting) jobs.push_back(job.id);
  for (const RunningJob& job : situation.running) jobs.push_back(job.id);
  std::sort(jobs.begin(), jobs.end());
  const bool first = period.jobs.empty();
  if (jobs == period.jobs || (!first && situation.now - period.since < kLeast)) return;
  period.since = situation.now;
  period.had.clear();
  const auto note = [&](JobId job, const JobRequest& request) {
    for (const RoleRequest& role : request.roles) {
      for (const GangOption& option : role.options) {
        const FleetTypeId type = option.gang.type;
        const double had = situation.history->device_seconds(job, type, situation.now);
        if (had > 0) period.had[{job, type}] = had;
      }
    }
  };
  for (const WaitingJob& job : situation.waiting) note(job.id, *job.request);
  for (const RunningJob& job : situation.running) note(job.id, *job.request);
  period.jobs = std::move(jobs);
}

void keep_first(std::vector<RoundJob>& jobs, const Policy& policy, const Situation& situation) {
  if (jobs.size() <= kRoundJobs) return;
  std::vector<std::pair<OrderKey, std::uint32_t>> order;
  order.reserve(jobs.size());
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    order.emplace_back(key_of(jobs[i].job, policy, situation), i);
  }
  const auto end = order.begin() + kRoundJobs;
  std::nth_element(order.begin(), end, order.end());
  std::vector<RoundJob> first;
  first.reserve(kRoundJobs);
  for (auto it = order.begin(); it != end; ++it) first.push_back(jobs[it->second]);
  std::sort(first.begin(), first.end(),
            [](const RoundJob& a, const RoundJob& b) { return a.at < b.at; });
  jobs = std::move(first);
}

bool takes_turns(const JobRequest& job) {
  return job.kind != JobKind::kServe && job.roles.size() == 1 && job.roles.front().gangs == 1 &&
         job.roles.front().options.front().gang.share == kWholeDevice;
}

}  // namespace orrery
