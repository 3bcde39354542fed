#include "twin/study/study_figures.hpp"

#include <algorithm>
#include <limits>

#include "base/format/field_writer.hpp"
#include "planner/planner.hpp"
#include "twin/policy_run.hpp"
#include "twin/serving/service_figures.hpp"

namespace orrery {
namespace {

constexpr double kNoFigure = std::numeric_limits<double>::quiet_NaN();
constexpr double kGramsPerTonne = 1e6;
constexpr double kKgPerTonne = 1000;

/// A figure and how it is taken from the results of a run.
template <class Facts>
struct Taken {
  StudyFigure figure;
  double (*value)(const Facts&);
};

double ratio(double part, double whole) { return whole > 0 ? part / whole : kNoFigure; }

Axis time(std::string title) { return {.title = std::move(title), .unit = AxisUnit::kDuration}; }
Axis share(std::string title) { return {.title = std::move(title), .unit = AxisUnit::kShare}; }
Axis money(std::string title) { return {.title = std::move(title), .unit = AxisUnit::kMoney}; }
Axis count(std::string title, std::string symbol = {}) {
  return {.title = std::move(title), .symbol = std::move(symbol)};
}
Axis physical(std::string title, std::string symbol) {
  return {.title = std::move(title), .unit = AxisUnit::kPhysical, .symbol = std::move(symbol)};
}

double hours_of(const PolicyRun& run, DeviceUse use) {
  double hours = 0;
  for (const UseHours& type : run.report.use) hours += type[static_cast<std::size_t>(use)];
  return hours;
}

/// Cost of what jobs held; none where a type among it has no published price.
double cost(const PolicyRun& run) { return run.report.summary.cost_usd.value_or(kNoFigure); }

/// Cost of the whole fleet; none where one of its types has no published price.
double fleet_cost(const PolicyRun& run) {
  return run.unpriced.empty() ? run.summary.fleet.cost_usd : kNoFigure;
}

double useful_hours(const PolicyRun& run) { return hours_of(run, DeviceUse::kUseful); }

double all_hours(const PolicyRun& run) {
  double hours = 0;
  for (std::size_t u = 0; u < kDeviceUses; ++u) hours += hours_of(run, static_cast<DeviceUse>(u));
  return hours;
}

/// Productive over available time of the jobs that have started, weighted by their devices: what
/// Kokolis et al. (2024) call the effective training time ratio; waiting counts as available.
double ettr(const PolicyRun& run) {
  double productive = 0;
  double available = 0;
  for (const JobOutcome& job : run.outcomes) {
    if (job.start == Instant::max() || !job.measured) continue;
    const Instant end = std::min(job.end, run.end);
    productive += device_hours(job.usage.devices.total() - job.usage.lost - job.usage.idle);
    available += (end - job.submit).count_seconds() / 3600 * job.devices;
  }
  return ratio(productive, available);
}

/// Achieved work of devices: an hour on a device that is twice as fast counts two. Failed programs
/// count nothing.
double work_per_hour(const PolicyRun& run) {
  double work = 0;
  double held = 0;
  for (const JobOutcome& job : run.outcomes) {
    if (job.work_hours <= 0 || !job.measured) continue;
    if (job.phase == JobPhase::kFinished) work += job.work_hours;
    held += device_hours(job.usage.devices.total());
  }
  return ratio(work, held);
}

const std::vector<Taken<PolicyRun>>& simulate_list() {
  using R = const PolicyRun&;
  static const std::vector<Taken<PolicyRun>> kList = {
      {{"avg_jct", time("mean completion time"), Better::kLess},
       [](R r) { return r.summary.avg_jct_s; }},
      {{"p50_jct", time("median completion time"), Better::kLess},
       [](R r) { return r.summary.p50_jct_s; }},
      {{"p99_jct", time("99 % completion time"), Better::kLess},
       [](R r) { return r.summary.p99_jct_s; }},
      {{"avg_wait", time("mean time to first start"), Better::kLess},
       [](R r) { return r.summary.avg_wait_s; }},
      {{"avg_queueing", time("mean queueing time"), Better::kLess},
       [](R r) { return r.summary.avg_queueing_s; }},
      {{"p50_queueing", time("median queueing time"), Better::kLess},
       [](R r) { return r.summary.p50_queueing_s; }},
      {{"p90_queueing", time("90 % queueing time"), Better::kLess},
       [](R r) { return r.summary.p90_queueing_s; }},
      {{"p99_queueing", time("99 % queueing time"), Better::kLess},
       [](R r) { return r.summary.p99_queueing_s; }},
      {{"makespan", time("makespan"), Better::kLess}, [](R r) { return r.summary.makespan_s; }},
      {{"finished", count("jobs finished"), Better::kMore},
       [](R r) { return static_cast<double>(r.summary.finished); }},
      {{"unfinished", count("jobs unfinished"), Better::kLess},
       [](R r) { return static_cast<double>(r.summary.unfinished); }},
      {{"oversized", count("jobs too large for the fleet"), Better::kLess},
       [](R r) { return static_cast<double>(r.report.summary.oversized); }},
      {{"utilization", share("devices in use"), Better::kMore},
       [](R r) { return r.summary.utilization; }},
      {{"goodput", share("useful share of the time in use"), Better::kMore},
       [](R r) { return r.summary.goodput; }},
      {{"work_per_hour", count("work done per accelerator-hour in use", "h"), Better::kMore},
       work_per_hour},
      {{"useful_share", share("useful share of all device time"), Better::kMore},
       [](R r) { return ratio(useful_hours(r), all_hours(r)); }},
      {{"ettr", share("effective training time ratio"), Better::kMore}, ettr},
      {{"energy", physical("energy", "Wh"), Better::kLess},
       [](R r) { return r.summary.energy_kwh * 1000; }},
      {{"energy_per_useful_hour", physical("energy per useful accelerator-hour", "Wh"),
        Better::kLess},
       [](R r) { return ratio(r.summary.energy_kwh * 1000, useful_hours(r)); }},
      {{"cost", money("cost"), Better::kLess}, cost},
      {{"cost_per_useful_hour", money("cost per useful accelerator-hour"), Better::kLess},
       [](R r) { return ratio(cost(r), useful_hours(r)); }},
      {{"fleet_cost", money("cost of the fleet, including idle devices"), Better::kLess},
       fleet_cost},
      {{"fleet_cost_per_useful_hour", money("cost of the fleet per useful accelerator-hour"),
        Better::kLess},
       [](R r) { return ratio(fleet_cost(r), useful_hours(r)); }},
      {{"fleet_energy", physical("energy of the fleet at the meter", "Wh"), Better::kLess},
       [](R r) { return r.summary.fleet.energy_kwh * 1000; }},
      {{"co2", physical("CO2", "t"), Better::kLess},
       [](R r) { return r.summary.co2_kg / kKgPerTonne; }},
      {{"preemptions", count("preemptions"), Better::kLess},
       [](R r) { return static_cast<double>(r.summary.preemptions); }},
      {{"faults", count("jobs hit by faults"), Better::kLess},
       [](R r) { return static_cast<double>(r.summary.faults); }},
  };
  return kList;
}

/// "no_demand_hours": device-hours by what the devices did.
std::string hours_name(std::string_view word) {
  std::string name(word);
  for (char& c : name) c = c == '-' ? '_' : c;
  return name + "_hours";
}

struct Planned {
  const PlanAnswer& answer;
  const PlanOffer& offer;
  const Machine& machine;
};

double accelerators(const Planned& p) {
  return static_cast<double>(p.machine.ranks) /
         static_cast<double>(p.machine.ranks_per_accelerator);
}

double network_share(const Planned& p) {
  const Breakdown& terms = p.offer.cost.terms;
  double all = 0;
  for (const double seconds : terms.seconds) all += seconds;
  double network = 0;
  for (const Term term : {Term::kTensorParallel, Term::kContextParallel, Term::kExpertParallel,
                          Term::kShard, Term::kPipelineSend, Term::kDataParallel}) {
    network += terms.seconds[static_cast<std::size_t>(term)];
  }
  return ratio(network, all);
}

template <class Q>
double or_none(const std::optional<Q>& value) {
  return value ? value->value() : kNoFigure;
}

/// Tokens of the whole run; none for models of images and videos.
double tokens_of(const Planned& p) {
  const RunLength& run = p.answer.run;
  return run.unit == SampleUnit::kTokens && run.length ? *run.length : kNoFigure;
}

double part_of_goodput(const Planned& p, double Goodput::* part) {
  const std::optional<Goodput>& goodput = p.offer.quote.goodput;
  return goodput ? (*goodput).*part : kNoFigure;
}

double tokens_per_second(const Planned& p) {
  return p.answer.run.unit == SampleUnit::kTokens ? p.offer.quote.tokens_per_second : kNoFigure;
}

std::vector<Taken<Planned>> plan_speed_list() {
  using P = const Planned&;
  return {{{"step", time("step"), Better::kLess}, [](P p) { return p.offer.cost.seconds; }},
          {{"step_low", time("step, 10 % quantile"), Better::kLess},
           [](P p) { return p.offer.seconds_low; }},
          {{"step_high", time("step, 90 % quantile"), Better::kLess},
           [](P p) { return p.offer.seconds_high; }},
          {{"tokens_per_s", count("throughput", "tokens/s"), Better::kMore}, tokens_per_second},
          {{"tokens_per_s_per_accelerator", count("throughput per accelerator", "tokens/s"),
            Better::kMore},
           [](P p) { return ratio(tokens_per_second(p), accelerators(p)); }},
          {{"mfu", share("MFU (16-bit peak)"), Better::kMore}, [](P p) { return p.offer.mfu; }},
          {{"network_share", share("exposed communication, share of the step"), Better::kLess},
           network_share},
          {{"memory", physical("memory of the fullest rank", "B"), Better::kLess},
           [](P p) { return p.offer.cost.memory.total(); }},
          {{"accelerators", count("accelerators"), Better::kNeither}, accelerators},
          {{"power", physical("power", "W"), Better::kLess},
           [](P p) { return or_none(p.offer.quote.power); }}};
}

std::vector<Taken<Planned>> plan_run_list() {
  using P = const Planned&;
  return {{{"run_time", time("time of the whole run"), Better::kLess},
           [](P p) { return or_none(p.offer.quote.run_time); }},
          {{"run_cost", money("cost of the whole run"), Better::kLess},
           [](P p) { return or_none(p.offer.quote.run_cost); }},
          {{"run_energy", physical("energy of the whole run", "Wh"), Better::kLess},
           [](P p) {
             const auto& energy = p.offer.quote.run_energy;
             return energy ? kilowatt_hours(energy->facility) * 1000 : kNoFigure;
           }},
          {{"run_co2", physical("CO2 of the whole run", "t"), Better::kLess},
           [](P p) {
             const auto& energy = p.offer.quote.run_energy;
             return energy ? energy->carbon.value() / kGramsPerTonne : kNoFigure;
           }},
          {{"cost_per_million_tokens", money("cost per million tokens"), Better::kLess},
           [](P p) { return or_none(p.offer.quote.run_cost) / tokens_of(p) * 1e6; }},
          {{"joules_per_token", physical("energy per token", "J"), Better::kLess},
           [](P p) {
             const auto& energy = p.offer.quote.run_energy;
             return energy ? energy->facility.value() / tokens_of(p) : kNoFigure;
           }},
          {{"cost_per_accelerator_hour", money("cost per accelerator-hour"), Better::kLess},
           [](P p) {
             const double hours = or_none(p.offer.quote.run_time) / 3600 * accelerators(p);
             return ratio(or_none(p.offer.quote.run_cost), hours);
           }},
          {{"effective", share("share of time in which training makes lasting progress"),
            Better::kMore},
           [](P p) { return part_of_goodput(p, &Goodput::effective); }},
          {{"checkpoint_share", share("share of time for checkpoints"), Better::kLess},
           [](P p) { return part_of_goodput(p, &Goodput::checkpoints); }},
          {{"lost_share", share("share of time for repeated work"), Better::kLess},
           [](P p) { return part_of_goodput(p, &Goodput::lost_work); }},
          {{"checkpoint_interval", time("checkpoint interval"), Better::kNeither}, [](P p) {
             const auto& goodput = p.offer.quote.goodput;
             return goodput ? goodput->interval.value() : kNoFigure;
           }}};
}

/// A share of the requests.
double requests_share(const ServiceFigures& f, std::uint64_t part) {
  return ratio(static_cast<double>(part), static_cast<double>(f.all.requests));
}

std::vector<Taken<ServiceFigures>> serve_list() {
  using F = const ServiceFigures&;
  return {{{"ttft_p50", time("median time to the first token"), Better::kLess},
           [](F f) { return f.all.ttft.p50; }},
          {{"ttft_p90", time("90 % time to the first token"), Better::kLess},
           [](F f) { return f.all.ttft.p90; }},
          {{"ttft_p99", time("99 % time to the first token"), Better::kLess},
           [](F f) { return f.all.ttft.p99; }},
          {{"tpot_p50", time("median time between tokens"), Better::kLess},
           [](F f) { return f.all.tpot.p50; }},
          {{"tpot_p99", time("99 % time between tokens"), Better::kLess},
           [](F f) { return f.all.tpot.p99; }},
          {{"slo_attained", share("requests within the latencies of the spec"), Better::kMore},
           [](F f) { return requests_share(f, f.all.within); }},
          {{"not_answered", share("requests shed or failed"), Better::kLess},
           [](F f) { return requests_share(f, f.all.shed + f.all.failed); }},
          {{"cached", share("prompt tokens found in caches"), Better::kMore},
           [](F f) { return f.hit_rate; }},
          {{"tokens_per_s", count("throughput", "tokens/s"), Better::kMore},
           [](F f) { return ratio(f.tokens(), f.span.count_seconds()); }},
          {{"busy", share("time in which steps run"), Better::kNeither},
           [](F f) { return ratio(f.replicas.busy_s, f.replicas.alive_s); }},
          {{"cost", money("cost"), Better::kLess},
           [](F f) { return f.replicas.usd > 0 ? f.replicas.usd : kNoFigure; }},
          {{"cost_per_million_tokens", money("cost per million tokens"), Better::kLess},
           [](F f) {
             return f.replicas.usd > 0 ? ratio(f.replicas.usd * 1e6, f.tokens()) : kNoFigure;
           }},
          {{"joules_per_token", physical("energy per token", "J"), Better::kLess}, [](F f) {
             return f.replicas.joules > 0 ? ratio(f.replicas.joules, f.tokens()) : kNoFigure;
           }}};
}

template <class Facts>
void append(std::vector<StudyFigure>& figures, const std::vector<Taken<Facts>>& list) {
  figures.reserve(figures.size() + list.size());
  for (const Taken<Facts>& each : list) figures.push_back(each.figure);
}

template <class Facts>
void append(std::vector<double>& values, const std::vector<Taken<Facts>>& list,
            const Facts& facts) {
  values.reserve(values.size() + list.size());
  for (const Taken<Facts>& each : list) values.push_back(each.value(facts));
}

}  // namespace

std::vector<StudyFigure> study_figures(StudyRun run) {
  std::vector<StudyFigure> figures;
  if (run == StudyRun::kPlan) {
    append(figures, plan_speed_list());
    append(figures, plan_run_list());
    return figures;
  }
  if (run == StudyRun::kServe) {
    append(figures, serve_list());
    return figures;
  }
  append(figures, simulate_list());
  figures.reserve(figures.size() + kDeviceUses);
  for (const auto& [word, use] : enum_words(DeviceUse{})) {
    const Axis axis{.title = "device-hours " + std::string(word), .symbol = "h"};
    figures.push_back(
        {hours_name(word), axis, use == DeviceUse::kUseful ? Better::kNeither : Better::kLess});
  }
  return figures;
}

std::vector<double> figures_of(const PolicyRun& run) {
  std::vector<double> values;
  append(values, simulate_list(), run);
  values.reserve(values.size() + kDeviceUses);
  for (const auto& [word, use] : enum_words(DeviceUse{})) values.push_back(hours_of(run, use));
  return values;
}

std::vector<double> figures_of(const ServiceFigures& figures) {
  std::vector<double> values;
  append(values, serve_list(), figures);
  return values;
}

std::vector<double> figures_of(const PlanAnswer& answer, const PlanQuestion& question) {
  const PlanOffer& best = answer.plans.front();
  const Planned planned{answer, best, question.machines[best.machine].machine};
  std::vector<double> values;
  append(values, plan_speed_list(), planned);
  append(values, plan_run_list(), planned);
  return values;
}

}  // namespace orrery
