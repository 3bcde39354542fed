// Power shortages, and clocks that may rise again.
#include <algorithm>
#include <limits>
#include <utility>

#include "scheduler/pass/pass.hpp"
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

PoweredGangs& Pass::powered() {
  if (powered_) return *powered_;
  powered_.emplace(s_);
  for (std::uint32_t i = 0; i < s_.running.size(); ++i) {
    const RunningJob& job = s_.running[i];
    if (stopped_[i] != 0 || job.stopping) continue;
    powered_->add(
        {.job = i,
         .request = job.request,
         .gangs = job.gangs,
         .terms = job.terms,
         .stop_loss = lost_device_seconds(job) / policy_.horizon.value(),
         .slowest = slowest_kept(*job.request, s_.now, job.started, left_of(job, s_.now))});
  }
  for (std::uint32_t i = 0; i < starts_.size(); ++i) add_powered_start(i);
  return *powered_;
}

void Pass::add_powered_start(std::uint32_t at) {
  const auto& start = std::get<StartJob>(result_.decisions[starts_[at].decision]);
  powered_->add({.source = PoweredGang::Source::kStarts,
                 .job = at,
                 .request = starts_[at].job->request,
                 .gangs = start.gangs,
                 .terms = start.terms,
                 .slowest = slowest_kept(*starts_[at].job->request, s_.now, s_.now,
                                         longest_of(start.terms))});
}

// Running jobs that the pass has stopped, moved or resized are left out.
Pass::AskedGangs Pass::ask_gangs(Steps steps) {
  AskedGangs asked;
  const std::vector<PoweredGang>& list = powered().list();
  for (std::uint32_t i = 0; i < list.size(); ++i) {
    const PoweredGang& gang = list[i];
    if (gang.source == PoweredGang::Source::kRuns && stopped_[gang.job] != 0) continue;
    asked.entries.push_back(i);
    const std::size_t lowest = steps == Steps::kAll ? gang.ladder.size() : gang.steps_kept();
    asked.gangs.push_back({.power = {.nodes = gang.nodes, .ladder = gang.ladder.first(lowest)},
                           .step = gang.step,
                           .value = gang.value,
                           .stop_loss = gang.stop_loss});
  }
  return asked;
}

void Pass::set_step(PoweredGang& gang, std::size_t step) {
  const PowerTree& tree = power_->tree();
  power_->remove(draws_of(tree, gang.nodes, gang.ladder[gang.step].each));
  power_->add(draws_of(tree, gang.nodes, gang.ladder[step].each));
  const double slower = gang.ladder[gang.step].throughput / gang.ladder[step].throughput;
  gang.step = step;
  if (gang.source == PoweredGang::Source::kRuns) {
    for (const std::uint32_t g : gang.gangs) {
      GangTerms& terms =
          clocked_.try_emplace({gang.job, g}, s_.running[gang.job].terms[g]).first->second;
      terms.clock = gang.ladder[step].clock;
      terms.draw = gang.ladder[step].each;
    }
    return;
  }
  Start& start = starts_[gang.job];
  start.slowed = true;
  auto& decision = std::get<StartJob>(result_.decisions[start.decision]);
  for (const std::uint32_t g : gang.gangs) {
    slow_down(decision.terms[g], gang.ladder[step], slower);
  }
  decision.expected = longest_of(decision.terms);
}

// The rest of a job takes longer by the factor by which its slowest gang is slower than before the
// pass. Decisions that lower clocks come first, because others take the power that they free.
void Pass::tell_clocks(std::size_t at) {
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
    if (gangs.front().source == PoweredGang::Source::kStarts) continue;
    const RunningJob& job = s_.running[gangs.front().job];
    const double slower = speed_of(gangs, &PoweredGang::was) / speed_of(gangs, &PoweredGang::step);
    for (PoweredGang& gang : gangs) {
      if (gang.step == gang.told) continue;
      for (const std::uint32_t g : gang.gangs) {
        GangTerms terms = clocked_.at({gang.job, g});
        if (terms.length && job.expected_end != Instant::max()) {
          const double left = std::max((job.expected_end - s_.now).count_seconds(), 0.0);
          terms.length = Duration::from_seconds(left * slower);
        }
        (gang.step > gang.told ? lowered : raised).emplace_back(SetClock{job.id, g, terms});
      }
      gang.told = gang.step;
    }
  }
  lowered.insert(lowered.end(), raised.begin(), raised.end());
  result_.decisions.insert(result_.decisions.begin() + static_cast<std::ptrdiff_t>(at),
                           lowered.begin(), lowered.end());
  for (Start& start : starts_) {
    if (start.decision >= at) start.decision += lowered.size();
    auto& decision = std::get<StartJob>(result_.decisions[start.decision]);
    if (!std::exchange(start.slowed, false) || !decision.price) continue;
    decision.price = price_of_all(*start.job, decision.gangs, decision.terms);
  }
}

Price Pass::price_of_all(const WaitingJob& job, std::span<const PlacedGang> gangs,
                         std::span<const GangTerms> terms) const {
  PriceContext context = context_of(s_.fleet);
  if (gangs.size() > 1) context.beside.until = least_seconds(context, job);
  Price sum;
  for (std::size_t i = 0; i < gangs.size(); ++i) {
    const Price price = price_of(context, job, gangs[i], terms[i]);
    sum += price;
    add_beside(context, job, {gangs[i], terms[i], price});
  }
  return sum;
}

// A cap that fell below the planned draw is met at once: by lower clocks first, then by stopping
// the least valuable jobs. Jobs that are stopping count as gone.
void Pass::relieve_power() {
  if (!power_) return;
  PowerBudget staying = *power_;
  for (const RunningJob& job : s_.running) {
    for (std::size_t g = 0; job.stopping && g < job.gangs.size(); ++g) {
      staying.remove(draws_of_gang(staying.tree(), job.gangs[g], job.terms[g].draw));
    }
  }
  bool above = false;
  for (std::uint32_t d = 0; d < s_.fleet.topology().power_domains().size() && !above; ++d) {
    above = staying.excess(*s_.caps, PowerDomainId(d)) > 0;
  }
  if (!above) return;
  hold_until(s_.now);
  AskedGangs asked = ask_gangs(Steps::kAll);
  std::vector<PoweredGang>& list = powered().list();
  for (std::size_t i = 0; i < asked.gangs.size(); ++i) {
    asked.gangs[i].preemptible = list[asked.entries[i]].preemptible;
  }
  for (const PowerChange& change : relieve(staying, *s_.caps, asked.gangs).changes) {
    PoweredGang& gang = list[asked.entries[change.gang]];
    if (change.step) {
      set_step(gang, *change.step);
    } else if (stopped_[gang.job] == 0) {
      stopped_[gang.job] = 1;
      const RunningJob& job = s_.running[gang.job];
      result_.decisions.emplace_back(PreemptJob{job.id, JobId(), lost_device_seconds(job)});
    }
  }
  tell_clocks(result_.decisions.size());
}

// Where a cap leaves too little power for a start, the clocks of all gangs below that cap are
// lowered for it, if more work is done that way than without the start, or with only the start at a
// lower clock.
void Pass::share_power(const WaitingJob& job, FoundOrRefusal& found, std::vector<PlacedGang> slot) {
  // Only full passes raise clocks again.
  if (!power_ || !wants_full(policy_) || vain_shares_ == kVainShares) return;
  const bool slowed =
      found && std::ranges::any_of(found->terms, [](const GangTerms& t) { return t.clock < 1; });
  if (found ? !slowed : found.error().kind != RejectionKind::kPower) return;
  if (shares_ == kShares) {
    hold_until(s_.now);
    return;
  }
  if (slowed) slot = found->gangs;
  power_counts_ = PowerCounts::kNo;
  FoundOrRefusal full =
      slot.empty() ? find(job) : with_terms(m_.now_->view(), job, std::move(slot));
  power_counts_ = PowerCounts::kYes;
  if (!full) return;
  std::vector<PoweredGang>& list = powered().list();
  const std::size_t others = list.size();
  powered_->add({.source = PoweredGang::Source::kStarts,
                 .job = static_cast<std::uint32_t>(starts_.size()),
                 .request = job.request,
                 .gangs = full->gangs,
                 .terms = full->terms,
                 .slowest = slowest_kept(*job.request, s_.now, s_.now, full->length)});
  double alone = 0;
  for (const PoweredGang& gang : std::span(list).subspan(slowed ? others : list.size())) {
    alone += gang.work(nearest_step(gang.ladder, found->terms[gang.gangs.front()].clock));
  }
  PowerBudget budget = *power_;
  for (std::size_t i = 0; i < full->gangs.size(); ++i) {
    budget.add(draws_of_gang(budget.tree(), full->gangs[i], full->terms[i].draw));
  }
  const AskedGangs asked = ask_gangs(Steps::kThatKeepPromises);
  const auto relief = make_room(budget, *s_.caps, asked.gangs, {list.size() - others, alone});
  if (relief) slow_down_start(*full, *relief, asked, others);
  powered_->cut(others);
  const bool late = m_.reserved_->any() && m_.reserved_->delays(full->gangs, end_of(*full), job.id);
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
    full->price = price_of_all(job, full->gangs, full->terms);
  }
  found = std::move(full);
}

// The powered gangs from `others` on are those of the start.
void Pass::slow_down_start(Found& found, const PowerRelief& relief, const AskedGangs& asked,
                           std::size_t others) {
  for (const PowerChange& change : relief.changes) {
    if (asked.entries[change.gang] < others) continue;
    const PoweredGang& gang = powered().list()[asked.entries[change.gang]];
    const ClockStep& step = gang.ladder[*change.step];
    for (const std::uint32_t g : gang.gangs) slow_down(found.terms[g], step, 1 / step.throughput);
  }
  found.length = longest_of(found.terms);
}

bool Pass::affordable(const WaitingJob& job, const Found& found) const {
  const std::optional<Dollars>& budget = job.request->budget;
  if (!budget) return true;
  const ExpectedBill bill = expected_bill(context_of(s_.fleet), job, found.gangs, found.terms);
  return Dollars(bill.dollars() + bill.assumed_hire) <= *budget;
}

bool Pass::slowed_somebody() const {
  return std::any_of(
      result_.decisions.begin(), result_.decisions.end(),
      [](const Decision& decision) { return std::holds_alternative<SetClock>(decision); });
}

// Slowed gangs get the clocks at which most work is done under the caps that hold now.
void Pass::raise_clocks() {
  const auto lowered = [](const RunningJob& job) {
    return std::ranges::any_of(job.terms, [](const GangTerms& terms) { return terms.clock < 1; });
  };
  if (!power_ || std::ranges::none_of(s_.running, lowered)) return;
  AskedGangs asked = ask_gangs(Steps::kThatKeepPromises);
  // The clocks of this pass's starts are already decided.
  for (std::size_t i = asked.entries.size(); i-- > 0;) {
    if (powered().list()[asked.entries[i]].source == PoweredGang::Source::kRuns) continue;
    asked.entries.erase(asked.entries.begin() + static_cast<std::ptrdiff_t>(i));
    asked.gangs.erase(asked.gangs.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::vector<PoweredGang>& list = powered().list();
  PowerBudget budget = *power_;
  std::vector<std::size_t> steps(list.size());
  for (std::size_t i = 0; i < asked.gangs.size(); ++i) {
    const PoweredGang& gang = list[asked.entries[i]];
    budget.remove(draws_of(budget.tree(), gang.nodes, gang.ladder[gang.step].each));
    budget.add(draws_of(budget.tree(), gang.nodes, gang.ladder[0].each));
    asked.gangs[i].step = 0;
  }
  const PowerRelief relief = relieve(budget, *s_.caps, asked.gangs);
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
  tell_clocks(result_.decisions.size());
}

// Delays starts so that the power draw rises in steps.
void Pass::stagger_starts() {
  if (!policy_.start_ramp || *policy_.start_ramp <= Watts()) return;
  std::vector<StartJob*> starts;
  std::vector<Watts> rises;
  for (Decision& decision : result_.decisions) {
    auto* start = std::get_if<StartJob>(&decision);
    if (start == nullptr) continue;
    Watts rise;
    for (std::size_t g = 0; g < start->gangs.size(); ++g) {
      rise += start->terms[g].draw * start->gangs[g].allocation.devices();
    }
    starts.push_back(start);
    rises.push_back(rise);
  }
  const std::vector<Duration> delays = stagger(rises, *policy_.start_ramp / Seconds{1});
  for (std::size_t i = 0; i < starts.size(); ++i) starts[i]->delay = delays[i];
}

}  // namespace orrery
