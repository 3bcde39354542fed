#include "scheduler/clocks/clock_steps.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "scheduler/pass/running_gang.hpp"
#include "scheduler/power/gang_power.hpp"
#include "scheduler/power/power_relief.hpp"
#include "scheduler/price/expected_bill.hpp"

namespace orrery {
namespace {

/// After this many starts for which no other job could give up power, a pass stops looking.
constexpr std::uint32_t kVainShares = 8;
/// The most starts for which one pass lowers the clocks of other jobs; the next pass goes on.
constexpr std::uint32_t kShares = 64;
/// An allowance for launches and pauses, which an expected end leaves out.
constexpr Duration kMargin = Duration::minutes(2);
/// New clocks must do at least this many times the work of the present ones.
constexpr double kWorthwhile = 1.002;

/// The speed of a job at the steps that `step` names: that of its slowest gangs.
double speed_of(std::span<const PoweredGang> gangs, std::size_t PoweredGang::* step) {
  double slowest = 1;
  for (const PoweredGang& gang : gangs) {
    slowest = std::min(slowest, gang.ladder[gang.*step].throughput);
  }
  return slowest;
}

std::optional<Duration> left_of(const RunningJob& job, Instant now) {
  if (job.expected_end == Instant::max()) return std::nullopt;
  return std::max(job.expected_end - now, Duration());
}

/// The factor by which the rest of a job may take longer while it keeps its deadline and its time
/// limit. A job with a budget keeps its present clock (1). Infinite: the job has none of them.
double slowest_kept(const JobRequest& request, Instant now, Instant started,
                    std::optional<Duration> left) {
  if (request.budget) return 1;
  Instant latest = request.deadline.value_or(Instant::max());
  if (request.time_limit) latest = std::min(latest, started + *request.time_limit);
  if (latest == Instant::max() || !left || *left <= Duration()) {
    return std::numeric_limits<double>::infinity();
  }
  return std::max(1.0, (latest - now - kMargin).count_seconds() / left->count_seconds());
}

void slow_down(GangTerms& terms, const ClockStep& step, double slower) {
  terms.clock = step.clock;
  terms.draw = step.each;
  if (terms.length) terms.length = Duration::from_seconds(terms.length->count_seconds() * slower);
}

}  // namespace

ClockSteps::ClockSteps(PassContext& pass, StartSearch& search)
    : pass_(pass), s_(pass.situation), policy_(pass.policy), search_(search) {}

PoweredGangs& ClockSteps::powered() {
  if (!powered_) {
    powered_.emplace(s_);
    for (std::uint32_t i = 0; i < s_.running.size(); ++i) {
      const RunningJob& job = s_.running[i];
      if (pass_.is_decided(i) || job.stopping) continue;
      powered_->add(
          {.job = i,
           .request = job.request,
           .gangs = job.gangs,
           .terms = job.terms,
           .stop_loss = lost_device_seconds(job, s_.now) / policy_.horizon.value(),
           .slowest = slowest_kept(*job.request, s_.now, job.started, left_of(job, s_.now))});
    }
  }
  for (; starts_listed_ < pass_.starts().size(); ++starts_listed_) {
    const StartedJob& start = pass_.starts()[starts_listed_];
    const StartJob& decision = pass_.decision_of(start);
    powered_->add(
        {.source = PoweredGang::Source::kStarts,
         .job = static_cast<std::uint32_t>(starts_listed_),
         .request = start.job->request,
         .gangs = decision.gangs,
         .terms = decision.terms,
         .slowest = slowest_kept(*start.job->request, s_.now, s_.now, longest_of(decision.terms))});
  }
  return *powered_;
}

// Running jobs that the pass has stopped, moved or resized are left out.
ClockSteps::AskedGangs ClockSteps::ask_gangs(Steps steps) {
  AskedGangs asked;
  const std::vector<PoweredGang>& list = powered().list();
  for (std::uint32_t i = 0; i < list.size(); ++i) {
    const PoweredGang& gang = list[i];
    if (gang.source == PoweredGang::Source::kRuns && pass_.is_decided(gang.job)) continue;
    asked.entries.push_back(i);
    const std::size_t lowest = steps == Steps::kAll ? gang.ladder.size() : gang.steps_kept();
    asked.gangs.push_back({.power = {.nodes = gang.nodes, .ladder = gang.ladder.first(lowest)},
                           .step = gang.step,
                           .value = gang.value,
                           .stop_loss = gang.stop_loss});
  }
  return asked;
}

void ClockSteps::set_step(PoweredGang& gang, std::size_t step) {
  const ClockStep& from = gang.ladder[gang.step];
  const ClockStep& to = gang.ladder[step];
  pass_.power.change(gang.nodes, from, to);
  gang.step = step;
  if (gang.source == PoweredGang::Source::kRuns) {
    for (const std::uint32_t g : gang.gangs) pass_.power.set_clock(gang.job, g, to);
    return;
  }
  slowed_.insert(gang.job);
  StartJob& decision = pass_.decision_of(pass_.starts()[gang.job]);
  const double slower = from.throughput / to.throughput;
  for (const std::uint32_t g : gang.gangs) slow_down(decision.terms[g], to, slower);
  decision.expected = longest_of(decision.terms);
}

void ClockSteps::tell(std::size_t at) {
  if (!powered_) return;
  std::vector<Decision> lowered;
  std::vector<Decision> raised;
  const std::span<PoweredGang> list = powered_->list();
  for (std::size_t first = 0; first < list.size();) {
    std::size_t end = first + 1;
    const auto same_job = [&](const PoweredGang& other) {
      return other.source == list[first].source && other.job == list[first].job;
    };
    while (end < list.size() && same_job(list[end])) ++end;
    const std::span<PoweredGang> gangs = list.subspan(first, end - first);
    first = end;
    if (gangs.front().source == PoweredGang::Source::kRuns) tell_job(gangs, lowered, raised);
  }
  lowered.insert(lowered.end(), raised.begin(), raised.end());
  pass_.insert_decisions(at, lowered);
  for (const std::uint32_t at_start : slowed_) {
    const StartedJob& start = pass_.starts()[at_start];
    StartJob& decision = pass_.decision_of(start);
    if (!decision.price) continue;
    decision.price = search_.price_of_all(s_.fleet, *start.job, decision.gangs, decision.terms);
  }
  slowed_.clear();
}

// The rest of a job takes longer by the factor by which its slowest gang is slower than before the
// pass.
void ClockSteps::tell_job(std::span<PoweredGang> gangs, std::vector<Decision>& lowered,
                          std::vector<Decision>& raised) {
  const RunningJob& job = s_.running[gangs.front().job];
  const double slower = speed_of(gangs, &PoweredGang::was) / speed_of(gangs, &PoweredGang::step);
  for (PoweredGang& gang : gangs) {
    if (gang.step == gang.told) continue;
    for (const std::uint32_t g : gang.gangs) {
      GangTerms terms = pass_.power.terms_now(job, g);
      if (terms.length && job.expected_end != Instant::max()) {
        const double left = std::max((job.expected_end - s_.now).count_seconds(), 0.0);
        terms.length = Duration::from_seconds(left * slower);
      }
      (gang.step > gang.told ? lowered : raised).emplace_back(SetClock{job.id, g, terms});
    }
    gang.told = gang.step;
  }
}

// Jobs that are stopping count as gone.
void ClockSteps::relieve_power() {
  if (!pass_.power.limited()) return;
  PowerBudget staying = pass_.power.budget();
  for (const RunningJob& job : s_.running) {
    for (std::size_t g = 0; job.stopping && g < job.gangs.size(); ++g) {
      staying.remove(draws_of_gang(staying.tree(), job.gangs[g], job.terms[g].draw));
    }
  }
  bool above = false;
  for (std::uint32_t d = 0; d < s_.fleet.topology().power_domains().size() && !above; ++d) {
    above = staying.excess(pass_.power.caps(), PowerDomainId(d)) > 0;
  }
  if (!above) return;
  pass_.hold_until(s_.now);
  AskedGangs asked = ask_gangs(Steps::kAll);
  std::vector<PoweredGang>& list = powered().list();
  for (std::size_t i = 0; i < asked.gangs.size(); ++i) {
    asked.gangs[i].preemptible = list[asked.entries[i]].preemptible;
  }
  for (const PowerChange& change : relieve(staying, pass_.power.caps(), asked.gangs).changes) {
    PoweredGang& gang = list[asked.entries[change.gang]];
    if (change.step) {
      set_step(gang, *change.step);
    } else if (!pass_.is_decided(gang.job)) {
      pass_.preempt(gang.job, JobId());
    }
  }
  tell(pass_.result.decisions.size());
}

// Where a cap leaves too little power for a start, the clocks of all gangs below that cap are
// lowered for it, if more work is done that way than without the start, or with only the start at a
// lower clock.
void ClockSteps::share_power(const WaitingJob& job, StartOrRefusal& found,
                             std::vector<PlacedGang> slot) {
  // Only full passes raise clocks again.
  if (!pass_.power.limited() || !wants_full(policy_) || vain_shares_ == kVainShares) return;
  const bool slowed =
      found && std::ranges::any_of(found->terms, [](const GangTerms& t) { return t.clock < 1; });
  if (found ? !slowed : found.error().refusal.kind != RejectionKind::kPower) return;
  if (shares_ == kShares) {
    pass_.hold_until(s_.now);
    return;
  }
  if (slowed) slot = found->gangs;
  StartOrRefusal full =
      slot.empty() ? search_.find(job, PowerCounts::kNo)
                   : search_.with_terms(pass_.fleet.now(), job, std::move(slot), PowerCounts::kNo);
  if (!full) return;
  std::vector<PoweredGang>& list = powered().list();
  const std::size_t others = list.size();
  powered_->add({.source = PoweredGang::Source::kStarts,
                 .job = static_cast<std::uint32_t>(pass_.starts().size()),
                 .request = job.request,
                 .gangs = full->gangs,
                 .terms = full->terms,
                 .slowest = slowest_kept(*job.request, s_.now, s_.now, full->length)});
  double alone = 0;
  for (const PoweredGang& gang : std::span(list).subspan(slowed ? others : list.size())) {
    alone += gang.work(nearest_step(gang.ladder, found->terms[gang.gangs.front()].clock));
  }
  PowerBudget budget = pass_.power.budget();
  for (std::size_t i = 0; i < full->gangs.size(); ++i) {
    budget.add(draws_of_gang(budget.tree(), full->gangs[i], full->terms[i].draw));
  }
  const AskedGangs asked = ask_gangs(Steps::kThatKeepPromises);
  const auto relief =
      make_room(budget, pass_.power.caps(), asked.gangs, {list.size() - others, alone});
  if (relief) slow_down_start(*full, *relief, asked, others);
  powered_->cut(others);
  const Reserved& reserved = pass_.fleet.reserved();
  const bool late = reserved.any() && reserved.delays(full->gangs, pass_.end_of(*full), job.id);
  if (!relief || late || !affordable(job, *full)) {
    ++vain_shares_;
    return;
  }
  ++shares_;
  for (const PowerChange& change : relief->changes) {
    const std::uint32_t entry = asked.entries[change.gang];
    if (entry < others) set_step(list[entry], *change.step);
  }
  if (policy_.choice == OptionChoice::kCheapest) {
    full->price = search_.price_of_all(s_.fleet, job, full->gangs, full->terms);
  }
  found = std::move(full);
}

// The powered gangs from `others` on are those of the start.
void ClockSteps::slow_down_start(PlannedStart& found, const PowerRelief& relief,
                                 const AskedGangs& asked, std::size_t others) {
  for (const PowerChange& change : relief.changes) {
    if (asked.entries[change.gang] < others) continue;
    const PoweredGang& gang = powered().list()[asked.entries[change.gang]];
    const ClockStep& step = gang.ladder[*change.step];
    for (const std::uint32_t g : gang.gangs) slow_down(found.terms[g], step, 1 / step.throughput);
  }
  found.length = longest_of(found.terms);
}

bool ClockSteps::affordable(const WaitingJob& job, const PlannedStart& found) const {
  const std::optional<Dollars>& budget = job.request->budget;
  if (!budget) return true;
  const ExpectedBill bill =
      expected_bill(search_.context_of(s_.fleet), job, found.gangs, found.terms);
  return Dollars(bill.dollars() + bill.assumed_hire) <= *budget;
}

void ClockSteps::raise() {
  const auto lowered = [](const RunningJob& job) {
    return std::ranges::any_of(job.terms, [](const GangTerms& terms) { return terms.clock < 1; });
  };
  if (!pass_.power.limited() || std::ranges::none_of(s_.running, lowered)) return;
  AskedGangs asked = ask_gangs(Steps::kThatKeepPromises);
  // The clocks of this pass's starts are already decided.
  for (std::size_t i = asked.entries.size(); i-- > 0;) {
    if (powered().list()[asked.entries[i]].source == PoweredGang::Source::kRuns) continue;
    asked.entries.erase(asked.entries.begin() + static_cast<std::ptrdiff_t>(i));
    asked.gangs.erase(asked.gangs.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::vector<PoweredGang>& list = powered().list();
  PowerBudget budget = pass_.power.budget();
  std::vector<std::size_t> steps(list.size());
  for (std::size_t i = 0; i < asked.gangs.size(); ++i) {
    const PoweredGang& gang = list[asked.entries[i]];
    budget.remove(draws_of(budget.tree(), gang.nodes, gang.ladder[gang.step].each));
    budget.add(draws_of(budget.tree(), gang.nodes, gang.ladder[0].each));
    asked.gangs[i].step = 0;
  }
  const PowerRelief relief = relieve(budget, pass_.power.caps(), asked.gangs);
  for (const PowerChange& change : relief.changes) {
    steps[asked.entries[change.gang]] = *change.step;
  }
  double before = 0;
  double after = 0;
  for (const std::uint32_t i : asked.entries) {
    if (steps[i] == list[i].step) continue;
    before += list[i].work(list[i].step);
    after += list[i].work(steps[i]);
  }
  if (after < before * kWorthwhile) return;
  for (const std::uint32_t i : asked.entries) {
    if (steps[i] != list[i].step) set_step(list[i], steps[i]);
  }
  tell(pass_.result.decisions.size());
}

}  // namespace orrery
