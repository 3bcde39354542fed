#include "verbs/fork/service_fork.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/text/count_text.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/text_table.hpp"
#include "executor/services/service_book.hpp"
#include "twin/serving/service_run.hpp"
#include "verbs/option_text.hpp"
#include "verbs/service_simulation/engine_rules.hpp"
#include "verbs/service_simulation/request_option.hpp"
#include "verbs/service_simulation/service_simulation.hpp"
#include "workload/job_spec.hpp"

namespace orrery {
namespace {

constexpr std::uint32_t kReplicasMax = 4096;

Result<const Service*> service_named(const State& state, const std::string& name) {
  std::vector<KnownService> known;
  for (const auto& [id, service] : state.services().all()) {
    known.push_back({id.value(), service_name(state.job(id).name)});
  }
  const Result<std::uint32_t> number = number_of_service(known, name);
  if (!number) return tl::unexpected<Error>(number.error());
  return &state.services().all().at(JobId(*number));
}

/// Returns the report of a replica that takes requests; nullptr: it takes none.
const ReplicaReport* report_of(const Job& job) {
  if (job.phase != JobPhase::kRunning || job.attempts.empty()) return nullptr;
  const std::optional<ReplicaState>& replica = job.attempts.back().replica;
  return replica && replica->report.phase == ReplicaPhase::kReady ? &replica->report : nullptr;
}

/// Error: its replicas do not all compute the same of a request.
Status read_spec(const Service& known, RunningService& service) {
  const Result<Document> document = Document::parse(known.revision.texts.spec, "the job's spec");
  if (!document) return {};
  const Result<JobSpec> spec = read_job_spec(*document);
  if (!spec) return {};
  if (spec->service.transfer) {
    return environment_error(
        fmt::format("service {} has transfer: play its spec with `orrery "
                    "simulate --serve`",
                    service.name));
  }
  if (!spec->service.revisions.empty()) service.engine = spec->service.revisions.back().engine;
  const SloSpec& slo = spec->service.slo;
  if (slo.ttft.p99) service.targets.ttft_s = slo.ttft.p99->value();
  if (slo.tpot.p99) service.targets.tpot_s = slo.tpot.p99->value();
  return {};
}

Result<ReplicaGroup> group_of(const RunningService& service,
                              const RunningService::Replica& replica) {
  const ReplicaReport& report = replica.report;
  ReplicaGroup group{.name = "as measured",
                     .cost = engine_step_cost_of(report.pace, report.slots),
                     .usd_h = replica.usd_h};
  if (!is_known(group.cost)) {
    return environment_error(fmt::format("job {}, a replica of {}, did not measure its pace",
                                         replica.job, service.name));
  }
  group.rules =
      engine_rules(service.engine, {.sequences_max = report.slots, .kv_tokens = report.kv_tokens});
  return group;
}

/// Returns the service with `count` replicas.
Result<ServiceSetup> setup_with(const RunningService& service, std::uint32_t count) {
  ServiceSetup setup;
  setup.targets = service.targets;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t at = std::min<std::size_t>(i, service.replicas.size() - 1);
    if (i > at) {
      ++setup.groups.back().count;
      continue;
    }
    Result<ReplicaGroup> group = group_of(service, service.replicas[at]);
    if (!group) return forward_error(group);
    setup.groups.push_back(*std::move(group));
  }
  return setup;
}

struct PlayedChange {
  std::string name;
  std::uint32_t replicas = 0;
  PlayedService run;
  Json json;
};

PlayedChange play(std::string name, ModelledService& service) {
  PlayedChange played{.name = std::move(name), .run = {}, .json = {}};
  for (const ReplicaGroup& group : service.setup.groups) played.replicas += group.count;
  played.run.policy = word_of(service.setup.router.policy);
  played.run.figures = run_service(service.trace, service.setup);
  played.json = service_json(service, {&played.run, 1})["services"][0];
  played.json["replicas"] = played.replicas;
  return played;
}

std::string time_text(const Json& seconds) {
  return Duration::from_seconds(seconds.get<double>()).text();
}

std::string text_of(const ModelledService& service, std::span<const PlayedChange> runs) {
  const auto right = [](std::string title) {
    return TextTable::Column{std::move(title), Align::kRight};
  };
  TextTable table({{service.name},
                   right("REPLICAS"),
                   right("ROUTER"),
                   right("TTFT P50"),
                   right("P99"),
                   right("TPOT P50"),
                   right("P99"),
                   right("WITHIN TARGETS"),
                   right("NOT ANSWERED"),
                   right("$/M TOKENS")});
  for (const PlayedChange& each : runs) {
    const Json& json = each.json;
    const Json& usd = json["usd_per_million_tokens"];
    table.add({each.name, fmt::to_string(each.replicas), each.run.policy,
               time_text(json["ttft_s"]["p50"]), time_text(json["ttft_s"]["p99"]),
               time_text(json["tpot_s"]["p50"]), time_text(json["tpot_s"]["p99"]),
               fmt::format("{:.1f} %", json["slo_attained"].get<double>() * 100),
               fmt::to_string(each.run.figures.all.shed + each.run.figures.all.failed),
               usd.is_null() ? "-" : fmt::format("{:.3f}", usd.get<double>())});
  }
  return fmt::format(
      "{} in {}\n\n{}\nnote: a step takes as long as the warm-up measured, however "
      "long its texts are\n",
      counted(service.trace.requests.size(), "request"), service.trace.span.text(), table.text());
}

}  // namespace

Result<std::uint32_t> number_of_service(std::span<const KnownService> known,
                                        const std::string& asked) {
  std::vector<std::uint32_t> named;
  std::vector<std::string_view> names;
  for (const KnownService& service : known) {
    if (fmt::to_string(service.number) == asked) return service.number;
    if (service.name == asked) named.push_back(service.number);
    names.push_back(service.name);
  }
  if (named.size() == 1) return named.front();
  if (named.empty()) {
    return wrong("service", fmt::format("no service \"{}\"{}", asked, did_you_mean(asked, names)));
  }
  return wrong("service", fmt::format("\"{}\" names {} services: expected the number of one, {}",
                                      asked, named.size(), fmt::join(named, " or ")));
}

Result<RunningService> running_service(const State& state, Instant now, const std::string& name) {
  const Result<const Service*> known = service_named(state, name);
  if (!known) return tl::unexpected<Error>(known.error());
  RunningService service;
  service.name = service_name(state.job((*known)->id).name);
  if (Status read = read_spec(**known, service); !read) return forward_error(read);
  for (const JobId id : (*known)->live) {
    const Job& job = state.job(id);
    const ReplicaReport* report = report_of(job);
    if (report == nullptr) continue;
    const double hours = (now - job.first_start).count_seconds() / 3600;
    service.replicas.push_back({.job = id.value(),
                                .report = *report,
                                .usd_h = hours > 0 ? state.usage_of(id, now).dollars / hours : 0});
  }
  if (service.replicas.empty()) {
    return environment_error(
        fmt::format("service {} has no replica that takes requests", service.name));
  }
  return service;
}

Result<VerbAnswer> service_what_if(const RunningService& service, const ServiceChange& asked) {
  if (asked.requests.empty()) return wrong("requests", "required of a service");
  if (asked.replicas == 0 && asked.router.empty()) {
    return input_error({}, "nothing to change: expected --replicas or --router");
  }
  if (asked.replicas > kReplicasMax) {
    return wrong("replicas", fmt::format("{}: expected at most {}", asked.replicas, kReplicasMax));
  }
  const auto now = static_cast<std::uint32_t>(service.replicas.size());
  Result<RequestTrace> trace = load_request_option({asked.requests, asked.half});
  if (!trace) return forward_error(trace);
  Result<ServiceSetup> as_is = setup_with(service, now);
  if (!as_is) return forward_error(as_is);
  ModelledService modelled{
      .name = service.name, .trace = *std::move(trace), .setup = *std::move(as_is)};
  std::vector<PlayedChange> runs;
  runs.push_back(play("as it is", modelled));
  if (asked.replicas > 0) modelled.setup = *setup_with(service, asked.replicas);
  if (!asked.router.empty()) {
    Result<RoutePolicy> policy = word_option<RoutePolicy>("router", asked.router);
    if (!policy) return forward_error(policy);
    modelled.setup.router.policy = *policy;
  }
  runs.push_back(play("changed", modelled));
  return VerbAnswer{text_of(modelled, runs), Json({{"service", service.name},
                                                   {"requests", modelled.trace.requests.size()},
                                                   {"as_is", runs[0].json},
                                                   {"changed", runs[1].json}})};
}

}  // namespace orrery
