// Power that fell short, and clocks that may rise again.
#include <algorithm>
#include <cmath>

#include "scheduler/gang_power.hpp"
#include "scheduler/pass.hpp"
#include "scheduler/power_relief.hpp"

namespace orrery {
namespace {

/// Of a gang that runs: what it draws at which clock.
struct Powered {
  std::uint32_t running = 0;  ///< job
  std::uint32_t gang = 0;
  std::vector<NodeShare> nodes;
  std::vector<ClockStep> ladder;
  std::size_t step = 0;
};

/// What a second of the work is worth beside others: a service's most, preemptible batch least.
double worth(const JobRequest& job) {
  constexpr double kService = 10;
  constexpr double kFiller = 0.5;
  if (job.kind == JobKind::kServe) return kService;
  return job.kind == JobKind::kBatch && job.preemptible ? kFiller : 1;
}

std::size_t nearest_step(std::span<const ClockStep> ladder, double clock) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < ladder.size(); ++i) {
    if (std::fabs(ladder[i].clock - clock) < std::fabs(ladder[best].clock - clock)) best = i;
  }
  return best;
}

enum class Clocks { kAny, kLowered };

/// Gangs whose clocks can be set, each with its ladder. A ladder is dear, and few run slowed.
std::vector<Powered> powered_gangs(const Situation& s, std::span<const char> stopped,
                                   Clocks clocks) {
  std::vector<Powered> gangs;
  for (std::uint32_t i = 0; i < s.running.size(); ++i) {
    const RunningJob& job = s.running[i];
    if (stopped[i] != 0 || job.stopping) continue;
    for (std::uint32_t g = 0; g < job.gangs.size(); ++g) {
      if (clocks == Clocks::kLowered && job.terms[g].clock >= 1) continue;
      std::vector<ClockStep> ladder = ladder_of(s, *job.request, job.gangs[g]);
      if (ladder.empty()) continue;
      const std::size_t step = nearest_step(ladder, job.terms[g].clock);
      gangs.push_back({i, g, shares_of(job.gangs[g]), std::move(ladder), step});
    }
  }
  return gangs;
}

/// How much longer its work takes at another step.
double slower(const Powered& gang, std::size_t step) {
  return gang.ladder[gang.step].throughput / gang.ladder[step].throughput;
}

}  // namespace

// What is left of it takes `slower` times as long.
void Pass::set_clock(std::uint32_t running, std::uint32_t gang, const ClockStep& step,
                     double slower) {
  const RunningJob& job = s_.running[running];
  GangTerms terms = job.terms[gang];
  if (terms.length && job.expected_end != Instant::max()) {
    const double left = std::max((job.expected_end - s_.now).count_seconds(), 0.0);
    terms.length = Duration::from_seconds(left * slower);
  }
  power_->remove(draws_of_gang(power_->tree(), job.gangs[gang], terms.draw));
  terms.clock = step.clock;
  terms.draw = step.each;
  power_->add(draws_of_gang(power_->tree(), job.gangs[gang], terms.draw));
  result_.decisions.emplace_back(SetClock{job.id, gang, terms});
}

// A cap that fell below the planned draw is met at once: clocks first, then the least worth stops.
// Whoever is stopping already makes room.
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
  const std::vector<Powered> gangs = powered_gangs(s_, stopped_, Clocks::kAny);
  std::vector<RunningGang> asked;
  for (const Powered& gang : gangs) {
    const RunningJob& job = s_.running[gang.running];
    const double devices = job.gangs[gang.gang].allocation.devices();
    asked.push_back({.power = {.nodes = gang.nodes, .ladder = gang.ladder},
                     .step = gang.step,
                     .value = worth(*job.request) * devices,
                     .stop_loss = lost_device_seconds(job) / policy_.horizon.value(),
                     .preemptible = job.request->preemptible});
  }
  for (const PowerChange& change : relieve(staying, *s_.caps, asked).changes) {
    const Powered& gang = gangs[change.gang];
    const RunningJob& job = s_.running[gang.running];
    if (change.step) {
      set_clock(gang.running, gang.gang, gang.ladder[*change.step], slower(gang, *change.step));
    } else if (stopped_[gang.running] == 0) {
      stopped_[gang.running] = 1;
      result_.decisions.emplace_back(PreemptJob{job.id, JobId(), lost_device_seconds(job)});
    }
  }
}

bool Pass::slowed_somebody() const {
  return std::any_of(
      result_.decisions.begin(), result_.decisions.end(),
      [](const Decision& decision) { return std::holds_alternative<SetClock>(decision); });
}

// What was slowed goes on at the highest clock that fits now, in the order of the running jobs.
void Pass::raise_clocks() {
  if (!power_) return;
  for (const Powered& gang : powered_gangs(s_, stopped_, Clocks::kLowered)) {
    if (gang.step == 0) continue;
    const RunningJob& job = s_.running[gang.running];
    PowerBudget without = *power_;
    without.remove(draws_of_gang(without.tree(), job.gangs[gang.gang], job.terms[gang.gang].draw));
    const auto step = clock_for(without, *s_.caps, {.nodes = gang.nodes, .ladder = gang.ladder});
    if (step && *step < gang.step)
      set_clock(gang.running, gang.gang, gang.ladder[*step], slower(gang, *step));
  }
}

// The draw of a site rises step by step.
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
