#include "verbs/serve/rehearsed_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "perf/serving/serving_estimate.hpp"
#include "twin/serving/kv_cache_model.hpp"
#include "verbs/service_simulation/engine_pace.hpp"

namespace orrery {
namespace {

constexpr std::uint32_t kInstancesMax = 1024;

class OfferRehearsal {
 public:
  OfferRehearsal(const RequestTrace& trace, const RehearsalTerms& terms, ReplicaGroup group)
      : trace_(trace), terms_(terms), peak_(busiest_minute(trace)) {
    setup_.groups = {std::move(group)};
    setup_.targets = terms.targets;
  }

  /// Finds the least number from `first` up or down, at most `most`.
  void search(std::uint32_t first, std::uint32_t most, RehearsedOffer& offer) {
    std::uint32_t bad = 0;
    std::uint32_t good = std::min(first, most);
    while (!keeps(good, offer)) {
      bad = good;
      if (good == most) {
        offer.why = fmt::format(
            "with {} instances {:.1f} % of the requests are within the targets, "
            "{:.1f} % while one fails",
            most, attained_by(offer.figures) * 100, attained_by(offer.disturbed) * 100);
        return;
      }
      good = std::min(good * 2, most);
    }
    while (good - bad > 1) {
      const std::uint32_t middle = bad + (good - bad) / 2;
      RehearsedOffer tried;
      (keeps(middle, tried) ? good : bad) = middle;
    }
    (void)keeps(good, offer);
    offer.instances = good;
  }

 private:
  bool keeps(std::uint32_t instances, RehearsedOffer& offer) {
    setup_.groups[0].count = instances;
    setup_.crashes.clear();
    offer.figures = run_service(trace_, setup_);
    setup_.crashes = {{.replica = 0, .at = peak_}};
    offer.disturbed = run_service(trace_, setup_);
    return attained_by(offer.figures) >= terms_.attained &&
           attained_by(offer.disturbed) >= terms_.attained;
  }

  const RequestTrace& trace_;
  const RehearsalTerms& terms_;
  Duration peak_;
  ServiceSetup setup_;
};

/// One instance of an offer as a replica of the twin.
Result<ReplicaGroup> group_of(const ServeRequest& request, const ServingOffer& offer,
                              const RehearsalTerms& terms) {
  if (offer.plan.pp > 1) return infeasible("pipelines of an instance are not modelled");
  const ServingRun run = run_of(request.question, offer);
  std::vector<std::string> unread;
  const Result<ServingJob> job = serving_job_of(run, unread);
  if (!job) return tl::unexpected<Error>(job.error());
  const ServingConstants constants = constants_of(*job, run, request.facts().calibration);
  const Result<EnginePace> pace = engine_pace(*job, constants);
  if (!pace) return tl::unexpected<Error>(pace.error());
  ReplicaGroup group{.name = request.question.machines[offer.machine].label,
                     .cost = pace->fit.cost,
                     .request_s = pace->request_s,
                     .cold_start = terms.cold_start};
  constexpr std::uint32_t kSequences = 256;
  group.rules.sequences_max =
      std::max(pace->sequences_max > 0 ? pace->sequences_max : kSequences, 1U);
  group.rules.step_tokens = std::max(pace->step_tokens, group.rules.sequences_max);
  group.rules.kv_blocks = static_cast<std::uint32_t>(pace->kv_tokens / kKvBlockTokens);
  constexpr double kHour = 3600;
  if (offer.quote.price) group.usd_h = offer.quote.price->value() * kHour / offer.plan.replicas;
  return group;
}

RehearsedOffer rehearsed(const ServeRequest& request, const ServingOffer& offer,
                         const RequestTrace& trace, const RehearsalTerms& terms) {
  RehearsedOffer made;
  Result<ReplicaGroup> group = group_of(request, offer, terms);
  if (!group) {
    made.why = group.error().message;
    return made;
  }
  const double each = devices_of(offer.plan);
  const auto& there = request.question.machines[offer.machine].accelerators;
  const double most = there ? std::floor(static_cast<double>(*there) / each) : kInstancesMax;
  const auto limit = static_cast<std::uint32_t>(std::clamp(most, 1.0, double{kInstancesMax}));
  const auto first = static_cast<std::uint32_t>(std::clamp(offer.plan.replicas, 1.0, most));
  OfferRehearsal(trace, terms, *std::move(group)).search(first, limit, made);
  const double tokens = made.figures.tokens();
  constexpr double kMillion = 1e6;
  if (made.found() && tokens > 0)
    made.usd_per_million = made.figures.replicas.usd * kMillion / tokens;
  return made;
}

}  // namespace

double attained_by(const ServiceFigures& figures) {
  if (figures.all.requests == 0) return 0;
  return static_cast<double>(figures.all.within) / static_cast<double>(figures.all.requests);
}

Duration busiest_minute(const RequestTrace& trace) {
  Duration busiest;
  std::uint64_t most = 0;
  std::uint64_t tokens = 0;
  std::size_t begin = 0;
  for (const TraceRequest& each : trace.requests) {
    tokens += each.prompt_tokens + each.output_tokens;
    while (trace.requests[begin].arrival + Duration::minutes(1) <= each.arrival) {
      tokens -= trace.requests[begin].prompt_tokens + trace.requests[begin].output_tokens;
      ++begin;
    }
    if (tokens <= most) continue;
    most = tokens;
    busiest = trace.requests[begin].arrival;
  }
  return busiest;
}

std::vector<RehearsedOffer> rehearse(const ServeRequest& request, const ServingAnswer& answer,
                                     const RequestTrace& trace, const RehearsalTerms& terms) {
  const std::vector<ServingOffer>& offers =
      answer.by_machine.size() > 1 ? answer.by_machine : answer.plans;
  std::vector<RehearsedOffer> all;
  const std::size_t count = std::min(offers.size(), request.question.best);
  all.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back(rehearsed(request, offers[i], trace, terms));
    all.back().plan = offers[i];
  }
  std::sort(all.begin(), all.end(), [](const RehearsedOffer& a, const RehearsedOffer& b) {
    const auto rank = [](const RehearsedOffer& of) {
      const double price = of.usd_per_million > 0 ? of.usd_per_million : INFINITY;
      return std::tuple(!of.found(), price, of.plan.machine, of.plan.accelerators());
    };
    return rank(a) < rank(b);
  });
  return all;
}

}  // namespace orrery
